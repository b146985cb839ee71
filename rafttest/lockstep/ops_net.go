// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
)

// netLimit bounds the messages on their way; the oldest is lost to make room.
const netLimit = 300

// send puts messages on their way.
func (s *schedule) send(m [2]*pb.Message) {
	if len(s.net) == netLimit {
		s.net = slices.Delete(s.net, 0, 1)
	}
	s.net = append(s.net, packet{m})
}

func (s *schedule) memberOf(id uint64) *member {
	for _, m := range s.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

// drawPacket returns the position of a message: the oldest message to m if the network keeps order,
// and otherwise any message.
func (s *schedule) drawPacket(m *member) (int, bool) {
	if len(s.net) == 0 {
		return 0, false
	}
	if !s.plan.inOrder && s.oneIn(2) {
		return s.IntN(len(s.net)), true
	}
	i := slices.IndexFunc(s.net, func(p packet) bool { return p.to() == m.id })
	if i < 0 {
		return 0, true
	}
	return i, true
}

func (s *schedule) deliver(m *member) {
	if i, ok := s.drawPacket(m); ok {
		s.deliverAt(i, false)
	} else {
		s.turn(m)
	}
}

// deliverAll delivers all messages that are on their way now, in order.
func (s *schedule) deliverAll(*member) {
	for range min(len(s.net), 40) {
		if s.doomed == nil {
			s.deliverAt(0, false)
		}
	}
}

func (s *schedule) duplicate(m *member) {
	if i, ok := s.drawPacket(m); ok && !s.plan.lossless {
		s.deliverAt(i, true)
	}
}

// deliverAt delivers a copy of a message, as a network does, so that the harness can check that the
// sender's own message stays unchanged.
func (s *schedule) deliverAt(i int, again bool) {
	p := s.net[i]
	if !again {
		s.net = slices.Delete(s.net, i, i+1)
	}
	to := s.memberOf(p.to())
	if to == nil || !to.running() || s.island[p.to()] != s.island[p.m[0].GetFrom()] {
		s.lost(p)
		return
	}
	if !again && to.prematureVote(p.m[0]) {
		s.tally.Hit("votes held back: before the candidate's own is written")
		s.net = append(s.net, p)
		return
	}
	s.stepMessage(to, [2]*pb.Message{s.carry(p.m[0]), s.carry(p.m[1])})
	if p.m[0].GetType() == pb.MsgSnap && s.oneIn(2) {
		s.reportSnap(p, raft.SnapshotFinish)
	}
}

// carry returns what arrives of a message.
func (s *schedule) carry(m *pb.Message) *pb.Message {
	m = cloneOf(m)
	if s.plan.older && m.GetReject() && m.GetType() == pb.MsgAppResp {
		m.LogTerm = nil
	}
	if !s.plan.wire {
		return m
	}
	data, err := proto.Marshal(m)
	if err != nil {
		s.fail("a message cannot be encoded", err.Error())
	}
	arrived := &pb.Message{}
	if err := proto.Unmarshal(data, arrived); err != nil {
		s.fail("a message cannot be decoded", err.Error())
	}
	return arrived
}

func (s *schedule) drop(m *member) {
	i, ok := s.drawPacket(m)
	if !ok || s.plan.lossless {
		return
	}
	p := s.net[i]
	s.net = slices.Delete(s.net, i, i+1)
	s.lost(p)
}

// cutOff loses all messages that are on their way from or to a member.
func (s *schedule) cutOff(m *member) {
	if s.plan.lossless {
		return
	}
	s.net = slices.DeleteFunc(s.net, func(p packet) bool { return p.to() == m.id || p.m[0].GetFrom() == m.id })
}

// partition draws a set of members that cannot talk to the rest, or connects all members again.
// Leaders of both sides append to logs, which then differ.
func (s *schedule) partition(*member) {
	s.island = nil
	if s.plan.lossless || s.oneIn(2) {
		return
	}
	s.island = map[uint64]bool{}
	for _, m := range s.members {
		s.island[m.id] = s.oneIn(2)
	}
}

// lost handles a message that did not arrive: the sender's host may notice.
func (s *schedule) lost(p packet) {
	from := s.memberOf(p.m[0].GetFrom())
	if p.m[0].GetType() == pb.MsgSnap {
		s.reportSnap(p, raft.SnapshotFailure)
	} else if from != nil && from.running() && s.oneIn(4) {
		s.unreachable(from, p.to())
	}
}

// reportSnap makes the sender's host report the outcome of a snapshot.
func (s *schedule) reportSnap(p packet, st raft.SnapshotStatus) {
	if from := s.memberOf(p.m[0].GetFrom()); from != nil && from.running() {
		s.snapshotReport(from, p.to(), st)
	}
}
