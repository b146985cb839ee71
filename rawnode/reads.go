// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/raft"
)

// ReadPolicy says how fresh the state is that a read sees: [ReadIndex],
// [BoundedStaleness] or [Local]. Whatever it is, a read waits for an index, and
// ends when this node's state machine has applied that.
type ReadPolicy interface {
	// known returns the index to wait for if that can be told without a round.
	known(v readView) (index uint64, ok bool)
	// validate returns what is wrong with the policy.
	validate() error
}

// readView is what policies look at.
type readView struct {
	now time.Duration
	// applied is what the state machine has applied.
	applied uint64
	// confirmed is the index of the last round that ended, and askedAt is when
	// that began; false if there was none.
	confirmed uint64
	askedAt   time.Duration
	any       bool
}

// ReadIndex is the policy for linearizable reads: everything that was
// acknowledged anywhere before the read is seen. The leader confirms it, by a
// round of heartbeats that serves all reads that wait, or by its lease if
// ReplicaConfig.ReadOnly says so.
type ReadIndex struct{}

func (ReadIndex) known(readView) (uint64, bool) { return 0, false }
func (ReadIndex) validate() error               { return nil }

// BoundedStaleness is the policy for reads that see everything that was
// acknowledged, anywhere, up to Max before the read. They cost no message if the
// leader has answered a read of this node that was asked at most Max ago, and
// else wait for a round as ReadIndex does: so there is one round in Max at most.
// The bound holds whatever messages take, as it counts from the question.
type BoundedStaleness struct {
	Max time.Duration // more than 0
}

func (p BoundedStaleness) known(v readView) (uint64, bool) {
	return v.confirmed, v.any && v.now-v.askedAt <= p.Max
}

func (p BoundedStaleness) validate() error {
	if p.Max <= 0 {
		return fmt.Errorf("%w: BoundedStaleness.Max is %v, want more than 0", ErrInvalid, p.Max)
	}
	return nil
}

// Local is the policy for reads of whatever this node has applied, however old.
type Local struct{}

func (Local) known(v readView) (uint64, bool) { return v.applied, true }
func (Local) validate() error                 { return nil }

// barrierSource is where a round gets its index from: today the core. A quorum
// of members, or the holders of leases, could stand in its place.
type barrierSource interface {
	// ask begins a round, or returns false if it cannot be asked now. The answer
	// comes to barrier.confirmed, with the context.
	ask(context []byte) bool
}

// coreSource asks the core, and so the leader.
type coreSource struct{ r *Replica }

func (s coreSource) ask(context []byte) bool {
	r := s.r
	if r.state.Lead == raft.None || r.tooEarly() {
		return false
	}
	r.core.ReadIndex(context)
	r.dirty = true
	return true
}

// The barrier serves reads. One that its policy does not answer at once waits
// for the next round; a round asks for one index, on behalf of all reads that
// wait when it starts; once the state machine has applied that index they are
// done. One round is under way at a time, so under load a round serves many
// reads.
type barrier struct {
	boot    uint64
	source  barrierSource
	waiting []waitingRead  // for the next round
	round   []*pendingCall // in the round that is under way
	number  uint64         // of that round; no two have the same
	askedAt uint64         // tick
	asked   bool
	since   time.Duration // when the round began, or began anew
	view    readView
	ready   []confirmedRead
}

type waitingRead struct {
	call   *pendingCall
	policy ReadPolicy
}

// confirmedRead waits for the state machine.
type confirmedRead struct {
	index uint64
	call  *pendingCall
}

func newBarrier(boot uint64, source barrierSource) barrier {
	return barrier{boot: boot, source: source}
}

// context names a round. It has the boot in it, so that an answer to a round of
// an earlier life of this node is nobody's.
func (b *barrier) context() []byte {
	ctx := binary.BigEndian.AppendUint64(nil, b.boot)
	return binary.BigEndian.AppendUint64(ctx, b.number)
}

