// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

// ReadIndex tells up to where this node must have applied its log to answer a read of some
// spans, or of every key without spans, from its own state, and whether the node may do so at
// all, at an instant of its clock after the read's arrival. The lease need not be looked at
// again when the read is answered. If the log is cut at or below the index before the answer,
// the read has to go to the leader: the index may never come, though the answer would still be
// right.
//
// A responder has acknowledged, or committed beyond, every entry that touches its keys and was
// acknowledged to a client, or read. So all these entries are in its log at this instant, and
// only entries that touch the span matter.
func (n *Node) ReadIndex(now Instant, spans ...Span) (Index, bool) {
	for _, s := range orAll(spans) {
		if !n.IsStable(now, s) {
			return 0, false
		}
	}
	if n.leading != nil {
		return n.LeaderIndex(spans...), true
	}
	return n.lastOf(spans, n.last), true
}

// lastOf returns the last entry, up to an index, that touches any of some spans; at least the
// applied index.
func (n *Node) lastOf(spans []Span, upTo Index) Index {
	i := min(n.applied, upTo)
	for _, s := range orAll(spans) {
		i = n.touches.last(upTo, s, i)
	}
	return i
}

// MayServe reports whether this node can become stable for some spans, or for every
// key without spans: the newest known roster names this node as their server. A read
// may be worth a short wait then.
func (n *Node) MayServe(spans ...Span) bool {
	newest := n.rosters.newest()
	for _, s := range orAll(spans) {
		if newest == nil || n.aside {
			return false
		}
		if _, ok := newest.serves(n.cfg.ID, s); !ok {
			return false
		}
	}
	return true
}

var everyKey = []Span{{}}

func orAll(spans []Span) []Span {
	if len(spans) == 0 {
		return everyKey
	}
	return spans
}

// LeaderIndex returns a leader's index for a read, whichever way the leader confirms its
// leadership; the leader answers, or returns the index to the asking node, after committing the
// index.
//
// Without notes the result is the commit index. With notes a responder may have committed, and
// somebody may have seen, entries beyond the leader's commit index: all entries appended while
// its roster named anyone.
func (n *Node) LeaderIndex(spans ...Span) Index { return n.lastOf(spans, n.leaderEnd()) }

// leaderEnd is the last entry that a leader's reads have to see, whatever it touches.
func (n *Node) leaderEnd() Index {
	to := n.committed
	if l := n.leading; n.cfg.Notes && l != nil {
		if n.rosters.newest().namesAny() {
			to = n.last
		} else {
			to = max(to, l.lastNamed)
		}
	}
	return to
}
