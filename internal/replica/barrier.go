// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/binary"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// The barrier serves reads. A read without an answer from its policy waits for the next
// round; a round asks for one index, on behalf of all reads that wait in its lane when the
// round starts; once the state machine has applied that index, the reads are done. Each
// lane has at most one round under way, so under load a round serves many reads.
//
// While a round is under way, later reads begin a new lane after a moment, for two reasons.
// If the leader is far, these reads would otherwise wait for two rounds. With leases, they
// may be answered here while the earlier round still waits for the leader.
type barrier struct {
	*facts
	around aroundReads
	leased bool // there are leases; constant
	boot   uint64
	number uint64 // of the last round; no two have the same
	// plain is the lane of reads of every key, and byWhat has those other lanes that take
	// reads. The other lanes stand in the order of their begin, and go when empty.
	plain  *readLane
	others []*readLane
	byWhat map[question]*readLane
	rounds map[uint64]*readLane // that are under way, by number
	quorum quorumReads
	led    bool // this node has known a leader
	view   readView
	ready  []confirmedRead
	// confirmedAt is the tick at which a read had an index last.
	confirmedAt uint64
}

// aroundReads is what reads need of what is around them.
type aroundReads interface {
	// drain takes all work out of the core; askCore has the core answer a round.
	drain()
	askCore(q question, context []byte)
	askLogEnd(to, number uint64)
	finish(*pendingCall, Done)
}

// readLane is the reads that ask for the same.
type readLane struct {
	what    question
	waiting []waitingRead // for the next round
	round   []waitingRead // in the round that is under way
	number  uint64        // of that round
	askedAt uint64        // tick
	asked   bool
	since   stamp    // when the round began, or began anew
	by      ServedBy // who answers it
}

func (l *readLane) empty() bool { return len(l.waiting)+len(l.round) == 0 }

// waitingRead is a read that needs an index.
type waitingRead struct {
	call   *pendingCall
	policy ReadPolicy
	spans  string // encoded
	begun  uint64 // tick at which the present voucher was asked first
}

// confirmedRead waits for the state machine.
type confirmedRead struct {
	waitingRead
	index uint64 // that must be applied
	at    uint64 // that is known to be committed
	asOf  *stamp // when it was, or had been before; nil: not known
	by    ServedBy
	conf  *pb.ConfState // whose majority vouches, if a quorum does
	since uint64        // tick
}

func newBarrier(f *facts, around aroundReads, leased bool, boot uint64) barrier {
	return barrier{facts: f, around: around, leased: leased, boot: boot, plain: &readLane{}, byWhat: map[question]*readLane{}, rounds: map[uint64]*readLane{}}
}

// lane returns the lane of a question.
func (b *barrier) lane(q question) *readLane {
	if q == (question{}) {
		return b.plain
	}
	l := b.byWhat[q]
	if l == nil {
		l = &readLane{what: q}
		b.byWhat[q] = l
		b.others = append(b.others, l)
	}
	return l
}

// renew lets a lane go on with its round, and has a new one in its place.
func (b *barrier) renew(old *readLane) {
	l := &readLane{what: old.what, waiting: old.waiting}
	old.waiting = nil
	if old == b.plain {
		b.plain, b.others = l, append(b.others, old)
	} else {
		b.byWhat[l.what], b.others = l, append(b.others, l)
	}
}

// context names a round. The name contains the boot, so that an answer to a round of an
// earlier life of this node fits no round.
func (b *barrier) context(number uint64) []byte {
	ctx := binary.BigEndian.AppendUint64(nil, b.boot)
	return binary.BigEndian.AppendUint64(ctx, number)
}

// maxRounds bounds the rounds under way.
const maxRounds = 64

// underWay returns the lane whose round has that name, or nil.
func (b *barrier) underWay(context []byte) *readLane {
	if len(context) != 16 || binary.BigEndian.Uint64(context) != b.boot {
		return nil
	}
	return b.rounds[binary.BigEndian.Uint64(context[8:])]
}

// await has a read wait for the next round of the lane with the same question.
func (b *barrier) await(w waitingRead, q question) {
	if q.route == viaQuorum {
		w.call.waiting = "a majority to say where their logs end"
		b.quorum.waiting = append(b.quorum.waiting, w)
		return
	}
	if !b.leased {
		q = question{} // only leases tell keys and nodes apart
	}
	l := b.lane(q)
	l.waiting = append(l.waiting, w)
}

// hurry has reads go on that have waited for a round for a moment. A read with bounded staleness does not
// hurry, because the answer of that round will do.
func (b *barrier) hurry(l *readLane) {
	hurries := func(w waitingRead) bool {
		_, bounded := w.policy.(BoundedStaleness)
		return !bounded
	}
	if l.asked && len(b.rounds) < maxRounds && slices.ContainsFunc(l.waiting, hurries) && b.now-l.since.now >= b.moment() {
		b.renew(l)
	}
}

