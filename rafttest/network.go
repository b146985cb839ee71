// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// packet is a message on its way: bytes, as the network sees it.
type packet struct {
	from, to uint64
	data     []byte
	// sender is the incarnation of the sending process, which hears of what becomes of the
	// packet: of a loss if tells is set, of an arrival if snap is. Later processes hear nothing.
	sender      uint64
	snap, tells bool
}

// queueTime bounds the wait for a link: packets with a longer wait are lost.
const queueTime = 500 * time.Millisecond

// network carries packets between nodes.
type network struct {
	*world.Network
	s *sim
}

// send puts a packet on its way.
func (n *network) send(p packet) {
	n.Send(p.from, p.to, world.Frame{Bytes: len(p.data), Lost: func() { n.drop(p) }, Arrive: func(again bool) {
		p := p
		if again {
			p.snap, p.tells = false, false
		}
		n.s.node(p.to).receive(p)
	}})
}

// drop loses a packet. The sender learns of it, if at all, after a while.
func (n *network) drop(p packet) {
	if p.tells {
		n.hear(p, 10*n.s.plan.links.Most, false)
	}
}

// hear has the sender learn, within a time, whether a packet arrived.
func (n *network) hear(p packet, most time.Duration, arrived bool) {
	from := n.s.node(p.from)
	n.s.After(n.s.net2.Within(n.s.plan.links.Least, most), func() {
		if from.incarnation == p.sender {
			from.whenAwake(func() { from.proc.hear(p, arrived) })
		}
	})
}

// heldFrame is held for frames of the network, and says whether later frames overtake
// the frame.
func (s *sim) heldFrame() (more time.Duration, inStep, overtaken bool) {
	more, inStep = s.held()
	return more, inStep, inStep && s.plan.coded.brief.overtaken
}

// held returns how much longer than usual the next thing takes that takes time, a
// message or a write, and whether it is in step with others.
func (s *sim) held() (more time.Duration, inStep bool) {
	if s.plan.coded == nil || s.plan.coded.brief == nil || !s.plan.coded.brief.inStep || s.calm() {
		return 0, false
	}
	more, held := s.plan.coded.brief.holds[s.timed]
	s.timed++
	if held {
		s.coded.Held++
		s.tell(0, "number %d takes %v more", s.timed-1, more)
	}
	return more, true
}

// breaks is the plan of breaks; nil if there is none.
func (s *sim) breaks() *breaksPlan {
	if c := s.plan.coded; c != nil && c.brief != nil {
		return c.brief.breaks
	}
	return nil
}

// mayBreak perhaps breaks the connection before an acknowledgement goes out,
// and reports whether the connection broke.
func (s *sim) mayBreak(m *pb.Message) bool {
	b := s.breaks()
	if b == nil || m.GetType() != pb.MsgAppResp || m.GetReject() || s.Now() > s.plan.duration+b.lasting() || !b.draws.Chance(b.chance) {
		return false
	}
	s.coded.Breaks++
	from, to := m.GetFrom(), m.GetTo()
	s.tell(from, "connection to %d breaks with an acknowledgement of %d", to, m.GetIndex())
	s.net.Break(from, to, 0)
	for _, end := range [][2]uint64{{from, to}, {to, from}} {
		n := s.node(end[0])
		if p := n.proc; p != nil {
			n.later(time.Microsecond, func() {
				p.rn.ReportUnreachable(end[1])
				p.did(nil)
			})
		}
	}
	return true
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

// losesPush draws whether a message is a push of units that gets lost.
func (s *sim) losesPush(m *pb.Message) bool {
	p := s.plan.coded.falls
	return p != nil && m.GetType() == raft.MsgUnits && string(m.GetContext()) == unitsPushed && s.falls.Chance(p.pushLoss)
}
