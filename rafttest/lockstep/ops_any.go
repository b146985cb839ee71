// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"math"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// anyMessage steps a message of any type with any fields, in the groups in which a peer sends such
// messages. Their effects may be wrong, and the libraries must agree on them nevertheless: Weft may
// refuse a message, and from then on also what a safe group does not send.
func (s *schedule) anyMessage(m *member) {
	if !s.plan.hostile {
		return
	}
	msg := s.drawAny(m)
	s.odd, s.safety.lost = true, true
	s.stepMessage(m, [2]*pb.Message{cloneOf(msg), cloneOf(msg)})
	s.odd = false
}

func (s *schedule) drawAny(m *member) *pb.Message {
	term, commit := m.state.HardState.GetTerm(), m.state.HardState.GetCommit()
	_, last, _ := m.disk[0].bounds()
	msg := &pb.Message{
		To: new(m.id), From: new(s.anyID()), Term: s.near(term), LogTerm: s.near(term), Index: s.near(pick(s.chance, commit, last)),
		Commit: s.near(pick(s.chance, commit, last)), Vote: s.near(1), RejectHint: s.near(last),
		Reject:  pick(s.chance, nil, new(false), new(true)),
		Context: pick(s.chance, nil, []byte{}, []byte{1, 0, 0, 0, 0, 0, 0, 0}, s.bytes(s.IntN(12)), []byte("CampaignTransfer")),
	}
	if s.oneIn(3) && last > 0 { // an entry that the member has
		msg.Index = new(pick(s.chance, commit, last))
		if t, err := m.disk[0].memory.Term(msg.GetIndex()); err == nil {
			msg.LogTerm = &t
		}
	}
	for t := s.drawAnyType(); ; t = s.drawAnyType() {
		msg.Type = &t
		from := msg.GetFrom()
		thread := from == raft.LocalAppendThread || from == raft.LocalApplyThread
		// The host's own threads report what has happened, and speak for nobody else.
		if !thread || t == pb.MsgHup || t == pb.MsgBeat || t == pb.MsgCheckQuorum || t == pb.MsgStorageAppend || t == pb.MsgStorageApply {
			break
		}
	}
	if s.oneIn(2) {
		s.addEntries(msg)
	}
	if msg.GetType() == pb.MsgSnap || s.oneIn(10) {
		s.addSnapshot(m, msg, last)
	}
	return msg
}

func (s *schedule) drawAnyType() pb.MessageType { return pb.MessageType(s.IntN(30)) }

// near draws a field: absent, close to x, or at the end of the range.
func (s *schedule) near(x uint64) *uint64 {
	switch s.IntN(30) {
	case 0:
		return new(pick[uint64](s.chance, 1<<61, 1<<62+1, 1<<63, math.MaxUint64-1, math.MaxUint64))
	case 1:
		return new(uint64(0))
	case 2, 3:
		return nil
	}
	return new(x - min(x, uint64(s.IntN(2))) + uint64(s.IntN(2)))
}

// addEntries adds entries that mostly follow what the message says to stand before them.
func (s *schedule) addEntries(msg *pb.Message) {
	at := msg.GetIndex()
	for range s.between(1, 3) {
		at++
		e := &pb.Entry{Index: new(at), Term: new(min(msg.GetTerm(), msg.GetLogTerm()+uint64(s.IntN(2)))), Data: s.payload()}
		if s.oneIn(10) {
			e.Index, e.Term = s.near(at), s.near(msg.GetTerm())
		}
		msg.Entries = append(msg.Entries, e)
	}
}

// addSnapshot adds a snapshot with members that may be impossible. Its term is not above the
// message's, as the term of a log's end is not above its leader's.
func (s *schedule) addSnapshot(m *member, msg *pb.Message, last uint64) {
	msg.Snapshot = &pb.Snapshot{Data: s.payload(), Metadata: &pb.SnapshotMetadata{
		Index: s.near(last), Term: new(msg.GetTerm() - min(msg.GetTerm(), uint64(s.IntN(2)))),
		ConfState: pick(s.chance, nil,
			&pb.ConfState{Voters: s.plan.voters},
			&pb.ConfState{Voters: s.plan.voters, Learners: s.plan.learners},
			&pb.ConfState{Voters: s.plan.ids},
			&pb.ConfState{Learners: []uint64{m.id}},
			&pb.ConfState{Voters: []uint64{m.id}, Learners: []uint64{m.id}},
			&pb.ConfState{Voters: []uint64{m.id, m.id}},
			&pb.ConfState{Voters: s.plan.voters, VotersOutgoing: []uint64{m.id}, LearnersNext: []uint64{m.id}, AutoLeave: new(true)},
			&pb.ConfState{VotersOutgoing: []uint64{m.id}}),
	}}
	if s.oneIn(10) {
		msg.Snapshot.Metadata = nil
	}
}
