// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"fmt"
	"time"
)

// Member is a follower with a vote, as the leader sees the follower.
type Member struct {
	ID      uint64
	Healthy bool // heard from lately
	// Lags says that committed entries have yet to be sent to the follower. A new entry comes
	// behind these entries, so the leader should not wait for the follower's answer.
	Lags bool
}

// helps reports whether a new entry may need the follower.
func (m Member) helps() bool { return m.Healthy && !m.Lags }

// Round is an entry that is about to be sent, and its receivers.
type Round struct {
	Index  uint64        // of the entry
	Now    time.Duration // by the leader's own clock; always 0 without a clock
	Size   int           // bytes of the payload
	Voters int           // the leader included
	Layout Layout
	// Followers are the voters but the leader, in slot order. Learners have the slots behind, and get
	// no units from the leader, whatever the policy. The slice is the caller's; a policy must not keep
	// the slice.
	Followers []Member
}

// Plan is the intention of an assignment.
type Plan struct {
	// Level is 1 for full copies, l if every l followers hold the payload, and 0 if the shares of
	// followers with units differ.
	Level int
	// Predicted is the time to the last answer that the entry needs. 0: unknown.
	Predicted time.Duration
	// Silence is the time after which a follower with units counts as lost, if the Predicted time is
	// over and the follower has sent no answer since. 0: unknown.
	Silence time.Duration
	// Plain has the entry travel uncoded, to learners too, if all followers get everything.
	Plain bool
}

// Policy decides which units of an entry each follower stores.
//
// Assign fills units[i] for r.Followers[i], each 0..r.Layout.D. If all are D, the entry travels
// uncoded, unless the group has learners and the plan is not Plain. A policy must assign enough units
// for the commit rule: see Enough.
type Policy interface {
	Assign(r *Round, units []int) Plan
}

// Observer is a Policy that learns. All times are of the leader's clock. Members that were not
// announced are ignored in all calls.
type Observer interface {
	// Reset begins a new term as leader: messages in flight are forgotten.
	Reset(now time.Duration)
	// Joined announces a follower, a voter or a learner; Left withdraws the follower. A follower
	// that gets a vote, or loses its vote, leaves and joins anew.
	Joined(member uint64, voter bool, now time.Duration)
	Left(member uint64)

	// Proposed is called for each entry that the leader appends, coded or plain, before Assign.
	Proposed(index uint64, size int, now time.Duration)
	// Sent is called for each message with entries: last is the index of its last entry, bytes its
	// approximate size. A last that is not above an earlier last is a resend.
	Sent(to, last uint64, bytes int, now time.Duration)
	// Acked is called for each answer that accepts entries up to index. held is the time for which
	// the follower had the message; 0 if the follower did not say.
	Acked(from, index uint64, held, now time.Duration)
	// Committed is called when the commit index moves.
	Committed(index uint64)

	// HeartbeatSent and HeartbeatAnswered show the round trip of few bytes.
	HeartbeatSent(to uint64, now time.Duration)
	HeartbeatAnswered(from uint64, now time.Duration)
	// QueueHint is a host's better knowledge: bytes that wait to be sent to a follower, and the
	// bytes a second at which they leave (0: unknown).
	QueueHint(to uint64, bytes int, rate float64, now time.Duration)
}

// Pacer is an Observer that paces followers that catch up. Room is the number of further bytes of
// missed entries that may be on their way to a follower: more bytes would only stand at the
// leader's interface, in front of new entries. next is the first entry to be sent; if no entry
// before next is on its way, there must be room. lagging is the time for which the follower has
// been catching up: with the time the room must grow, because a follower might otherwise never
// catch up while new entries fill the interface.
type Pacer interface {
	Room(to, next uint64, lagging time.Duration) int
}

// ProcessorObserver is an Observer that weighs processors as well as links: coding takes bytes from the
// leader's interface, and adds work for every member.
type ProcessorObserver interface {
	// Busy gives the share of time, 0 to 1, for which the processors of a member's machine were
	// busy of late; member 0 is the leader itself. Members that never say are not busy.
	Busy(member uint64, share float64)
}

// Hedging. An entry that is later than HedgeAfter its append gets more units at the followers that
// have answered, instead of waiting for the other followers.
const (
	// HedgeBudget is the share of the payload bytes that hedges may add.
	HedgeBudget = 0.05

	hedgeFactor = 6
	hedgeFloor  = time.Millisecond
	waiveFactor = 10
	waiveFloor  = 50 * time.Millisecond
	queueFactor = 4
)

