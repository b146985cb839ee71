// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// turn makes the host do all its pending work.
func (s *schedule) turn(m *member) {
	if m.cfg.AsyncStorageWrites {
		if m.core[0].HasReady() {
			s.takeReady(m)
		}
		for m.running() && s.doomed == nil && len(m.appends)+len(m.applies)+len(m.acks) > 0 {
			if s.asyncPart(m); m.slow {
				return
			}
		}
		return
	}
	if m.hand == nil && m.core[0].HasReady() {
		s.takeReady(m)
	}
	for m.running() && s.doomed == nil && (m.hand != nil || len(m.toApply) > 0) {
		if s.syncPart(m); m.slow {
			return
		}
	}
}

// partOfTurn makes the host do one piece of work, so that other calls come between.
func (s *schedule) partOfTurn(m *member) {
	switch {
	case m.cfg.AsyncStorageWrites:
		if s.oneIn(3) && m.core[0].HasReady() {
			s.takeReady(m)
		} else {
			s.asyncPart(m)
		}
	case m.hand == nil && (len(m.toApply) == 0 || s.oneIn(2)):
		// Hosts look first, but need not.
		if m.core[0].HasReady() || s.oneIn(8) {
			s.takeReady(m)
		}
	default:
		s.syncPart(m)
	}
}

// takeReady takes a Ready from both sides and compares the two.
func (s *schedule) takeReady(m *member) {
	var rds [2]raft.Ready
	s.note(m, "Ready")
	_ = s.on(m, "Ready", func(side int, c core) error { rds[side] = c.Ready(); return nil })
	if !m.running() {
		return
	}
	s.compareReady(m, &rds)
	if !m.cfg.AsyncStorageWrites {
		m.hand, m.written = &rds, false
		return
	}
	for i := range rds[0].Messages {
		p := packet{[2]*pb.Message{rds[0].Messages[i], rds[1].Messages[i]}}
		switch p.to() {
		case raft.LocalAppendThread:
			m.appends = append(m.appends, p)
		case raft.LocalApplyThread:
			m.applies = append(m.applies, p)
		default:
			s.send(p.m)
		}
	}
}

// compareReady compares a Ready in every detail, and for some calls also its texts.
func (s *schedule) compareReady(m *member, rds *[2]raft.Ready) {
	var sum [2]fingerprint
	for side := range rds {
		sum[side].ready(rds[side])
	}
	if sum[0] != sum[1] {
		s.differ("Ready", rds[0], rds[1])
	}
	s.tallyReady(&rds[0])
	s.watch(m, "a Ready", func(side int) func() fingerprint {
		rd := rds[side]
		return func() (h fingerprint) { h.ready(rd); return h }
	})
	if s.oneIn(8) {
		f := pick(s.chance, nil, raft.EntryFormatter(short))
		if a, b := s.libs[0].describeReady(rds[0], f), s.libs[1].describeReady(rds[1], f); a != b {
			s.differ("DescribeReady", a, b)
		}
		s.tally.Hit("ready: described")
	}
}

// syncPart does the next piece of work for the Ready in hand: write the Ready and send its
// messages, apply its entries, or call Advance.
func (s *schedule) syncPart(m *member) {
	switch {
	case m.hand != nil && s.stalls(m):
	case m.hand != nil && !m.written:
		s.writeReady(m)
	case m.hand != nil && (len(m.toApply) == 0 || s.plan.earlyAdvance && s.oneIn(2)):
		s.advance(m)
	case len(m.toApply) > 0:
		ents := m.toApply[0]
		m.toApply = m.toApply[1:]
		s.apply(m, ents)
	}
}

func (s *schedule) advance(m *member) {
	m.hand = nil
	s.note(m, "Advance")
	_ = s.on(m, "Advance", func(_ int, c core) error { c.Advance(raft.Ready{}); return nil })
}

func (s *schedule) writeReady(m *member) {
	m.written = true
	rds := m.hand
	s.write(m, func(side int) (*pb.HardState, []*pb.Entry, *pb.Snapshot) {
		rd := &rds[side]
		if s.plan.lazy && !rd.MustSync && rd.Snapshot == nil {
			return nil, nil, nil
		}
		return rd.HardState, rd.Entries, rd.Snapshot
	})
	if len(rds[0].CommittedEntries) > 0 {
		m.toApply = append(m.toApply, pairOfEntries{rds[0].CommittedEntries, rds[1].CommittedEntries})
	}
	for i := range rds[0].Messages {
		s.send([2]*pb.Message{rds[0].Messages[i], rds[1].Messages[i]})
	}
}

// write makes something durable on both sides.
func (s *schedule) write(m *member, what func(side int) (*pb.HardState, []*pb.Entry, *pb.Snapshot)) {
	s.note(m, "write")
	_, _ = s.both(m, "write", func(side int) error {
		hs, ents, snap := what(side)
		return m.disk[side].write(hs, ents, snap)
	})
	if _, _, snap := what(0); snap.GetMetadata().GetIndex() > m.machine.applied {
		m.machine = restored(snap.GetMetadata().GetIndex(), snap.GetMetadata().GetConfState())
	}
	s.compareDisks(m, 8)
}

// asyncPart does the next piece of work for a storage thread.
func (s *schedule) asyncPart(m *member) {
	switch which := s.IntN(3); {
	case which == 0 && len(m.appends) > 0 && !s.stalls(m):
		p := m.appends[0]
		m.appends = m.appends[1:]
		s.writeAppend(m, p)
		if m.running() {
			s.route(m, p)
		}
	case which == 1 && len(m.applies) > 0:
		p := m.applies[0]
		m.applies = m.applies[1:]
		s.apply(m, pairOfEntries{p.m[0].GetEntries(), p.m[1].GetEntries()})
		if m.running() {
			s.route(m, p)
		}
	case which == 2 && len(m.acks) > 0 && !s.stalls(m):
		p := m.acks[0]
		m.acks, m.reported = m.acks[1:], p
		s.stepMessage(m, [2]*pb.Message{cloneOf(p.m[0]), cloneOf(p.m[1])})
	}
}

// writeAppend writes the contents of a MsgStorageAppend.
func (s *schedule) writeAppend(m *member, p packet) {
	s.write(m, func(side int) (*pb.HardState, []*pb.Entry, *pb.Snapshot) {
		msg := p.m[side]
		if s.plan.lazy && len(msg.GetResponses()) == 0 {
			return nil, nil, nil
		}
		var hs *pb.HardState
		if msg.Term != nil || msg.Vote != nil || msg.Commit != nil {
			hs = &pb.HardState{Term: msg.Term, Vote: msg.Vote, Commit: msg.Commit}
		}
		return hs, msg.GetEntries(), msg.Snapshot
	})
}

// route sends the responses of finished work: responses for peers over the network, responses for
// the own node in order.
func (s *schedule) route(m *member, p packet) {
	for i := range p.m[0].GetResponses() {
		r := packet{[2]*pb.Message{p.m[0].GetResponses()[i], p.m[1].GetResponses()[i]}}
		if r.to() == m.id {
			m.acks = append(m.acks, r)
		} else {
			s.send(r.m)
		}
	}
}
