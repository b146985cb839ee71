// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package virtual is what the benchmarks in virtual time have in common: the
// networks, the ways of replication that they compare, and how they report.
package virtual
