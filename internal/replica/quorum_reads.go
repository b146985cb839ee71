// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"

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
type quorumReads struct {
	waiting []waitingRead // for the next round
	round   []waitingRead // in the round that is under way
	number  uint64        // of the last round
	asked   bool
	askedAt uint64            // tick at which members were asked last
	conf    *pb.ConfState     // V, of the round
	ends    map[uint64]uint64 // by member, as answered
}

func (q *quorumReads) empty() bool { return len(q.waiting)+len(q.round) == 0 }

// askQuorum begins a round if reads wait, asks again whoever has not answered, and lets
// reads go to the leader that have waited for long.
func (r *Replica) askQuorum() {
	q := &r.reads.quorum
	if q.empty() {
		q.asked = false
		return
	}
	q.waiting, q.round = r.quorumInTime(q.waiting), r.quorumInTime(q.round)
	switch {
	case len(q.round) == 0 && len(q.waiting) > 0:
		q.number++
		q.asked, q.conf, q.ends = true, r.applied.conf, map[uint64]uint64{}
		q.round, q.waiting = q.waiting, nil
		r.count.QuorumRounds++
		if r.votesIn(q.conf) {
			r.drain()
			q.ends[r.cfg.ID] = r.last
		}
		r.askEnds()
		r.countEnds()
	case q.asked && len(q.round) > 0 && r.ticks-q.askedAt > uint64(r.cfg.HeartbeatTick):
		r.askEnds()
	}
}

// quorumInTime returns the reads that go on, and lets the others ask the leader.
func (r *Replica) quorumInTime(reads []waitingRead) []waitingRead {
	return slices.DeleteFunc(reads, func(w waitingRead) bool {
		if late := r.quorumLate(w); late && !w.call.ended {
			r.askLeaderInstead(w)
		} else if !late {
			return w.call.ended
		}
		return true
	})
}

// quorumLate reports whether a read has waited so long that the leader is asked.
func (r *Replica) quorumLate(w waitingRead) bool {
	return r.ticks-w.begun >= max(1, uint64(r.cfg.ElectionTick)/2)
}

// askQuorumInstead lets reads ask a majority that a leader does not answer: as soon as this node
// knows of no leader, or after a quarter of an election timeout. A read asks the leader and a
// majority in turns until it is answered: reads go on while the members elect a leader. The first
// leader since the start is waited for, because callers begin with a read to find the group at work.
func (r *Replica) askQuorumInstead(l *readLane) {
	if l.empty() || l.what.route != viaCore || r.leads() || !r.reads.led {
		return
	}
	turn := func(w waitingRead) bool {
		switch w.policy.(type) {
		case ReadIndex, AtResponder, QuorumRead:
		default:
			return false
		}
		if w.call.ended || r.state.Lead != raft.None && r.ticks-w.begun < max(1, uint64(r.cfg.ElectionTick)/4) {
			return false
		}
		r.count.QuorumTurns++
		w.begun = r.ticks
		r.await(w, question{viaQuorum, w.spans})
		return true
	}
	l.waiting = slices.DeleteFunc(l.waiting, turn)
	if l.round = slices.DeleteFunc(l.round, turn); l.asked && len(l.round) == 0 {
		delete(r.reads.rounds, l.number) // nobody needs its answer
		l.asked = false
	}
}

func (r *Replica) askLeaderInstead(w waitingRead) {
	r.count.QuorumFallbacks++
	w.begun = r.ticks
	w.call.waiting = "the leader to confirm the read, after a majority did not in time"
	r.await(w, question{viaCore, w.spans})
}

// askEnds asks the voters without an answer so far.
func (r *Replica) askEnds() {
	q := &r.reads.quorum
	q.askedAt = r.ticks
	for _, id := range r.votersOf(q.conf) {
		if _, ok := q.ends[id]; !ok && id != r.cfg.ID {
			r.askLogEnd(id, q.number)
		}
	}
}

// votersOf returns the voters of both halves, each once, ascending.
func (r *Replica) votersOf(c *pb.ConfState) []uint64 {
	ids := slices.Concat(c.GetVoters(), c.GetVotersOutgoing())
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (r *Replica) votesIn(c *pb.ConfState) bool { return slices.Contains(r.votersOf(c), r.cfg.ID) }

// receiveLogEnd answers a question, or takes an answer.
func (r *Replica) receiveLogEnd(from uint64, m wire.LogEnd) {
	q := &r.reads.quorum
	if !m.Answer {
		r.drain() // an append in this turn may have made the log longer
		if r.last > 0 && r.losses.own.heartbeats == 0 && r.err == nil {
			m.Answer, m.Index, m.First = true, r.last, r.founding.digest
			r.post(from, m)
		} // else this node has lost its log, or has never had one
		return
	}
	if m.Boot == r.reads.boot && m.Number&inquiryBit != 0 {
		r.changes.inquiries.answered(from, m.Number)
		return
	}
	if !q.asked || m.Boot != r.reads.boot || m.Number != q.number || !slices.Contains(r.votersOf(q.conf), from) {
		return // to an earlier question
	}
	q.ends[from] = max(q.ends[from], m.Index)
	r.countEnds()
}

// countEnds ends the round if a majority has answered.
func (r *Replica) countEnds() {
	q := &r.reads.quorum
	var sets quorum.JointConfig
	for i, ids := range [][]uint64{q.conf.GetVoters(), q.conf.GetVotersOutgoing()} {
		sets[i] = quorum.MajorityConfig{}
		for _, id := range ids {
			sets[i][id] = struct{}{}
		}
	}
	votes, index := map[uint64]bool{}, uint64(0)
	for id, end := range q.ends {
		votes[id], index = true, max(index, end)
	}
	if len(sets[0]) == 0 || sets.VoteResult(votes) != quorum.VoteWon {
		return
	}
	for _, w := range q.round {
		r.reads.confirm(confirmedRead{waitingRead: w, index: index, asOf: -1, by: ServedByQuorum, conf: q.conf})
	}
	q.round, q.asked, q.ends = nil, false, nil
}

// quorumFailed reports whether a majority's word is not enough to end a read, and has the
// read ask again.
func (r *Replica) quorumFailed(c confirmedRead) bool {
	switch {
	case c.index > r.applied.at.index:
		if !r.quorumLate(c.waitingRead) {
			return false
		}
		r.askLeaderInstead(c.waitingRead)
	case c.conf != r.applied.conf:
		r.count.QuorumRestarts++
		r.await(c.waitingRead, question{route: viaQuorum})
	default:
		return false
	}
	return true
}
