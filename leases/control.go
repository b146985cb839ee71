// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "fmt"

// SetWanted says which nodes should be responders from now on. Only a leader
// takes it; later leaders hear of it with the roster. Spans of the tuner stay
// where they do not overlap with wanted.
func (n *Node) SetWanted(now Instant, wanted []Want) error {
	now = n.advance(now)
	if n.leading == nil {
		return fmt.Errorf("setting who should be responders at node %d in term %d: %w", n.cfg.ID, n.term, ErrNotLeader)
	}
	if err := checkWants(wanted); err != nil {
		return err
	}
	var merged []Want
	for _, w := range wanted {
		merged = append(merged, Want{Span: w.Span, Nodes: ascending(w.Nodes)})
	}
	for _, w := range n.wish.wanted {
		if w.Tuned && len(merged) < MaxSpans {
			merged = insertWant(merged, w)
		}
	}
	n.wish.wanted = merged
	n.updateRosters(now)
	return nil
}

// WantChange tells a leader that a change of the configuration waits to be
// appended, or does not any more. While it waits the leader names nobody, so that
// MayChange comes to hold.
func (n *Node) WantChange(now Instant, yes bool) {
	now = n.advance(now)
	if n.leading != nil {
		n.leading.changing = yes
		n.updateRosters(now)
	}
}

// ChangeAppended tells a leader that it has appended a change of the configuration. It
// names nobody until the change is applied.
func (n *Node) ChangeAppended(i Index) {
	if l := n.leading; l != nil {
		l.changing, l.settled = false, max(l.settled, i)
	}
}

// HandOver tells a leader that leadership is to be handed over, or that it stays.
// Nothing depends on it but time: without it the members that are bound to this
// node or to responders refuse their votes until their promises end.
func (n *Node) HandOver(now Instant, yes bool) {
	now = n.advance(now)
	if l := n.leading; l != nil {
		l.handing, l.gaveUp = yes, l.gaveUp && yes
		n.updateRosters(now)
	}
}

// MayHandOver reports whether a leader that is to hand over to a voter has nothing more
// to wait for: nobody is a responder, as the heir knows, and everyone was told
// that this node holds no leases.
func (n *Node) MayHandOver(heir NodeID) bool {
	p := n.peer(heir)
	if n.leading == nil || p == nil || p.follow.adopted < n.rosters.newest().ID.Seq {
		return n.leading == nil
	}
	for _, p := range n.peers {
		if !p.confirm.isNone() {
			return false
		}
	}
	return n.leading.gaveUp
}

// Retire tells a leader that leases are to be switched off, or on again. Later
// leaders go by it, too.
func (n *Node) Retire(now Instant, yes bool) error {
	now = n.advance(now)
	if n.leading == nil {
		return fmt.Errorf("switching leases off at node %d in term %d: %w", n.cfg.ID, n.term, ErrNotLeader)
	}
	n.leading.retiring = yes
	n.updateRosters(now)
	return nil
}

// IsRetired reports whether leases are switched off: no roster that names anyone is in
// use, the leader does not read by its lease, and a majority knows. From then on members may be restarted
// without leases, or with an older version.
func (n *Node) IsRetired() bool {
	return n.leading != nil && n.rosters.newest().Retired && n.isQuiet()
}
