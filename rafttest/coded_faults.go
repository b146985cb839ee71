// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// This file is the faults of coding, and the operators' answers.

// beginCoded plans the first of each kind of fault.
func (f *faults) beginCoded(seed uint64) {
	c := f.s.plan.coded
	if c == nil {
		return
	}
	f.every(c.upgrade, f.upgrade)
	f.every(c.dense, f.densify)
	f.every(c.replace, f.s.replaceMembers)
	f.every(c.blackout, f.blackout)
	f.beginFalls()
	f.beginBrief(seed)
	f.s.After(watchEvery, f.s.check.watch)
}

// spoil lets a message with units get lost or damaged on its way. The result is
// the message to send, or nil.
func (s *sim) spoil(m *pb.Message) *pb.Message {
	c := s.plan.coded
	if c == nil || s.calm() {
		return m
	}
	if m.GetType() == pb.MsgAppResp && len(m.GetContext()) > 0 && s.reports.Chance(c.reportLoss) {
		s.coded.ReportsLost++
		m = proto.Clone(m).(*pb.Message)
		m.Context = nil
	}
	if m.GetType() != raft.MsgUnits && m.GetType() != raft.MsgUnitsAsk {
		return m
	}
	if s.Now() < s.node(m.GetTo()).starvedUntil && m.GetType() == raft.MsgUnits {
		s.coded.Starved++
		return nil
	}
	if s.net2.Chance(c.unitLoss) || s.losesPush(m) {
		s.coded.UnitsLost++
		return nil
	}
	switch {
	case m.GetType() != raft.MsgUnits:
		return m
	case s.net2.Chance(c.unitLies):
		return s.lie(m)
	case !s.net2.Chance(c.unitCorrupt):
		return m
	}
	m = proto.Clone(m).(*pb.Message)
	for _, e := range m.GetEntries() {
		if n := len(e.GetData()); n > 0 {
			e.Data[s.net2.IntN(n)] ^= byte(1 + s.net2.IntN(255))
			s.coded.UnitsCorrupted++
			break
		}
	}
	return m
}

// lie changes the units in a message into the units of another payload: each
// unit has a right checksum, and the restored payload has not.
func (s *sim) lie(m *pb.Message) *pb.Message {
	m = proto.Clone(m).(*pb.Message)
	for _, e := range m.GetEntries() {
		fact := s.check.truth.Fact(entryName{e.GetIndex(), e.GetTerm()}.id())
		units, err := gossip.ParseUnits(e.GetData())
		if err != nil || fact == nil || fact.Header == nil || fact.Header.Kind != ecraft.Coded {
			continue
		}
		payload := make([]byte, fact.Header.PayloadLen)
		for i := range payload {
			payload[i] = byte(s.net2.Uint32())
		}
		word := ecraft.NewCodeword(fact.Header, payload)
		for i, u := range units {
			units[i] = word.Strip(u.Slot, u.First, u.Count)
		}
		e.Data = gossip.AppendUnits(nil, units...)
		s.coded.UnitsWrong++
	}
	return m
}

// blackout takes the power from all nodes.
func (f *faults) blackout() {
	f.s.coded.WholeRestarts++
	f.s.tell(0, "blackout")
	for _, n := range f.s.nodes {
		f.crash(n)
	}
}

// killMany lets nodes lose power, most of the time, as the calm begins: so that
// as many as may be dead are.
func (f *finale) killMany() {
	s := f.s
	if c := s.plan.coded; c == nil || !s.rng.Chance(c.dead) {
		return
	}
	share := s.rng.Float64()
	for _, n := range s.nodes {
		if n.up() && s.rng.Chance(share) {
			n.crash(false)
		}
	}
}

// upgrade restarts, with coding, a node that runs without.
func (f *faults) upgrade() {
	s := f.s
	for _, n := range s.nodes {
		if n.uncoded && n.up() && !n.paused {
			s.coded.Upgrades++
			s.turnCoding(n, true)
			return
		}
	}
}

// turnCoding restarts a node's process with coding on or off.
func (s *sim) turnCoding(n *node, on bool) {
	s.tell(n.id, "coding turns to %v", on)
	n.uncoded = !on
	if n.up() {
		n.crash(true)
		n.restart()
	}
}

