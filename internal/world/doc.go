// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package world is the one simulated world of this project: what the simulators
// of cores, of whole nodes, of hosts, and of the cluster that users test with
// have in common.
//
// A run is a function of its seed. Nothing here looks at a clock, draws from a
// shared source, or depends on the order of a map.
package world
