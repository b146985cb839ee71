// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// oddMessage steps a message that arrives by mistake: from outside the group, of a type sent only
// by a node's own host, at the wrong time, or malformed.
func (s *schedule) oddMessage(m *member) {
	msg := s.drawOdd(m)
	s.odd = true
	s.stepMessage(m, [2]*pb.Message{cloneOf(msg), msg})
	s.odd = false
}

func (s *schedule) drawOdd(m *member) *pb.Message {
	st := &m.state
	term := st.HardState.GetTerm()
	msg := &pb.Message{From: new(s.peerID()), To: new(m.id)}
	typ := func(t pb.MessageType) *pb.Message { msg.Type = &t; return msg }
	inTerm := func(t pb.MessageType) *pb.Message { msg.Term = new(term); return typ(t) }
	switch s.IntN(12) {
	case 0: // only a host sends these
		return typ(pick(s.chance, pb.MsgHup, pb.MsgBeat, pb.MsgCheckQuorum, pb.MsgUnreachable, pb.MsgSnapStatus,
			pb.MsgStorageAppend, pb.MsgStorageApply, pb.MsgStorageAppendResp, pb.MsgStorageApplyResp))
	case 1: // answers to questions that were not asked
		return inTerm(pick(s.chance, pb.MsgAppResp, pb.MsgVoteResp, pb.MsgHeartbeatResp, pb.MsgPreVoteResp, pb.MsgReadIndexResp))
	case 2: // a type of a later version
		return inTerm(pb.MessageType(s.between(23, 40)))
	case 3:
		return inTerm(pb.MsgTimeoutNow)
	case 4: // a read of another node
		msg.Entries = []*pb.Entry{{Data: s.bytes(6)}}
		return typ(pb.MsgReadIndex)
	case 5:
		return typ(pb.MsgTransferLeader)
	case 6:
		return typ(pb.MsgForgetLeader)
	case 7: // an outdated leader
		msg.Term, msg.Commit = new(term-min(term, 1)), new(uint64(0))
		return typ(pick(s.chance, pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap))
	case 8: // a stray vote request, of the present or a later term
		msg.Term = new(term + uint64(s.between(0, 2)))
		msg.LogTerm, msg.Index = new(uint64(s.IntN(5))), new(st.HardState.GetCommit()+uint64(s.IntN(3)))
		return typ(pick(s.chance, pb.MsgVote, pb.MsgPreVote))
	case 9: // a read answer with a number of entries other than 1
		msg.Entries = slices.Repeat([]*pb.Entry{{Data: []byte("r")}}, s.IntN(3))
		return inTerm(pb.MsgReadIndexResp)
	default:
		return s.drawMalformed(m, msg)
	}
}

// drawMalformed makes a message on which upstream panics, at least in some state.
func (s *schedule) drawMalformed(m *member, msg *pb.Message) *pb.Message {
	term := m.state.HardState.GetTerm()
	switch s.IntN(5) {
	case 0:
		msg.Type = pb.MsgProp.Enum()
	case 1:
		msg.Type, msg.Entries = pb.MsgProp.Enum(), []*pb.Entry{{Type: pb.EntryConfChange.Enum(), Data: []byte{0xff, 0xff}}}
	case 2:
		msg.Type = pb.MsgReadIndex.Enum()
	case 3:
		msg.Type, msg.Term, msg.Context = pb.MsgHeartbeatResp.Enum(), new(term), []byte{1, 2}
	case 4:
		msg.Type, msg.Term, msg.Commit = pb.MsgHeartbeat.Enum(), new(term), new(m.state.HardState.GetCommit()+1000)
	}
	return msg
}

// breakContract makes a call that a host must not make.
func (s *schedule) breakContract(m *member) {
	switch s.IntN(4) {
	case 0: // without a Ready, or with asynchronous writes
		if m.hand == nil {
			s.note(m, "Advance out of turn")
			_ = s.on(m, "Advance out of turn", func(_ int, c core) error { c.Advance(raft.Ready{}); return nil })
		}
	case 1: // sometimes a second Ready before Advance
		if m.hand != nil && !m.written {
			s.writeReady(m)
		}
		s.takeReady(m)
	case 2:
		var peers []raft.Peer
		if _, last, _ := m.disk[0].bounds(); last > 0 && s.oneIn(2) {
			peers = []raft.Peer{{ID: m.id}}
		}
		s.note(m, "Bootstrap out of turn")
		_ = s.on(m, "Bootstrap out of turn", func(_ int, c core) error { return c.Bootstrap(peers) })
	case 3:
		s.note(m, "Step nil")
		_ = s.on(m, "Step nil", func(_ int, c core) error { return c.Step(nil) })
	}
}