// Read is ReadAt with the policy [ReadIndex].
func (r *Replica) Read(call Call, deadline Deadline) { r.ReadAt(call, ReadIndex{}, deadline) }

// ReadAt takes a read of a user. It ends when this node's state machine has
// applied what the policy asks for; the user then reads the state machine.
// Done.Index is the index that was waited for.
func (r *Replica) ReadAt(call Call, policy ReadPolicy, deadline Deadline) {
	r.count.Reads++
	if policy == nil {
		policy = ReadIndex{}
	}
	err := r.admits(deadline)
	if err == nil {
		err = policy.validate()
	}
	if err != nil {
		r.refuseNow(call, "read", err)
		return
	}
	c := r.begin(call, "read", deadline, "the leader to confirm the read")
	r.reads.waiting = append(r.reads.waiting, waitingRead{c, policy})
}

// startReads answers what needs no round, begins a round if reads wait, and asks
// again if there was no answer.
func (r *Replica) startReads() {
	b := &r.reads
	if len(b.waiting)+len(b.round) == 0 || r.err != nil {
		return
	}
	r.readWithoutRound()
	b.round = live(b.round)
	lost := b.asked && r.ticks-b.askedAt >= uint64(r.cfg.ElectionTick)
	if b.asked && !lost || len(b.round)+len(b.waiting) == 0 {
		return
	}
	b.number++
	if b.asked = b.source.ask(b.context()); !b.asked {
		return
	}
	for _, w := range b.waiting {
		b.round = append(b.round, w.call)
	}
	clear(b.waiting)
	b.waiting = b.waiting[:0]
	b.askedAt, b.since = r.ticks, r.now
	r.count.ReadRounds++
}

// readWithoutRound answers the reads whose policy can tell.
func (r *Replica) readWithoutRound() {
	b := &r.reads
	b.view.now, b.view.applied = r.now, r.applied.at.index
	b.waiting = slices.DeleteFunc(b.waiting, func(w waitingRead) bool {
		index, ok := w.policy.known(b.view)
		if ok && !w.call.ended {
			b.confirm(w.call, index)
			r.count.ReadsWithoutRound++
		}
		return ok || w.call.ended
	})
	r.releaseReads()
}

// tooEarly reports whether this node leads and has not committed an entry of its
// term. More may be committed then than it knows. Cores wait by themselves, but
// upstream's does not where the leader is the only voter.
func (r *Replica) tooEarly() bool { return r.leads() && r.emitted.term != r.state.Term }

// leaderChanged lets the round be asked again: the old leader may never answer.
func (b *barrier) leaderChanged() { b.asked = false }

// confirmed takes the core's answers.
func (b *barrier) confirmed(states []raft.ReadState) {
	for _, s := range states {
		if !b.asked || !slices.Equal(s.RequestCtx, b.context()) {
			continue // of an earlier round, whose reads are in a later one
		}
		for _, c := range b.round {
			b.confirm(c, s.Index)
		}
		clear(b.round)
		b.round, b.asked = b.round[:0], false
		b.view.confirmed, b.view.askedAt, b.view.any = s.Index, b.since, true
	}
}

// confirm lets a read wait for the state machine.
func (b *barrier) confirm(c *pendingCall, index uint64) {
	c.waiting = "the state machine to catch up"
	b.ready = append(b.ready, confirmedRead{index: index, call: c})
}

// releaseReads ends the reads that the state machine has caught up with.
func (r *Replica) releaseReads() {
	if len(r.reads.ready) == 0 {
		return
	}
	applied := r.applied.at.index
	r.reads.ready = slices.DeleteFunc(r.reads.ready, func(c confirmedRead) bool {
		if c.index <= applied {
			r.finish(c.call, Done{Index: c.index})
		}
		return c.call.ended
	})
}

// live leaves out the calls that have ended.
func live(calls []*pendingCall) []*pendingCall {
	return slices.DeleteFunc(calls, func(c *pendingCall) bool { return c.ended })
}
