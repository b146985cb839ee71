// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "time"

// Counts are a node's counters.
type Counts struct {
	Granted   uint64 // leases
	Held      uint64 // leases granted to this node
	Revoked   uint64 // leases given back by this node
	Confirmed uint64 // promises ended by the grantee's word
	Lapsed    uint64 // promises ended by this node's clock, with a roster waiting
	Adopted   uint64 // rosters
	Removed   uint64 // responders found to have failed, at a leader
	Silent    uint64 // of Removed, those that answered nothing
	Stuck     uint64 // of Removed, those that kept a write waiting for Config.Fail
	Faltered  uint64 // of Removed, those that kept writes waiting for half of that, again and again
	Limped    uint64 // of Removed, those that were slower than the others for a while
	Restored  uint64 // responders named again, the former leader among them, at a leader
	Refused   uint64 // impossible messages
	Strangers uint64 // messages of nodes that no configuration or roster known here has
}

// Status is the state of a node's leases at an instant.
type Status struct {
	Term       Term
	Leader     NodeID
	Roster     *Roster       // the newest that is known; nil if none is
	Adopted    Seq           // 0: none
	Stable     bool          // reads of every key may be answered here
	Aside      bool          // the clock is not fit, and this node uses and grants no leases
	Quarantine time.Duration // the rest of the quarantine
	Leases     []Lease       // held, ascending by grantor
	Promises   []Lease       // given, ascending by grantee
	Tuner      TunerStatus
	Counts     Counts
}

// Lease is a lease that a node holds or has granted.
type Lease struct {
	Peer   NodeID
	Roster RosterID
	Left   time.Duration // by this node's clock
}

// Status returns the state of leases at an instant.
func (n *Node) Status(now Instant) Status {
	now = n.at(now)
	s := Status{
		Term: n.term, Leader: n.leader, Roster: n.rosters.newest(), Stable: n.IsStable(now, Span{}), Aside: n.aside,
		Quarantine: max(0, n.restart.until.since(now)), Tuner: n.tunerStatus(), Counts: n.counts,
	}
	if n.adopted != nil {
		s.Adopted = n.adopted.ID.Seq
	}
	for _, p := range n.peers {
		if left := p.holding.until.since(now); left > 0 {
			s.Leases = append(s.Leases, Lease{Peer: p.id, Roster: p.holding.roster, Left: left})
		}
		if left := p.promise.until.since(now); left > 0 {
			s.Promises = append(s.Promises, Lease{Peer: p.id, Roster: p.promise.roster.ID, Left: left})
		}
	}
	return s
}
