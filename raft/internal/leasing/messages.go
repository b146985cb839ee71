// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leasing

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft/internal/extend"
)

// MsgLeases is the type of messages about leases. On the wire Term is 0, so that a node
// without knowledge of the type ignores the message.
const MsgLeases = pb.MessageType(66)

// The Context of MsgLeases begins with a byte that names the rest.
const (
	forLeases  = 'l' // a leases.Message
	forNote    = 'n' // a leases.Note
	forDurable = 'd' // nothing: sent by a node to itself once the term LogTerm is on its disk
)

func (x *Leases) message(to uint64, content []byte) *pb.Message {
	return &pb.Message{Type: MsgLeases.Enum(), To: &to, From: &x.id, Term: new(uint64), Context: content}
}

// askDurable has this node hear when a term is on its disk: the node sends itself a
// message which waits for durability, as votes and acknowledgements do.
func (x *Leases) askDurable(term uint64) {
	m := x.message(x.id, []byte{forDurable})
	m.LogTerm = &term
	x.Ask(extend.Effect{Do: extend.Vouch, Msg: m})
}

// Check refuses a message if no correct node sends such a message.
func (x *Leases) Check(m *pb.Message) error {
	c := m.GetContext()
	switch {
	case m.GetTerm() != 0 || len(c) == 0:
		x.counts.Refused++
		return fmt.Errorf("message of type %d from %x has term %d and a context of %d bytes; it must have term 0, and say what it is for",
			m.GetType(), m.GetFrom(), m.GetTerm(), len(c))
	case (c[0] == forDurable) != (m.GetFrom() == x.id):
		x.counts.Refused++
		return fmt.Errorf("message of type %d from %x is for %q; %q is what a node says to itself, and all it says", m.GetType(), m.GetFrom(), c[0], forDurable)
	}
	return nil
}

// Step takes a message accepted by Check.
func (x *Leases) Step(m *pb.Message) error {
	c := m.GetContext()
	x.recount = true
	switch c[0] {
	case forLeases:
		q, err := leases.ParseMessage(c[1:])
		if err != nil {
			x.counts.Refused++
			return err
		}
		return x.node.Step(x.now(), leases.NodeID(m.GetFrom()), q)
	case forNote:
		note, err := leases.ParseNote(c[1:])
		if err != nil {
			x.counts.Refused++
			return err
		}
		return x.node.StepNote(leases.NodeID(m.GetFrom()), note)
	case forDurable:
		x.node.TermDurable(leases.Term(m.GetLogTerm()))
	}
	return nil // or of a later version
}

// Arrives hears of a message of another node, or of this one, before Raft looks at it. A leader's
// own acknowledgement comes when its disk has the entries.
func (x *Leases) Arrives(m *pb.Message) {
	if m.GetType() == pb.MsgAppResp && x.leads && m.GetTerm() == x.term && !m.GetReject() && m.GetIndex() <= x.log.Last().Index {
		x.node.Acknowledged(x.now(), leases.NodeID(m.GetFrom()), leases.Index(m.GetIndex()))
		if m.GetFrom() == x.id {
			x.matches(m.GetIndex())
		}
	}
}

// Handled hears of a message of another node, after Raft has taken it.
func (x *Leases) Handled(m *pb.Message) {
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap:
		if m.GetTerm() == x.term && m.GetFrom() == x.lead {
			x.node.Heard(x.now())
		}
	}
}

// Leaves hears of a message of Raft that is about to leave. An acknowledgement to the leader
// gives the index up to which the log equals the leader's.
func (x *Leases) Leaves(m *pb.Message) {
	if m.GetType() == pb.MsgAppResp && !m.GetReject() && m.GetTerm() == x.term && m.GetTo() == x.lead && !x.leads && x.lead != 0 {
		x.matches(m.GetIndex())
	}
}

// matches takes the index up to which this node acknowledges its leader's log.
func (x *Leases) matches(index uint64) {
	x.matched = max(x.matched, index)
	x.sendNotes()
}
