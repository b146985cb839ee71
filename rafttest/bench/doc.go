// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench compares what the core costs with what upstream's library
// costs: the same work in one run, for both.
//
// The benchmarks are named so that benchstat can set the libraries side by
// side:
//
//	go test -run '^$' -bench . -count 6 ./rafttest/bench | benchstat -col /lib -
//
// TestNoDearerThanUpstream counts bytes, allocations and Storage calls per
// operation, which do not depend on the machine, and fails where ours are more.
// Times depend on the machine; they are reported and not tested.
package bench
