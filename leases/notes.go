// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "slices"

// notes is what a node knows by early accept notes of its term, besides what each
// node holds.
type notes struct {
	// leader is what the leader said it holds, under which newest roster of
	// its own. Invariant: both ascend.
	leader []leaderNote
}

type leaderNote struct {
	newest Seq
	index  Index
}

// add takes a note of the leader.
func (s *notes) add(x leaderNote) {
	at := len(s.leader)
	for at > 0 && s.leader[at-1].newest > x.newest {
		at--
	}
	switch {
	case at > 0 && s.leader[at-1].newest == x.newest:
		s.leader[at-1].index = max(s.leader[at-1].index, x.index)
	default:
		s.leader = slices.Insert(s.leader, at, x)
	}
	if len(s.leader) > rosterLimit {
		s.leader = slices.Delete(s.leader, 0, 1)
	}
}

// under returns up to where the leader held its log while its newest roster was not newer than one.
func (s *notes) under(newest Seq) Index {
	to := Index(0)
	for _, x := range s.leader {
		if x.newest <= newest {
			to = max(to, x.index)
		}
	}
	return to
}

// OwnNote returns the note that tells how far this node holds the log durably,
// and to whom it goes: the responders it knows of. None, if notes are off or nobody would use it.
// A node vouches with a note as with an acknowledgement, so it is sent when that may be.
func (n *Node) OwnNote(durable Index) (Note, []NodeID) {
	newest := n.rosters.newest()
	if !n.cfg.Notes || newest == nil || durable == 0 || n.durable < n.term {
		return Note{}, nil
	}
	x := Note{Term: n.term, Index: durable}
	if n.leading != nil {
		x.Newest = newest.ID.Seq
	}
	var to []NodeID
	list, _ := n.rosters.inUse()
	for _, r := range list {
		for _, a := range r.Spans {
			for _, y := range a.Responders {
				if y.Node != n.cfg.ID {
					to = append(to, y.Node)
				}
			}
		}
	}
	return x, ascending(to)
}

// StepNote takes a note of another node.
func (n *Node) StepNote(from NodeID, x Note) error {
	p := n.peer(from)
	switch err := x.validate(); {
	case err != nil:
		n.counts.Refused++
		return err
	case p == nil:
		n.counts.Strangers++
		return nil
	case x.Term != n.term:
		return nil // the log of another term may differ from the one its sender held
	}
	p.noted = max(p.noted, x.Index)
	if from == n.leader && x.Newest > 0 {
		n.notes.add(leaderNote{newest: x.Newest, index: x.Index})
	}
	return nil
}

// Releasable is a question to Release: what Raft knows of the node's log.
type Releasable struct {
	UpTo    Index // no further; with coding, what the leader's rule for coded entries allows by Noted
	Durable Index // up to where this node holds the log of its term on disk
	First   Index // the first entry of the term in this node's log; 0 if there is none
	Change  Index // the first configuration change that is not applied; 0 if there is none
}

// Noted returns up to where a node holds the log of the current term, by its notes.
func (n *Node) Noted(id NodeID) Index {
	if p := n.peer(id); p != nil {
		return p.noted
	}
	return 0
}

// Release returns up to where a responder may set its commit index by notes; 0 if
// it may not. The leader's commit rule holds up to there, in this node's eyes: a majority holds the
// entries, and so do the responders of all keys they touch, in all rosters that the leader
// may have gone by.
func (n *Node) Release(q Releasable) Index {
	newest := n.rosters.newest()
	list, whole := n.rosters.inUse()
	if !n.cfg.Notes || n.leading != nil || !whole || !newest.names(n.cfg.ID) || q.First == 0 {
		return 0
	}
	held := func(id NodeID) Index {
		if id == n.cfg.ID {
			return q.Durable
		}
		return n.Noted(id)
	}
	// Rosters newer than the one the leader's note was sent under name nobody
	// who is not named here for an entry up to there, except behind it.
	to := min(q.UpTo, q.Durable, n.notes.under(newest.ID.Seq))
	if q.Change > 0 {
		to = min(to, q.Change)
	}
	to = min(to, n.members.committed(held))
	for _, r := range list {
		to = n.heldTo(r, to, held)
	}
	if to < q.First || to <= n.committed {
		return 0
	}
	return to
}

// committed returns the highest index that a majority holds, of each half.
func (v Voters) committed(held func(NodeID) Index) Index {
	half := func(ids []NodeID) Index {
		if len(ids) == 0 {
			return 0
		}
		at := make([]Index, 0, len(ids))
		for _, id := range ids {
			at = append(at, held(id))
		}
		slices.Sort(at)
		return at[(len(at)-1)/2]
	}
	if !v.joint() {
		return half(v.Incoming)
	}
	return min(half(v.Incoming), half(v.Outgoing))
}
