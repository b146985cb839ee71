// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import pb "go.etcd.io/raft/v3/raftpb"

// msgUnits is raft.MsgUnits: units of entries, from one follower to another.
// msgUnitsAsk is raft.MsgUnitsAsk: a question for some. msgLeases is raft.MsgLeases,
// which renews leases and so is as urgent as a heartbeat.
const (
	msgUnits    = pb.MessageType(64)
	msgUnitsAsk = pb.MessageType(65)
	msgLeases   = pb.MessageType(66)
)

// AboutUnits reports whether a message is of the types by which nodes complete each
// other's payloads. Both types have no term, so that nodes without coding ignore them.
func AboutUnits(m *pb.Message) bool {
	return m.GetType() == msgUnits || m.GetType() == msgUnitsAsk
}

// AboutLeases reports whether a message is about roster leases, which has no term for
// the same reason.
func AboutLeases(m *pb.Message) bool { return m.GetType() == msgLeases }

// forPush is the context of unasked units.
const forPush = 'p'

// smallUnits bounds the size of a small answer.
const smallUnits = 16 << 10

// unitsClass returns the class of units. Pushed units must not delay other messages. A
// node, perhaps a new leader, waits for answers: small answers are as urgent as control
// messages, and large ones must not stand behind a snapshot.
func (b Raft) unitsClass() Class {
	switch {
	case b.pushed():
		return ClassBackground
	case b.size() <= smallUnits:
		return ClassControl
	}
	return ClassAppend
}

func (b Raft) pushed() bool { return len(b.Context) == 1 && b.Context[0] == forPush }

// Repaired reports whether a receiver that misses m will ask again, so that the loss
// need not be reported.
func (m Message) Repaired() bool {
	b, ok := m.Body.(Raft)
	return ok && b.GetType() == msgUnits && b.pushed()
}