// start answers reads in need of no round, begins rounds for waiting reads, and asks
// again after a round without an answer.
func (b *barrier) start() {
	if b.plain.empty() && len(b.others)+len(b.ready) == 0 && b.quorum.empty() {
		return
	}
	b.readWithoutRound()
	b.release()
	b.askQuorumInstead(b.plain)
	for _, l := range b.others {
		b.askQuorumInstead(l)
	}
	b.askQuorum()
	b.hurry(b.plain)
	for _, l := range b.others {
		b.hurry(l)
	}
	b.startRound(b.plain)
	b.others = slices.DeleteFunc(b.others, func(l *readLane) bool {
		b.startRound(l)
		if l.empty() {
			delete(b.rounds, l.number)
			if b.byWhat[l.what] == l {
				delete(b.byWhat, l.what)
			}
		}
		return l.empty()
	})
}

// startRound begins a round of a lane, if reads wait there and none is under way that
// may yet be answered.
func (b *barrier) startRound(l *readLane) {
	l.round = unended(l.round)
	l.waiting = unended(l.waiting)
	lost := l.asked && b.ticks-l.askedAt >= uint64(b.cfg.ElectionTick)
	if l.asked && !lost || l.empty() || b.state.Lead == raft.None || b.tooEarly() {
		return
	}
	delete(b.rounds, l.number)
	b.number++
	l.number, l.asked, l.askedAt, l.since, l.by = b.number, true, b.ticks, b.stamp(), ServedByLeader
	b.rounds[l.number] = l
	l.round = append(l.round, l.waiting...)
	clear(l.waiting)
	l.waiting = l.waiting[:0]
	b.count.ReadRounds++
	b.around.askCore(l.what, b.context(l.number))
}

// readWithoutRound answers the reads whose policy can tell.
func (b *barrier) readWithoutRound() {
	v := &b.view
	v.applied = b.applied.at.index
	if v.any && len(b.plain.waiting) > 0 {
		v.age = b.ago(v.askedAt)
	}
	b.plain.waiting = slices.DeleteFunc(b.plain.waiting, func(w waitingRead) bool {
		index, ok := w.policy.known(*v)
		if !ok || w.call.ended {
			return w.call.ended
		}
		c := confirmedRead{waitingRead: w, index: index, at: max(b.state.Commit, v.confirmed), by: ServedStale}
		if v.any && v.confirmed <= max(index, v.applied) {
			c.asOf = new(v.askedAt)
		}
		b.confirm(c)
		b.count.ReadsWithoutRound++
		return true
	})
}

// leaderChanged lets rounds be asked again: the old leader may never answer.
func (b *barrier) leaderChanged() {
	b.led = b.led || b.state.Lead != raft.None
	for _, l := range b.rounds {
		l.asked = false
	}
	clear(b.rounds)
}

// confirmed takes the core's answers.
func (b *barrier) confirmed(states []raft.ReadState) {
	for _, s := range states {
		l := b.underWay(s.RequestCtx)
		if l == nil {
			continue // of an earlier round, whose reads are in a later one
		}
		delete(b.rounds, l.number)
		l.asked = false
		asOf := new(l.since)
		for _, w := range l.round {
			b.confirm(confirmedRead{waitingRead: w, index: s.Index, at: s.Index, asOf: asOf, by: l.by})
		}
		clear(l.round)
		l.round = l.round[:0]
		if l.what == (question{}) && (!b.view.any || l.since.now >= b.view.askedAt.now) {
			b.view.confirmed, b.view.askedAt, b.view.any = s.Index, l.since, true
		}
	}
}

// served hears from the core of a round answered by this node's own lease.
func (b *barrier) served(context []byte, leads bool) {
	l := b.underWay(context)
	switch {
	case l == nil:
	case leads:
		l.by = ServedByLease
	default:
		l.by = ServedByRoster
	}
}

// confirm lets a read wait for the state machine.
func (b *barrier) confirm(c confirmedRead) {
	c.since, b.confirmedAt = b.ticks, b.ticks
	c.index -= min(c.index, c.policy.slack())
	c.call.waiting = "the state machine to catch up"
	b.ready = append(b.ready, c)
}

// release ends the reads that the state machine has caught up with.
func (b *barrier) release() {
	if len(b.ready) == 0 {
		return
	}
	applied := b.applied.at.index
	b.ready = slices.DeleteFunc(b.ready, func(c confirmedRead) bool {
		switch {
		case c.call.ended:
		case c.conf != nil && b.quorumFailed(c):
		case c.index <= applied:
			b.around.finish(c.call, Done{Index: c.index, Read: b.result(c)})
		default:
			return false
		}
		return true
	})
}

// result returns the ground of a read that ends now, and counts the read.
func (b *barrier) result(c confirmedRead) ReadResult {
	res := ReadResult{Index: c.index, By: c.by}
	if applied := b.applied.at.index; c.by == ServedStale || applied < c.at {
		res.By, res.Lag, res.Age = ServedStale, c.at-min(applied, c.at), -1
		if c.asOf != nil {
			res.Age = b.ago(*c.asOf)
		}
	}
	switch res.By {
	case ServedByLeader:
		b.count.ReadsByLeader++
	case ServedByLease:
		b.count.ReadsByLease++
	case ServedByRoster:
		b.count.ReadsByRoster++
	case ServedByQuorum:
		b.count.ReadsByQuorum++
	case ServedStale:
		b.count.ReadsStale++
	}
	return res
}

// unended leaves out the ended reads.
func unended(reads []waitingRead) []waitingRead {
	return slices.DeleteFunc(reads, func(w waitingRead) bool { return w.call.ended })
}
