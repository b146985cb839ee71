// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"errors"
	"fmt"
	"slices"
)

// SetWanted says which nodes should be responders from now on, for spans that ascend
// and are disjoint. Only a leader takes it, and later leaders learn it with the
// roster. The tuner's spans stay unless they overlap with wanted.
//
// With a mode, at most one, the tuner is switched by the same roster; without, the tuner
// stays as it is. The error is ErrNotLeader, or wraps ErrMalformed.
func (n *Node) SetWanted(now Instant, wanted []Want, mode ...TunerMode) error {
	now = n.advance(now)
	if n.leading == nil {
		return fmt.Errorf("setting who should be responders at node %d in term %d: %w", n.cfg.ID, n.term, ErrNotLeader)
	}
	var merged []Want
	for _, w := range wanted {
		merged = append(merged, Want{Span: w.Span, Nodes: ascending(w.Nodes)})
	}
	if err := errors.Join(checkWants(merged), checkModes(mode)); err != nil {
		return err
	}
	for _, w := range n.wish.wanted {
		if w.Tuned && len(merged) < MaxSpans {
			merged = insertWant(merged, w)
		}
	}
	n.wish.wanted = merged
	for _, m := range mode {
		n.wish.tuner = m
		n.syncTuner()
	}
	n.updateRosters(now)
	return nil
}

func checkModes(modes []TunerMode) error {
	switch {
	case len(modes) > 1:
		return malformed("%d modes of the tuner, at most one", len(modes))
	case len(modes) == 1 && modes[0] > TunerOn:
		return malformed("%v, want TunerConfigured, TunerOff, TunerWatch or TunerOn", modes[0])
	}
	return nil
}

// WantChange tells a leader that a change of the configuration waits to be appended,
// or waits no longer. While a change waits the leader names nobody, so that
// MayChange comes to hold. Leaving a joint configuration is a change, too.
func (n *Node) WantChange(now Instant, yes bool) {
	now = n.advance(now)
	if n.leading != nil {
		n.leading.changing = yes
		n.updateRosters(now)
	}
}

// ChangeAppended tells a leader that a change of the configuration is in its log. The
// leader names nobody until the change is applied.
func (n *Node) ChangeAppended(i Index) {
	if l := n.leading; l != nil {
		l.changing, l.settled = false, max(l.settled, i)
	}
}

// HandOver tells a leader to prepare to hand over leadership, or to keep
// leadership. Only time depends on the call: without HandOver, members bound to
// this node, or to responders, refuse their votes until their promises end.
//
// A leader that must hand over cannot go on. It gives its own leases back at once, and waits
// for nobody's adoption: what it waits for may need the very leader that it is not.
func (n *Node) HandOver(now Instant, yes, must bool) {
	now = n.advance(now)
	if l := n.leading; l != nil {
		l.handing, l.must, l.gaveUp = yes, yes && must, l.gaveUp && yes
		n.updateRosters(now)
	}
}

// MayHandOver reports whether a leader that is to hand over to heir has nothing to
// wait for: a majority and the heir have adopted a roster that names nobody, and
// Poll has returned the messages with which this node gives its leases back. A member
// that runs without leases, or that leases do not know, adopts nothing, and is not waited for;
// nor is a majority, if the members that have answered within a lease are none.
func (n *Node) MayHandOver(heir NodeID) bool {
	if n.leading == nil {
		return true
	}
	adopts := func(p *peer) bool { return p != nil && p.follow.speaks && !n.IsRetired() }
	if p := n.peer(heir); !n.leading.must && adopts(p) && p.follow.adopted < n.rosters.newest().ID.Seq {
		return false
	}
	for _, p := range n.peers {
		if !p.confirm.isNone() {
			return false
		}
	}
	return n.leading.gaveUp
}

// Retire tells a leader that leases are to be switched off, or on again. Later
// leaders go by it, too. The error is ErrNotLeader.
func (n *Node) Retire(now Instant, yes bool) error {
	now = n.advance(now)
	if n.leading == nil {
		return fmt.Errorf("switching leases off at node %d in term %d: %w", n.cfg.ID, n.term, ErrNotLeader)
	}
	n.leading.retiring = yes
	n.updateRosters(now)
	return nil
}

// IsRetired reports, at a leader, whether leases are switched off: a majority has
// adopted a roster that names nobody, the leader does not read by its lease, and every
// member has heard of that roster. Members may then be restarted without leases: whoever of
// them leads next names nobody. A member that has not heard would begin leases anew, with
// members that forget their promises as they are restarted.
func (n *Node) IsRetired() bool {
	return n.leading != nil && n.rosters.newest().Retired && n.isQuiet() && !slices.ContainsFunc(n.members.all(), func(id NodeID) bool {
		return id != n.cfg.ID && n.peer(id).follow.heardOf < n.rosters.newest().ID.Seq
	})
}
