// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"time"
)

// Figure is how long things take at a node: for each kind of work the duration that a quarter of the
// time spent on it exceeded, in the last one to two election timeouts. With fewer than four
// pieces of work, which took less than half an election timeout, a part is the shortest duration; 0 without any.
type Figure struct {
	// Sync is the time from when a write was handed to the log until it was durable, and the node knew.
	// A write that takes longer than a quarter of an election timeout counts at each tick, with its age.
	Sync time.Duration
	// Turn is the time of a turn of a group: reading inputs, stepping the core, queueing work.
	Turn time.Duration
	// Wait is the time from the arrival of an input until a turn took it, and how late ticks were.
	Wait time.Duration
	// Send is how long the oldest message has been in the queue to the nearer half of the other
	// nodes: a single slow node has a long queue, and it is not the sender's fault.
	Send time.Duration
	// Reach is the round trip to the nearer half of the other nodes, or of the other voters of a group: so
	// long a command waits for links. It is 0 if it is not known, and no part of Delay, because a node may be far from the
	// others on purpose.
	Reach time.Duration
	// Stalled says that the log of a group, or its state, could not be written: the disk is late, or full.
	Stalled bool
}

// Delay is the sum of the parts: about how long a command stands at the node.
func (f Figure) Delay() time.Duration { return f.Sync + f.Turn + f.Wait + f.Send }

// Known reports whether anything was measured.
func (f Figure) Known() bool { return f.Delay() > 0 }

// String lists the parts.
func (f Figure) String() string {
	text := fmt.Sprintf("sync %v, turn %v, wait %v, send %v", f.Sync, f.Turn, f.Wait, f.Send)
	if f.Reach > 0 {
		text += fmt.Sprintf(", reach %v", f.Reach)
	}
	if f.Stalled {
		text += ", stalled"
	}
	return text
}

// worse reports whether a delay is worse than another: by factor, and by worth.
func worse(a, b time.Duration) bool { return a > factor*b && a-b >= worth }

// pace is how long a command stands at a node: as a whole, once, and each time that the process has something to do for it,
// which is two to four times.
type pace struct{ delay, process time.Duration }

func (f Figure) pace() pace { return pace{f.Delay(), f.Turn + f.Wait} }

// slower reports whether a node is worse than another as a whole, or because its process limps, which slow disks at all
// nodes would hide.
func (p pace) slower(than pace) bool { return worse(p.delay, than.delay) || p.limps(than) }

// limps reports whether the process of a node gets too little of a processor, beside another's.
func (p pace) limps(than pace) bool {
	return worse(p.process, than.process) && p.process-than.process >= 2*worth
}

// best returns the better of two, part by part.
func (p pace) best(other pace) pace {
	return pace{min(p.delay, other.delay), min(p.process, other.process)}
}

// Weigh returns the weight that a setting stands for: 0 for the default, and less than 0 for weight 0.
func Weigh(setting int) int {
	switch {
	case setting == 0:
		return DefaultWeight
	case setting < 0:
		return 0
	}
	return min(setting, MaxWeight)
}
