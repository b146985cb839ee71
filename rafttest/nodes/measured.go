// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

// measured is the costs of work at real hosts, in nanoseconds. measured was
// made on two cores of a virtual machine with other work to do, by
//
//	go run ./rafttest/nodes/fit -time 700ms
//
// but for Delay and LinkKiB, the costs of a 10 Gbit/s network.
var measured = costs{
	Turn:     1358,
	Message:  1358,
	Call:     1358,
	Sent:     2364,
	Received: 2364,
	Write:    52850,
	Entry:    3767,
	Apply:    2455,
	Command:  89,
	LoopKiB:  154,
	WireKiB:  209,
	LogKiB:   505,
	ApplyKiB: 173,
	Sync:     83734,
	DiskKiB:  737,
	Delay:    100000,
	LinkKiB:  819,
}
