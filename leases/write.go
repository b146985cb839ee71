// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

// Committable returns up to where a leader may commit, at most to upTo: below the
// first entry that a responder of its keys has not acknowledged, in any roster that
// is not superseded. Raft's own rule has to hold as well. The answer is at or above
// the leader's empty entry if upTo is.
func (n *Node) Committable(upTo Index) Index {
	if n.leading == nil {
		return upTo
	}
	for _, r := range n.rosters.list {
		if !n.isSuperseded(r) {
			upTo = n.heldTo(r, upTo, func(id NodeID) Index { return n.peer(id).follow.match })
		}
	}
	return upTo
}

// heldTo returns up to where, at most to upTo, all responders of a roster hold the
// entries that touch their keys. Entries up to the commit index are not looked at.
func (n *Node) heldTo(r *Roster, upTo Index, held func(NodeID) Index) Index {
	for _, a := range r.Spans {
		for _, x := range a.Responders {
			from := max(held(x.Node), x.Barrier, n.committed)
			if lacks, ok := n.touches.first(from, a.Span, upTo); ok {
				upTo = lacks - 1
			}
		}
	}
	return upTo
}

// isSuperseded reports whether a roster can no longer make a node stable: a majority
// of the voters of its configuration has adopted later rosters. A report of an
// adoption counts whenever it arrives.
func (n *Node) isSuperseded(r *Roster) bool {
	return r.Voters.majority(func(v NodeID) bool {
		if v == n.cfg.ID {
			return n.adopted != nil && n.adopted.ID.Seq > r.ID.Seq
		}
		p := n.peer(v)
		return p != nil && p.follow.adopted > r.ID.Seq
	})
}

// namesNobody reports whether no roster that is not superseded names anybody.
func (n *Node) namesNobody() bool {
	for _, r := range n.rosters.list {
		if r.namesAny() && !n.isSuperseded(r) {
			return false
		}
	}
	return true
}

// MayChange reports whether a leader may append a change of the configuration. Until
// then the proposal waits; see WantChange.
//
// A responder counts majorities of the configuration that it has applied, and the
// majorities of a configuration two changes later need not meet them. No
// responder is named while the configuration changes.
func (n *Node) MayChange() bool { return n.leading == nil || n.namesNobody() }