// HedgeAfter returns the time for which an entry may wait for its plan's answers. Earlier hedges
// would send bytes against mere jitter, and slow entries down: with hedges at twice the prediction,
// a network with jitter is overloaded by hedges. 0: no prediction, so no entry is late.
func HedgeAfter(p Plan) time.Duration {
	if p.Predicted <= 0 {
		return 0
	}
	return max(hedgeFactor*p.Predicted, hedgeFloor)
}

// HedgeWaived reports whether an entry is so late that the budget of hedges no longer binds: jitter
// may have spent the budget, while this entry waits because of a failure. An entry that is late
// although its followers answer waits in a queue, which riders would make longer: such an entry may
// take more time.
func HedgeWaived(p Plan, waited time.Duration, answering bool) bool {
	after := max(waiveFactor*p.Predicted, waiveFloor)
	if answering {
		after *= queueFactor
	}
	return p.Predicted > 0 && waited > after
}

// Enough reports whether an assignment can commit at all: whether a majority of the voters has
// answered, and the commit rule's sum holds, after all followers with units have answered.
func Enough(r *Round, units []int) bool {
	if r.Layout.D == 0 {
		return true // full copies
	}
	held := make([]int, 1, len(units)+1)
	held[0] = r.Layout.D // the leader
	answering := 1
	for i := range r.Followers {
		held = append(held, units[i])
		if units[i] > 0 {
			answering++
		}
	}
	return answering > r.Voters/2 && Covered(r.Layout.D, (r.Voters+1)/2, held)
}

// Share fills units with the units of a level for the followers i with hold(i), by their position
// in r.Followers, and with 0 for the others.
func (r *Round) Share(level int, units []int, hold func(i int) bool) {
	holders := 0
	for i := range units {
		if hold(i) {
			holders++
		}
	}
	r.Layout.Spread(level, int(r.Index%MaxUnits), units[:holders])
	// The shares stand in front; each share moves to its holder, the last share first.
	for i := len(units) - 1; i >= 0; i-- {
		n := 0
		if hold(i) {
			holders--
			n = units[holders]
		}
		units[i] = n
	}
}

// everything gives all followers everything.
func everything(r *Round, units []int) Plan {
	for i := range units {
		units[i] = r.Layout.D
	}
	return Plan{Level: 1}
}

// Full is the policy of full copies: Raft's own.
type Full struct{}

// Assign gives everybody everything, learners too.
func (Full) Assign(r *Round, units []int) Plan {
	plan := everything(r, units)
	plan.Plain = true
	return plan
}

// Fixed is the policy of a fixed level, whatever happens. A level that the number of voters does
// not have becomes the nearest level. While followers are dead, Fixed needs riders for every entry
// if the remaining followers allow only a lower level.
type Fixed int

// Validate refuses levels that no group can have.
func (f Fixed) Validate() error {
	if f < 1 || f > MaxUnits {
		return fmt.Errorf("ecraft: level %d is fixed; levels begin with 1, full copies, and go up to half the voters", int(f))
	}
	return nil
}

// Assign gives all followers the units of the level.
func (f Fixed) Assign(r *Round, units []int) Plan {
	if r.Layout.D == 0 {
		return everything(r, units)
	}
	level := min(max(int(f), 1), Levels(r.Voters))
	r.Share(level, units, func(int) bool { return true })
	return Plan{Level: level}
}

// Levelled is the policy of the highest level that the healthy voters can commit: the fewest bytes
// at every number of failures. Levelled needs no clock. A follower that is silent or lags gets no
// units, and fetches missing units from the other members.
type Levelled struct{}

// Assign gives the units of the level to the followers that help.
func (Levelled) Assign(r *Round, units []int) Plan {
	healthy := 1
	for _, f := range r.Followers {
		if f.helps() {
			healthy++
		}
	}
	level := healthy - r.Voters/2
	if level < 1 || r.Layout.D == 0 {
		return everything(r, units) // no entry can commit: any follower that comes back helps
	}
	level = min(level, Levels(r.Voters))
	r.Share(level, units, func(i int) bool { return r.Followers[i].helps() })
	return Plan{Level: level}
}
