// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import "time"

// costs is what work takes on a node. The zero value is a node on which nothing
// takes time but its links and its disk.
type costs struct {
	// CPU time of the loop that owns a replica.
	Turn    time.Duration // a turn, at any content
	Message time.Duration // an incoming message
	Call    time.Duration // a call of a user, with its result
	// Sent is CPU time for an outgoing message, and Received for reading a
	// message from the network.
	Sent, Received time.Duration
	// Write is CPU time for a round of the log's writer, Entry for an entry in it.
	Write, Entry time.Duration
	// Apply is CPU time for a step of the state machine, Command for a command
	// in it.
	Apply, Command time.Duration
	// CPU time for a KiB, by where it passes.
	LoopKiB, WireKiB, LogKiB, ApplyKiB time.Duration

	// Sync is a disk's time to make a write durable, SyncTail the mean of an addition, drawn
	// exponentially, and DiskKiB the additional time of a KiB.
	Sync, SyncTail, DiskKiB time.Duration
	// Delay is the way of a message, LinkKiB what a KiB takes to leave a node.
	Delay, LinkKiB time.Duration
}

// scaled returns the costs with the CPU's multiplied: a slower processor.
func (c costs) scaled(by float64) costs {
	for _, d := range []*time.Duration{&c.Turn, &c.Message, &c.Call, &c.Sent, &c.Received, &c.Write, &c.Entry,
		&c.Apply, &c.Command, &c.LoopKiB, &c.WireKiB, &c.LogKiB, &c.ApplyKiB} {
		*d = time.Duration(float64(*d) * by)
	}
	return c
}

// per returns the time of bytes, given the time of a KiB.
func per(bytes int, kib time.Duration) time.Duration {
	return time.Duration(int64(bytes) * int64(kib) >> 10)
}

// measured is the costs of work at real hosts, in nanoseconds. measured was
// fitted once, on two cores of a virtual machine with other work to do, to three
// hosts under loads of 16 B to 1 MiB, but for Delay and LinkKiB, the costs of a
// 10 Gbit/s network. Another fit, such as that of weftbench costs, would draw
// each seed's run anew.
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
