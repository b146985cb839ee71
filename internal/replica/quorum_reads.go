// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// A quorum read (Charapko and others, HotStorage 2019) asks a majority where its logs
// end, and waits until this node has applied the last of these entries.
//
// An entry acknowledged before the read is in the log of some member of each majority of
// the configuration that committed the entry, and is never cut. The configuration asked is
// V, applied by this node's state machine. If V ended before the read began, V committed
// the entry that ended V, so a member that answers has that entry, and this node applies
// the entry before the read ends: this node finds that its configuration is not V any more,
// and asks again. Without that rule, a majority of V may know nothing of entries committed
// two changes later.
//
// An entry at the end of a log may never be committed, if its leader was cut off: the entry
// delays the read, and after a while the leader is asked instead.
//
// The reads that wait when a round begins share it. The next round begins when none is under way, or
// a moment after the last one.
type quorumReads struct {
	waiting []waitingRead  // for the next round
	rounds  []*quorumRound // under way, by number
	number  uint64         // of the last round
	begunAt time.Duration  // when it began
}

// quorumRound is a question to all members about the ends of their logs.
type quorumRound struct {
	number  uint64
	reads   []waitingRead
	askedAt uint64            // tick at which members were asked last
	conf    *pb.ConfState     // V
	ends    map[uint64]uint64 // by member, as answered
}

func (q *quorumReads) empty() bool { return len(q.waiting)+len(q.rounds) == 0 }

// askQuorum begins a round if reads wait, asks again whoever has not answered, and lets
// reads go to the leader that have waited for long.
func (b *barrier) askQuorum() {
	q := &b.quorum
	q.waiting = b.quorumInTime(q.waiting)
	q.rounds = slices.DeleteFunc(q.rounds, func(r *quorumRound) bool {
		if r.reads = b.quorumInTime(r.reads); len(r.reads) > 0 && b.ticks-r.askedAt > uint64(b.cfg.HeartbeatTick) {
			b.askEnds(r)
		}
		return len(r.reads) == 0
	})
	if n := len(q.rounds); len(q.waiting) > 0 && (n == 0 || n < maxRounds && b.now-q.begunAt >= b.moment()) {
		b.beginQuorumRound()
	}
}

func (b *barrier) beginQuorumRound() {
	q := &b.quorum
	q.number++
	r := &quorumRound{number: q.number, reads: q.waiting, conf: b.applied.conf, ends: map[uint64]uint64{}}
	q.rounds, q.waiting, q.begunAt = append(q.rounds, r), nil, b.now
	b.count.QuorumRounds++
	if slices.Contains(members.Voters(r.conf), b.cfg.ID) {
		b.around.drain()
		r.ends[b.cfg.ID] = b.last
	}
	b.askEnds(r)
	b.countEnds(r)
}

// quorumInTime returns the reads that go on, and lets the others ask the leader.
func (b *barrier) quorumInTime(reads []waitingRead) []waitingRead {
	return slices.DeleteFunc(reads, func(w waitingRead) bool {
		if late := b.quorumLate(w); late && !w.call.ended {
			b.askLeaderInstead(w)
		} else if !late {
			return w.call.ended
		}
		return true
	})
}

// quorumLate reports whether a read has waited so long that the leader is asked.
func (b *barrier) quorumLate(w waitingRead) bool {
	return b.ticks-w.begun >= max(1, uint64(b.cfg.ElectionTick)/2)
}

// askQuorumInstead lets reads ask a majority that a leader does not answer: as soon as this node
// knows of no leader, or after a quarter of an election timeout. A read asks the leader and a
// majority in turns until it is answered: reads go on while the members elect a leader. The first
// leader since the start is waited for, because callers begin with a read to find the group at work.
func (b *barrier) askQuorumInstead(l *readLane) {
	if l.empty() || l.what.route != viaCore || b.leads() || !b.led {
		return
	}
	turn := func(w waitingRead) bool {
		switch w.policy.(type) {
		case ReadIndex, AtResponder, QuorumRead:
		default:
			return false
		}
		if w.call.ended || b.state.Lead != raft.None && b.ticks-w.begun < max(1, uint64(b.cfg.ElectionTick)/4) {
			return false
		}
		b.count.QuorumTurns++
		w.begun = b.ticks
		b.await(w, question{viaQuorum, w.spans})
		return true
	}
	l.waiting = slices.DeleteFunc(l.waiting, turn)
	if l.round = slices.DeleteFunc(l.round, turn); l.asked && len(l.round) == 0 {
		delete(b.rounds, l.number) // nobody needs its answer
		l.asked = false
	}
}

func (b *barrier) askLeaderInstead(w waitingRead) {
	b.count.QuorumFallbacks++
	w.begun = b.ticks
	w.call.waiting = "the leader to confirm the read, after a majority did not in time"
	b.await(w, question{viaCore, w.spans})
}

// askEnds asks the voters without an answer so far.
func (b *barrier) askEnds(r *quorumRound) {
	r.askedAt = b.ticks
	for _, id := range members.Voters(r.conf) {
		if _, ok := r.ends[id]; !ok && id != b.cfg.ID {
			b.around.askLogEnd(id, r.number)
		}
	}
}

// ended takes the end of a voter's log.
func (b *barrier) ended(from uint64, m wire.LogEnd) {
	i := slices.IndexFunc(b.quorum.rounds, func(r *quorumRound) bool { return r.number == m.Number })
	if i < 0 || m.Boot != b.boot {
		return // to an earlier question
	}
	if r := b.quorum.rounds[i]; slices.Contains(members.Voters(r.conf), from) {
		r.ends[from] = max(r.ends[from], m.Index)
		b.countEnds(r)
	}
}

// countEnds ends a round if a majority has answered.
func (b *barrier) countEnds(r *quorumRound) {
	var sets quorum.JointConfig
	for i, ids := range [][]uint64{r.conf.GetVoters(), r.conf.GetVotersOutgoing()} {
		sets[i] = quorum.MajorityConfig{}
		for _, id := range ids {
			sets[i][id] = struct{}{}
		}
	}
	votes, index := map[uint64]bool{}, uint64(0)
	for id, end := range r.ends {
		votes[id], index = true, max(index, end)
	}
	if len(sets[0]) == 0 || sets.VoteResult(votes) != quorum.VoteWon {
		return
	}
	for _, w := range r.reads {
		b.confirm(confirmedRead{waitingRead: w, index: index, by: ServedByQuorum, conf: r.conf})
	}
	b.quorum.rounds = slices.DeleteFunc(b.quorum.rounds, func(other *quorumRound) bool { return other == r })
}

// quorumFailed reports whether a majority's word is not enough to end a read, and has the
// read ask again.
func (b *barrier) quorumFailed(c confirmedRead) bool {
	switch {
	case c.index > b.applied.at.index:
		if !b.quorumLate(c.waitingRead) {
			return false
		}
		b.askLeaderInstead(c.waitingRead)
	case c.conf != b.applied.conf:
		b.count.QuorumRestarts++
		b.await(c.waitingRead, question{route: viaQuorum})
	default:
		return false
	}
	return true
}
