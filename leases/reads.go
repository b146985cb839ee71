// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

// ReadIndex tells up to where this node must have applied its log to answer a
// read of a span from its own state, and whether it may do so at all, at an instant of
// its clock read after the read had arrived. The lease need not be looked at again
// when the read is answered. If the log is cut at or below the index before that, the read
// has to go to the leader: the index may never come, though the answer would
// still be right.
//
// A responder has acknowledged whatever was acknowledged to a client, or read,
// and touches its keys; or it has committed beyond it. So all of that is in its
// log at this instant, and only as much of it as touches the span matters.
func (n *Node) ReadIndex(now Instant, span Span) (Index, bool) {
	switch {
	case !n.IsStable(now, span):
		return 0, false
	case n.leading != nil:
		return n.LeaderIndex(span), true
	}
	return n.touches.last(n.last, n.applied, span), true
}

// LeaderIndex returns the index that a leader takes for a read, whichever way it makes
// sure that it still leads; it answers, or returns the index to who asked, once it has committed that far.
//
// Without notes it is the commit index. With notes a responder may have
// committed, and somebody may have seen, what the leader has not committed yet:
// whatever it had appended while its roster named anyone.
func (n *Node) LeaderIndex(span Span) Index {
	to := n.committed
	if l := n.leading; n.cfg.Notes && l != nil {
		if n.rosters.newest().namesAny() {
			to = n.last
		} else {
			to = max(to, l.named)
		}
	}
	return n.touches.last(to, min(n.applied, to), span)
}
