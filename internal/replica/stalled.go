// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// A log that does not get on is not a failure: the log keeps its waiting writes, acknowledges
// nothing, and goes on when it can. The reason may be a full disk, of which the log knows. A state
// machine without room does the same: its Apply waits. Or the disk is late: the disk hangs, without an
// error, and no write has ended for an election timeout (lateness). Until the log gets on, this
// node is of little use to its group, and must not stand in the group's way:
//
//   - the node takes no new commands, because their outcome would be unknown;
//   - a node that leads hands over. The node cannot know which voters have room, so it
//     tries one voter after the other, in the order of their logs, the longest first;
//   - the node does not campaign, and ignores a call to campaign from a leader that hands
//     over. The node's core goes on to measure the leader's silence: only a member that
//     knows of the silence votes for another (raft.Config.CheckQuorum), and a node with a
//     full disk often has room left for a vote. If nobody leads for a while, a full node may
//     be the only possible winner, because the others lack some of its entries: then the
//     node does campaign, and hands over. A late disk takes no vote either, so a late node
//     never campaigns.
//
// The node goes on to receive entries, up to the bounds of its group's leader.
//
// A node is in one of these states:
//
//  1. the log gets on: facts.stalled is nil;
//  2. full: facts.stalled is the driver's reason;
//  3. late: facts.stalled wraps storage.ErrLate.
//
// Each change between 1 and the others begins a spell. A leader in 2 or 3 tries to hand over, and one in 3 falls
// silent in the end.
//
// Invariant: full implies that facts.stalled is full.
// Invariant: tried > 0 implies that facts.stalled is not nil; silent implies tried > 0.
type stalling struct {
	*facts
	placing    *placing
	transferTo func(to uint64)

	full error // the driver's reason; a full disk is not late
	lateness
	spell
}

// spell is a time with a stall, or a time without one.
type spell struct {
	tried  uint64 // transfers
	lastAt uint64 // tick of the last
	ledAt  uint64 // tick at which this node has last heard of a leader, or of the beginning
	silent bool   // a leader whose transfer has failed is silent: see silenced
}

// lastResort is the number of election timeouts without a leader before a stalled node
// campaigns: in less time, a node with room is elected if any can win.
const lastResort = 4

// decide takes the reason for a stall, or nil, from what is known.
func (s *stalling) decide() {
	reason := s.full
	if reason == nil {
		reason = s.lateness.reason(s.ticks, s.cfg.ElectionTick)
	}
	if (reason == nil) != (s.stalled == nil) {
		s.spell = spell{ledAt: s.ticks}
		if reason != nil {
			s.count.Stalls++
		}
	}
	s.stalled = reason
}

// look looks whether the log gets on. The log's own word, if there is one, has the writes of all
// groups, so that one group's write that hangs moves the leaders of all.
func (s *stalling) look(w *writes) {
	ended, waits := w.durable, w.durable < w.handedOut
	if l, ok := s.cfg.Log.(interface {
		Progress() (ended uint64, waits bool)
	}); ok {
		e, w := l.Progress()
		ended, waits = ended+e, waits || w
	}
	s.lateness.look(ended, waits, s.ticks)
	s.decide()
}

// late reports whether the log stalls because its disk is late.
func (s *stalling) late() bool { return s.stalled != nil && s.full == nil }

// handOver tries to give leadership away while the log is stalled: a transfer
// that does not succeed has ended, at the latest, after an election timeout.
func (s *stalling) handOver() {
	if s.stalled == nil || !s.leads() || s.tried > 0 && s.ticks-s.lastAt <= uint64(s.cfg.ElectionTick) {
		return
	}
	if s.late() {
		switch s.standing() {
		case level:
			return // nobody is known to do better
		case outrun:
			if s.tried > 0 { // nobody has taken over
				s.fallSilent()
				return
			}
		}
	}
	heirs := s.placing.heirs(s.host.conf.GetVoters())
	if len(heirs) == 0 {
		return
	}
	to := heirs[s.tried%uint64(len(heirs))]
	s.tried++
	s.lastAt = s.ticks
	if s.late() {
		s.count.HandOversLate++
	} else {
		s.count.HandOversFull++
	}
	s.transferTo(to)
}

// quiet reports whether the core must not campaign at this tick: the core of a stalled node campaigns
// as a last resort alone.
func (s *stalling) quiet() bool {
	s.ledAt = max(s.ledAt, s.heard[s.state.Lead])
	return s.stalled != nil && s.core.State().Role != raft.StateLeader && (s.late() || s.ticks-s.ledAt <= uint64(lastResort*s.cfg.ElectionTick))
}

// fallSilent ends a leadership that nobody takes over: see silenced.
func (s *stalling) fallSilent() {
	if !s.silent {
		s.silent = true
		s.count.Silences++
	}
}

// silenced reports whether a message of the core is lost because this leader is silent. The
// followers then elect another, and the core, which gets no answers, steps down. Both cores can do
// that, and no safety rests on it: any network may lose these messages.
func (s *stalling) silenced(m *pb.Message) bool {
	if !s.silent || !s.leads() {
		return false
	}
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap:
		return true
	}
	return false
}
