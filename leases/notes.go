// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "slices"

// notes is what a node knows by the leader's early accept notes of its term. How far
// each node holds the log is kept with the peer.
type notes struct {
	// leader is how far the leader held its log while a roster was its newest.
	// Invariant: rosters ascend, each once.
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

// under returns how far the leader held its log while the leader had no roster
// newer than the given roster.
func (s *notes) under(newest Seq) Index {
	to := Index(0)
	for _, x := range s.leader {
		if x.newest <= newest {
			to = max(to, x.index)
		}
	}
	return to
}

// OwnNote returns the note of this node and its receivers, the responders known to
// this node. There are no receivers if notes are off or nobody would use a note. The
// argument is how far this node holds its leader's log on disk, as acknowledged to
// the leader: a leader's own last index on disk. The note vouches for that index, and
// leaves when an acknowledgement may leave.
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

// Releasable is Raft's knowledge of the log of a node, for Release.
type Releasable struct {
	UpTo    Index // no further; where entries are coded, what their commit rule allows by Noted
	Durable Index // how far this node holds its leader's log on disk
	First   Index // the first entry of the term in this node's log; 0 if there is none
	Change  Index // the first configuration change that is not applied; 0 if there is none
}

// Noted returns how far a node holds the log of the current term, by its notes.
func (n *Node) Noted(id NodeID) Index {
	if p := n.peer(id); p != nil {
		return p.noted
	}
	return 0
}

// Release returns the commit index to which a responder may move by notes; 0 if it
// may not move. Up to there a majority holds the log, and so do all responders of
// all keys that the entries touch, in every roster that the leader may go by.
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
	// A responder that the leader names after its note has a barrier at or above
	// the note, so the entries up to the note do not wait for it.
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

// committed returns the highest index that majorities of both halves of a configuration hold.
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
