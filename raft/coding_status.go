// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import "time"

// CodingStatus is a node's view of coded replication. The host owns it.
type CodingStatus struct {
	// Active says, at a leader, that new entries are coded: every member can
	// read them, and none asked for plain ones.
	Active bool
	// Plain says that Densify(true) is in force at this node.
	Plain bool
	// Dense says that no coded entry is left in this node's log. When it is true
	// at every member, with Densify(true) in force at all, they may go on one by
	// one with a library that does not code: not earlier, as those that have
	// coded entries would send them.
	Dense bool
	// Completed is the highest index up to which this node has all payloads.
	Completed uint64
	// Released is the highest index that this node will not ask for any more.
	Released uint64
	// StuckAt is the index of a committed entry that nobody reachable can
	// complete, or 0. A snapshot is needed, and the leader sends one.
	StuckAt uint64
	// Waiting says, at a leader, what a configuration change waits for before it is
	// appended; empty if none waits.
	Waiting string
	// Memory is the bytes of units and payloads that are kept in memory.
	Memory int
	// Entries are the coded entries that are not applied yet, in order.
	Entries []CodedEntry
	// Members is what a leader knows of each member.
	Members map[uint64]CodingMember
}

// CodedEntry is a coded entry of the log.
type CodedEntry struct {
	Index, Term uint64
	// Payload is the size of the payload in bytes, D the number of units that
	// restore it.
	Payload, D int
	// Encoder is the leader that coded it; it holds the whole payload.
	Encoder uint64
	// Units is how many units each other member is assigned, riders included.
	Units map[uint64]int
	// Complete says that this node has the payload.
	Complete bool
}

// CodingMember is what a leader knows of a member.
type CodingMember struct {
	// Capable says that it reads coded entries, Plain that it asked for none.
	Capable, Plain bool
	// Completed, Released and Applied are the indexes it last reported.
	Completed, Released, Applied uint64
	// Held is how long it takes to store an append.
	Held time.Duration
	// StuckAt is the index of an entry that it cannot complete, or 0.
	StuckAt uint64
}

// CodingStatus returns the node's view of coded replication; the zero value if
// Config.Coding is not set.
func (rn *RawNode) CodingStatus() CodingStatus {
	if rn.raft.coding() == nil {
		return CodingStatus{}
	}
	s := rn.raft.coding().Status()
	out := CodingStatus{
		Active: s.Active, Plain: s.Plain, Dense: s.Dense, Completed: s.Completed, Released: s.Released,
		StuckAt: s.StuckAt, Waiting: s.Waiting, Memory: s.Memory,
	}
	for _, e := range s.Entries {
		out.Entries = append(out.Entries, CodedEntry(e))
	}
	if s.Members != nil {
		out.Members = make(map[uint64]CodingMember, len(s.Members))
		for id, m := range s.Members {
			out.Members[id] = CodingMember(m)
		}
	}
	return out
}

// Densify prepares a log for nodes that do not code, before a downgrade. With
// on set, new entries are plain in the whole group, as long as this node is
// heard from; coded ones go as the host compacts its log. CodingStatus.Dense
// says when this node's log has none left. Set it at every node, also after a
// restart, and wait for Dense at every node.
func (rn *RawNode) Densify(on bool) {
	if c := rn.raft.coding(); c != nil {
		c.Densify(on)
		rn.raft.settle()
	}
}

// Densifier is what the nodes of [StartNode] and [RestartNode] are besides, and
// so is a [RawNode]. It is no method of Node because hosts have implementations of
// that of their own, for their tests.
type Densifier interface {
	// Densify is [RawNode.Densify]. CodingStatus.Dense, in [Status], says when the
	// log has no coded entry left. A stopped node does nothing.
	Densify(on bool)
}

// NextDeadline returns when, by Config.Clock, the node has something to do
// between ticks, and whether there is anything. The host calls [RawNode.Poll]
// then. Hosts that do not lose little: Tick and Step look, too.
func (rn *RawNode) NextDeadline() (time.Duration, bool) {
	if rn.raft.coding() == nil || rn.raft.cfg.Clock == nil {
		return 0, false
	}
	at := rn.raft.coding().Deadline()
	return at, at > 0
}

// Poll does what is due by Config.Clock.
func (rn *RawNode) Poll() {
	if rn.raft.log.err == nil {
		rn.raft.coder.Poll()
		rn.raft.settle()
	}
}

// QueueHint tells a policy that learns what the host knows of a connection: the
// bytes that wait to be sent to a member, and the bytes a second at which they
// leave (0: unknown). Optional.
func (rn *RawNode) QueueHint(to uint64, bytes int, rate float64) {
	if c := rn.raft.coding(); c != nil {
		c.QueueHint(to, bytes, rate)
	}
}
