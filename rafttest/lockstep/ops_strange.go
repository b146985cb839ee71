// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// The ops of this file are for every fourth schedule only, so that seeds listed before keep their
// meaning: what a host or a network does by mistake, and what only a later version would send.

// strangeProposal proposes entries that no version of today makes.
func (s *schedule) strangeProposal(m *member) {
	m = s.proposer(m)
	msg := &pb.Message{Type: pb.MsgProp.Enum(), From: new(s.anyID()), Term: pick(s.chance, nil, new(uint64(0)))}
	for range s.between(1, 3) {
		msg.Entries = append(msg.Entries, s.strangeEntry())
	}
	leads := m.state.SoftState.RaftState == raft.StateLeader
	switch {
	case s.oneIn(8): // a nil entry becomes an empty one on the wire, so only a host of the leader has it
		if leads {
			msg.Entries = append(msg.Entries, nil)
		}
	case s.oneIn(8) && leads: // upstream appends the change, and every node panics when it is applied
		cc := &pb.ConfChangeV2{Transition: new(pb.ConfChangeTransition(s.between(3, 9))), Changes: []*pb.ConfChangeSingle{{}}}
		typ, data, err := pb.MarshalConfChange(cc)
		if err != nil {
			s.fail("a configuration change cannot be marshalled", err.Error())
		}
		msg.Entries = append(msg.Entries, &pb.Entry{Type: typ.Enum(), Data: data})
	}
	s.odd = true
	s.stepMessage(m, [2]*pb.Message{cloneProposal(msg), msg})
	s.odd = false
}

// cloneProposal keeps nil entries, of which proto.Clone makes empty ones.
func cloneProposal(m *pb.Message) *pb.Message {
	c := cloneOf(m)
	for i, e := range m.GetEntries() {
		if e == nil {
			c.Entries[i] = nil
		}
	}
	return c
}

func (s *schedule) strangeEntry() *pb.Entry {
	e := &pb.Entry{Data: s.payload()}
	switch s.IntN(4) {
	case 0: // a type of a later version
		e.Type = new(pb.EntryType(s.between(3, 9)))
	case 1: // a change without data: of node 0, or one that leaves
		e.Type, e.Data = pick(s.chance, pb.EntryConfChange, pb.EntryConfChangeV2).Enum(), pick(s.chance, nil, []byte{})
	case 2: // a kind of change of a later version
		cc := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: new(pb.ConfChangeType(s.between(4, 9))), NodeId: new(s.drawTarget())}}}
		typ, data, err := pb.MarshalConfChange(cc)
		if err != nil {
			s.fail("a configuration change cannot be marshalled", err.Error())
		}
		e.Type, e.Data = typ.Enum(), data
	}
	return e
}

// repeatReport makes a storage thread deliver its last report to its own node again.
func (s *schedule) repeatReport(m *member) {
	if m.reported.m[0] != nil {
		s.stepMessage(m, [2]*pb.Message{cloneOf(m.reported.m[0]), cloneOf(m.reported.m[1])})
	}
}

// misdeliver delivers a message to another member than the one it is for.
func (s *schedule) misdeliver(m *member) {
	if len(s.net) == 0 {
		return
	}
	p := s.net[s.IntN(len(s.net))]
	if p.to() == m.id || m.prematureVote(p.m[0]) {
		return
	}
	s.odd, s.safety.lost = true, true
	s.stepMessage(m, [2]*pb.Message{s.carry(p.m[0]), s.carry(p.m[1])})
	s.odd = false
}

// farAhead steps a message of a term that no member is near to.
func (s *schedule) farAhead(m *member) {
	term := m.state.HardState.GetTerm() + pick[uint64](s.chance, 10, 1000, 1<<40)
	typ := pick(s.chance, pb.MsgVote, pb.MsgPreVote, pb.MsgVoteResp, pb.MsgPreVoteResp, pb.MsgAppResp, pb.MsgHeartbeatResp,
		pb.MsgTimeoutNow, pb.MsgReadIndexResp, pb.MsgHeartbeat, pb.MsgApp)
	from := s.anyID()
	if from == raft.LocalAppendThread || from == raft.LocalApplyThread {
		return
	}
	msg := &pb.Message{Type: &typ, From: &from, To: new(m.id), Term: &term, Reject: pick(s.chance, nil, new(true)),
		LogTerm: new(m.state.HardState.GetTerm()), Index: new(m.state.HardState.GetCommit())}
	s.odd, s.safety.lost = true, true
	s.stepMessage(m, [2]*pb.Message{cloneOf(msg), msg})
	s.odd = false
}

// readOfSeveral asks for a read with several entries, or with a nil one.
func (s *schedule) readOfSeveral(m *member) {
	msg := &pb.Message{Type: pb.MsgReadIndex.Enum(), From: pick(s.chance, nil, new(s.peerID())), Entries: []*pb.Entry{{Data: s.payload()}, {Data: s.payload()}}}
	if m.state.SoftState.RaftState == raft.StateLeader && s.oneIn(3) {
		msg.Entries[0] = nil
	}
	s.odd = true
	s.stepMessage(m, [2]*pb.Message{cloneProposal(msg), msg})
	s.odd = false
}

// overreach makes a call by which a host takes the group's members into its own hands.
func (s *schedule) overreach(m *member) {
	s.safety.lost = true
	if _, last, _ := m.disk[0].bounds(); last == 0 && s.oneIn(2) {
		first := make([]raft.Peer, s.between(1, 4))
		for i := range first {
			first[i] = raft.Peer{ID: s.drawTarget(), Context: s.payload()}
		}
		usual := m.first
		m.first = first
		s.bootstrap(m)
		m.first = usual
		return
	}
	cc := s.drawConfChange()
	var states [2]*pb.ConfState
	s.note(m, "ApplyConfChange of a change that is not in the log", cc)
	_ = s.on(m, "ApplyConfChange of a change that is not in the log", func(side int, c core) error {
		states[side] = c.ApplyConfChange(cc)
		return nil
	})
	if m.running() {
		s.sameConfStates(states)
	}
}

// quiesce makes members count ticks, as hosts do with idle groups, and then wakes one of them.
func (s *schedule) quiesce(m *member) {
	n := s.between(1, 3*m.timeout())
	for _, other := range s.members {
		for range n {
			if other.running() && s.doomed == nil {
				s.tickQuiesced(other)
			}
		}
	}
	if m.running() && s.doomed == nil {
		s.tick(m)
	}
}
