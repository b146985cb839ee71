// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"encoding/binary"
	"slices"

	"github.com/weftraft/weft/raft"
)

// The barrier serves linearizable reads. A read that arrives waits for the next
// round; a round asks the core for one index, on behalf of all reads that wait
// when it starts; once the state machine has applied that index they are done.
// One round is under way at a time, so under load a round serves many reads.
type barrier struct {
	boot    uint64
	waiting []*pendingCall // for the next round
	round   []*pendingCall // in the round that is under way
	number  uint64         // of that round; no two have the same
	askedAt uint64         // tick
	asked   bool
	ready   []confirmedRead
}

// confirmedRead waits for the state machine.
type confirmedRead struct {
	index uint64
	call  *pendingCall
}

func newBarrier(boot uint64) barrier { return barrier{boot: boot} }

// context names a round. It has the boot in it, so that an answer to a round of
// an earlier life of this node is nobody's.
func (b *barrier) context() []byte {
	ctx := binary.BigEndian.AppendUint64(nil, b.boot)
	return binary.BigEndian.AppendUint64(ctx, b.number)
}

// Read takes a read of a user. It ends when this node's state machine has
// applied everything that was acknowledged before the call, anywhere; the user
// then reads the state machine. Done.Index is the index that was waited for.
func (r *Replica) Read(call Call, deadline Deadline) {
	r.count.Reads++
	if err := r.overloaded(); err != nil {
		r.refuseNow(call, "read", err)
		return
	}
	r.reads.waiting = append(r.reads.waiting, r.begin(call, "read", deadline, "the leader to confirm the read"))
}

// startReads begins a round if reads wait, or asks again if there was no answer.
func (r *Replica) startReads() {
	b := &r.reads
	b.waiting, b.round = live(b.waiting), live(b.round)
	if r.state.Lead == raft.None || r.err != nil || r.tooEarly() {
		return
	}
	lost := b.asked && r.ticks-b.askedAt >= uint64(r.cfg.ElectionTick)
	if b.asked && !lost || len(b.round)+len(b.waiting) == 0 {
		return
	}
	b.round = append(b.round, b.waiting...)
	b.waiting = nil
	b.number++
	b.asked, b.askedAt = true, r.ticks
	r.count.ReadRounds++
	r.core.ReadIndex(b.context())
	r.dirty = true
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
			c.waiting = "the state machine to catch up"
			b.ready = append(b.ready, confirmedRead{index: s.Index, call: c})
		}
		b.round, b.asked = nil, false
	}
}

// releaseReads ends the reads that the state machine has caught up with.
func (r *Replica) releaseReads() {
	applied := r.applied.GetIndex()
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
