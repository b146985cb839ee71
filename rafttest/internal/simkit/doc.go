// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package simkit is what the simulators of packages rafttest and nodes have in
// common: virtual time, randomness from seeds, a check of histories, counters,
// and a runner of many seeds.
//
// A run is a function of its seed. Nothing here looks at a clock, draws from a
// source that is shared, or depends on the order of a map.
package simkit
