// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import "time"

// CodingStatus is a node's view of coded replication. The host owns it.
type CodingStatus struct {
	// Active says, at a leader, that new entries are coded: every member reads coded
	// entries, and no member asked for plain ones.
	Active bool
	// Plain says that Densify(true) is in force at this node.
	Plain bool
	// Dense says that no coded entry is left in this node's log. Once Dense is true at
	// every member, with Densify(true) in force at all, members may move one by one to
	// a library without coding. Not earlier: a member with coded entries would send
	// them.
	Dense bool
	// Completed is the index up to which this node has all payloads.
	Completed uint64
	// Released is the index up to which this node needs no units any more.
	Released uint64
	// StuckAt is the index of a committed entry that no reachable member can complete,
	// or 0. The leader then sends a snapshot.
	StuckAt uint64
	// Waiting says, at a leader, what holds back a configuration change; empty if no
	// change waits.
	Waiting string
	// MembersAt is the index of an entry up to which other members have told this node who the
	// members are, because this node cannot apply changes in its log; 0: it counts by the
	// members that it has applied. The node counts by these members until it has a snapshot.
	MembersAt uint64
	// Memory is the bytes of units and payloads in memory.
	Memory int
	// Entries are the coded entries not applied yet, in order.
	Entries []CodedEntry
	// Members is what a leader knows of each member.
	Members map[uint64]CodingMember
}

// CodedEntry is a coded entry of the log.
type CodedEntry struct {
	Index, Term uint64
	// Payload is the size of the payload in bytes, D the number of units to restore it.
	Payload, D int
	// Encoder is the leader that coded the entry, and holds the whole payload.
	Encoder uint64
	// Units is how many units each other member is assigned, riders included.
	Units map[uint64]int
	// Complete says whether this node has the payload.
	Complete bool
	// Missing is how many units this node lacks to restore the payload: D at most, and 0
	// if Complete.
	Missing int
}

// CodingMember is what a leader knows of a member.
type CodingMember struct {
	// Capable: the member reads coded entries. Plain: the member asked for plain ones.
	Capable, Plain bool
	// Completed, Released and Applied are the member's last reported indexes.
	Completed, Released, Applied uint64
	// Held is how long it takes to store an append.
	Held time.Duration
	// StuckAt is the index of an entry the member cannot complete, or 0.
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
		MembersAt: rn.raft.members.LearnedAt(),
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

// Densify prepares a log for nodes that do not code, before a downgrade. With on set,
// new entries are plain in the whole group, as long as the leader hears from this node;
// coded entries go as the host compacts its log. CodingStatus.Dense says whether this
// node's log is free of coded entries. Set it at every node, also after a restart, and
// wait for Dense at every node.
func (rn *RawNode) Densify(on bool) {
	if c := rn.raft.coding(); c != nil {
		c.Densify(on)
		rn.raft.settle()
	}
}

// Densifier is implemented by the nodes of [StartNode] and [RestartNode], and by
// [RawNode]. Densify is no method of Node, because hosts have implementations of Node
// for their tests.
type Densifier interface {
	// Densify is [RawNode.Densify]. CodingStatus.Dense, in [Status], says when the
	// log has no coded entry left. A stopped node does nothing.
	Densify(on bool)
}

// NextDeadline returns when, by Config.Clock, the node has something to do between
// ticks, and whether there is anything. The host calls [RawNode.Poll] then. A host
// without such calls loses little, because Tick and Step do the same work.
func (rn *RawNode) NextDeadline() (time.Duration, bool) {
	if rn.raft.coding() == nil || rn.raft.cfg.Clock == nil {
		return 0, false
	}
	at := rn.raft.coding().Deadline()
	return at, at > 0
}

// Poll does the work due by Config.Clock.
func (rn *RawNode) Poll() {
	if rn.raft.log.err == nil {
		rn.raft.extension.Poll()
		rn.raft.settle()
	}
}

// QueueHint tells a learning policy about the host's connection to a member: the bytes
// waiting to be sent, and the bytes a second that leave (0: unknown). Optional.
func (rn *RawNode) QueueHint(to uint64, bytes int, rate float64) {
	if c := rn.raft.coding(); c != nil {
		c.QueueHint(to, bytes, rate)
	}
}
