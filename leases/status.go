// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "time"

// Counts count what a node did and saw.
type Counts struct {
	Granted   uint64 // leases
	Held      uint64 // leases that were granted to this node
	Revoked   uint64 // leases that this node gave back
	Confirmed uint64 // promises that ended because the grantee said so
	Lapsed    uint64 // promises that ended by this node's clock, where a roster waited for them
	Adopted   uint64 // rosters
	Removed   uint64 // responders that a leader found to have failed
	Restored  uint64 // responders that a leader named again
	Refused   uint64 // messages that say what cannot be
	Strangers uint64 // messages of nodes that no configuration or roster known here has
}

// Status is the state of a node's leases at an instant.
type Status struct {
	Term       Term
	Leader     NodeID
	Roster     *Roster       // the newest that is known; nil if none is
	Adopted    Seq           // 0: none
	Stable     bool          // reads of every key may be answered here
	Quarantine time.Duration // what is left of it
	Leases     []Lease       // held, ascending by grantor
	Promises   []Lease       // given, ascending by grantee
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
		Term: n.term, Leader: n.leader, Roster: n.rosters.newest(), Stable: n.IsStable(now, Span{}),
		Quarantine: max(0, n.restart.until.since(now)), Counts: n.counts,
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
