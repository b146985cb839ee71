// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import pb "go.etcd.io/raft/v3/raftpb"

// msgUnits is raft.MsgUnits: units of entries, from one follower to another.
// msgUnitsAsk is raft.MsgUnitsAsk: a question for some.
// msgLeases is raft.MsgLeases: it renews leases, and so is as urgent as a heartbeat.
const (
	msgUnits    = pb.MessageType(64)
	msgUnitsAsk = pb.MessageType(65)
	msgLeases   = pb.MessageType(66)
)

// AboutUnits reports whether a message is one of those by which nodes complete
// each other's payloads. They have no term: nodes that do not know them ignore
// them.
func AboutUnits(m *pb.Message) bool {
	return m.GetType() == msgUnits || m.GetType() == msgUnitsAsk
}

// AboutLeases reports whether a message is about roster leases. It has no term, for the
// same reason.
func AboutLeases(m *pb.Message) bool { return m.GetType() == msgLeases }

// forPush is the context of units that nobody asked for.
const forPush = 'p'

// smallUnits is up to what size an answer counts as small.
const smallUnits = 16 << 10

// unitsClass returns where units travel. Pushed ones must not hold anything up.
// Answers are waited for, perhaps by a new leader: small ones are as urgent as
// what else goes with control messages, and large ones must not stand behind a
// snapshot.
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

// Repaired reports that whoever misses m will ask for it, so that its loss need
// not be reported.
func (m Message) Repaired() bool {
	b, ok := m.Body.(Raft)
	return ok && b.GetType() == msgUnits && b.pushed()
}
