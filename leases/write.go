// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "math"

// Committable returns up to where, at most to upTo, a leader may commit: below
// the first entry that a responder of its keys has not acknowledged, in any
// roster that may be in use. Raft's own rule has to hold besides.
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

// heldTo returns up to where, at most to upTo, all entries that are not
// committed are held by all responders of their keys in a roster.
func (n *Node) heldTo(r *Roster, upTo Index, held func(NodeID) Index) Index {
	for _, a := range r.Spans {
		for _, x := range a.Responders {
			from := max(held(x.Node), x.Barrier, n.committed)
			if lacks, ok := n.touches.first(from, upTo, a.Span); ok {
				upTo = lacks - 1
			}
		}
	}
	return upTo
}

// isSuperseded reports whether a roster can make nobody stable any more: a majority of the
// voters of its configuration has adopted later ones, and let the promises on it
// end before. A report of that is a fact, whenever it arrives.
func (n *Node) isSuperseded(r *Roster) bool {
	return r.Voters.majority(func(v NodeID) bool {
		if v == n.cfg.ID {
			return n.adopted != nil && n.adopted.ID.Seq > r.ID.Seq
		}
		p := n.peer(v)
		return p != nil && p.follow.adopted > r.ID.Seq
	})
}

// namesNobody reports whether no roster that may be in use names anyone.
func (n *Node) namesNobody() bool {
	for _, r := range n.rosters.list {
		if r.namesAny() && !n.isSuperseded(r) {
			return false
		}
	}
	return true
}

// MayChange reports whether a leader may append a change of the configuration.
// Until then the proposal waits: see WantChange.
//
// A responder counts majorities of the configuration it has applied. No majority
// of a configuration two steps on need meet them, so no roster is in use while
// the configuration changes.
func (n *Node) MayChange() bool { return n.leading == nil || n.namesNobody() }

// noIndex is above all indexes.
const noIndex Index = math.MaxUint64
