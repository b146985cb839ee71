// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import "time"

// The constants by which leadership moves, in one place. The unit of time is the election timeout
// where the cost of a change of leaders is the measure, because a failed change costs one.
const (
	// factor is how many times as long as at the best member something must take at a leader, for the
	// leader to count as worse. A leader does about twice the work of a follower, and with coding writes
	// two to three times the bytes, on a machine that is no worse; a disk or a processor that is ten
	// times slower is what moves leadership. Five lies between.
	factor = 5
	// worth is by how much, at least, a leader must also be worse in time. A hand-over holds the writes up
	// for some round trips and a write of the log, which is a few milliseconds, and the scheduling
	// of goroutines on a busy machine is as coarse.
	worth = 5 * time.Millisecond

	// LooksPerTimeout is how often in an election timeout a leader compares itself with the others, unless there is
	// an alarm: see Node.Alarmed.
	LooksPerTimeout = 2
	// patience is for how many election timeouts a leader must have been worse, or another
	// preferred. Each look that finds the contrary takes one look back. The figures of a single pause are gone
	// after two.
	patience = 3
	// Each change of leader that a member has seen lately doubles patience at this member, at most
	// mostLevels times; a change is forgotten after forgetAfter election timeouts. So hand-overs that
	// do not help become rare: within 600 election timeouts there are at most ten, however the members fare.
	mostLevels  = 6
	forgetAfter = 200

	// A leader whose links have become long hands over at once, if this is sure: see Judge. Commands must wait for longer
	// by at least this part of an election timeout.
	suddenly = 50
	// So does a leader whose process has stood still so many times within an election timeout. A pause is one of them.
	stillsKept = 5

	// reportsLast is for how many election timeouts the report of a node counts. A node sends one in each, or
	// reportsPerTimeout while it writes, a few less because of its ticks.
	reportsLast       = 3
	reportsPerTimeout = 12
	// weightsLast is the same for the weight of a node in one group, which is sent half as often.
	weightsLast = 6

	// The round trip to another node is the median of the last roundsKept, of which each report that answers a
	// newer one gives one. They count for roundsLast election timeouts.
	roundsKept = 5
	roundsLast = 4

	// afterglow is for how many election timeouts the reports of a former leader may have measurements
	// from its time as the leader: two windows, and the age of a report.
	afterglow = 2 + reportsLast

	// A delay rests on at least fewest pieces of work in the last one to two election timeouts, or on pieces
	// that took half an election timeout together, so that a short spike is none; and on a quarter of the time spent on
	// such work, so that a node that is slow every other moment is slow, although few of its many writes are.
	fewest  = 4
	quarter = 4
)

// maxLinks is how many links a report has at most.
const maxLinks = 32

// Weights of nodes as leaders.
const (
	// DefaultWeight is the weight of a node without a setting.
	DefaultWeight = 100
	// MaxWeight is the largest weight.
	MaxWeight = 1000
)