// densify asks all nodes for a log without coded entries. When it is so
// everywhere, nodes are restarted without coding, and some time later with it
// again.
func (f *faults) densify() {
	s := f.s
	if s.densifying {
		return
	}
	s.tell(0, "densify")
	s.densifying = true
	s.setDensify()
	f.awaitDense(20)
}

// awaitDense looks whether the log is dense, some times.
func (f *faults) awaitDense(tries int) {
	s := f.s
	s.After(50*time.Millisecond, func() {
		switch {
		case s.calm() || !s.densifying:
			return
		case tries == 0:
			s.densifying = false
			s.setDensify()
		case !s.mayRunPlain():
			s.setDensify()
			f.awaitDense(tries - 1)
		default:
			s.coded.Densified++
			for _, n := range s.nodes {
				if n.up() && !n.paused && s.rng.Chance(0.5) {
					s.coded.Downgrades++
					s.turnCoding(n, false)
				}
			}
			s.After(s.rng.Span(10*time.Millisecond, time.Second), s.endDense)
		}
	})
}

// setDensify tells all nodes that run whether to make their logs dense.
func (s *sim) setDensify() {
	for _, n := range s.running() {
		if p, ok := n.proc.(*coreProcess); ok && !n.uncoded && !n.paused {
			p.rn.Densify(s.densifying)
			p.did(nil)
		}
	}
}

// mayRunPlain reports whether nodes may run without coding: all know that no
// coded entries are to be made, no disk has a coded entry, and no node lacks an
// entry that another has ever had, so that no entry is on its way.
func (s *sim) mayRunPlain() bool {
	if !s.dense() {
		return false
	}
	for _, n := range s.nodes {
		if n.disk == nil {
			continue
		}
		if !n.up() && !n.retired || n.paused || n.disk.durable.state.commit < s.check.lastCoded {
			return false
		}
	}
	return true
}

// endDense restarts, with coding, the nodes that run without.
func (s *sim) endDense() {
	if !s.densifying || s.finale.isLive() {
		return
	}
	s.densifying = false
	for _, n := range s.nodes {
		if n.uncoded && s.plan.coded.late>>n.id&1 == 0 {
			s.turnCoding(n, true)
		}
	}
	s.setDensify()
}

// impatient reports whether operators need not wait between changes of the
// members although a crash may tear a write: nodes that code want the majorities
// of every configuration in their log that they have not applied.
func (s *sim) impatient() bool {
	return s.plan.coded != nil && s.plan.coded.impatient && !slices.ContainsFunc(s.nodes, func(n *node) bool { return n.uncoded })
}

// replaceMembers changes several voters at a time: it puts fresh nodes in the
// place of as many as two, or takes two away.
func (s *sim) replaceMembers() {
	n := s.leading()
	if n == nil || n.paused {
		return
	}
	conf, may := s.membersAt(n)
	if !may || isJoint(conf) || s.plan.joints.simpleOnly(&s.plan) {
		return
	}
	voters := slices.Clone(conf.GetVoters())
	var fresh []uint64
	for _, id := range s.allIDs() {
		if !isMember(conf, id) {
			fresh = append(fresh, id)
		}
	}
	s.rng.Shuffle(len(voters), func(i, j int) { voters[i], voters[j] = voters[j], voters[i] })
	var changes []*pb.ConfChangeSingle
	do := func(typ pb.ConfChangeType, id uint64) {
		changes = append(changes, &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: &id})
	}
	shrink := len(voters) >= 5 && s.rng.Chance(0.5)
	if !shrink && len(fresh) == 0 {
		return
	}
	for i, id := range voters[:2*min(1, len(voters)/3)] {
		if !shrink {
			if i >= len(fresh) {
				break
			}
			s.join(fresh[i])
			do(pb.ConfChangeAddNode, fresh[i])
		}
		do(pb.ConfChangeRemoveNode, id)
	}
	if len(changes) == 0 {
		return
	}
	if shrink {
		s.coded.Shrinks++
	} else {
		s.coded.Replacements++
	}
	cc := &pb.ConfChangeV2{Changes: changes, Transition: world.Pick(s.rng, pb.ConfChangeTransitionAuto,
		pb.ConfChangeTransitionJointImplicit, pb.ConfChangeTransitionJointExplicit).Enum()}
	s.tell(n.id, "propose: %s", changeString(cc))
	n.proc.change(cc)
}
