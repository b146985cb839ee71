// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

// ReadIndex tells up to where this node must have applied its log to answer a
// read of some spans, or of every key if there are none, from its own state, and whether it may do so at all, at an instant of
// its clock read after the read had arrived. The lease need not be looked at again
// when the read is answered. If the log is cut at or below the index before that, the read
// has to go to the leader: the index may never come, though the answer would
// still be right.
//
// A responder has acknowledged whatever was acknowledged to a client, or read,
// and touches its keys; or it has committed beyond it. So all of that is in its
// log at this instant, and only as much of it as touches the span matters.
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

// lastOf returns the last entry up to an index that touches one of some spans, at least the applied index.
func (n *Node) lastOf(spans []Span, upTo Index) Index {
	i := min(n.applied, upTo)
	for _, s := range orAll(spans) {
		i = n.touches.last(upTo, s, i)
	}
	return i
}

// MayServe reports whether this node can become stable for some spans, or for every
// key if there are none: the newest roster that it knows has it serve them. A read may
// be worth a short wait then.
func (n *Node) MayServe(spans ...Span) bool {
	newest := n.rosters.newest()
	for _, s := range orAll(spans) {
		if newest == nil {
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

// LeaderIndex returns the index that a leader takes for a read, whichever way it makes
// sure that it still leads; it answers, or returns the index to who asked, once it has committed that far.
//
// Without notes it is the commit index. With notes a responder may have
// committed, and somebody may have seen, what the leader has not committed yet:
// whatever it had appended while its roster named anyone.
func (n *Node) LeaderIndex(spans ...Span) Index {
	to := n.committed
	if l := n.leading; n.cfg.Notes && l != nil {
		if n.rosters.newest().namesAny() {
			to = n.last
		} else {
			to = max(to, l.lastNamed)
		}
	}
	return n.lastOf(spans, to)
}
