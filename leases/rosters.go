// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "slices"

// rosters is a node's known rosters of its term; at a leader, the rosters of its
// own making.
type rosters struct {
	list []*Roster // Invariant: numbers ascend, all of one term.
	// least is the lowest number of a roster possibly still in use, as far as this
	// node knows. Invariant: least never falls, because a superseded roster stays
	// superseded.
	least Seq
}

// rosterLimit bounds the rosters that are known, whatever a leader announces.
const rosterLimit = 4 * MaxRosters

func (s *rosters) newest() *Roster {
	if len(s.list) == 0 {
		return nil
	}
	return s.list[len(s.list)-1]
}

// find returns the roster of a number, or nil.
func (s *rosters) find(q Seq) *Roster {
	for _, r := range s.list {
		if r.ID.Seq == q {
			return r
		}
	}
	return nil
}

// inUse returns the rosters that may be in use, and whether none is missing
// between the least of them and the newest known.
func (s *rosters) inUse() (list []*Roster, whole bool) {
	for i, r := range s.list {
		if r.ID.Seq >= s.least {
			list = s.list[i:]
			break
		}
	}
	if len(list) == 0 {
		return nil, false
	}
	first, last := list[0].ID.Seq, list[len(list)-1].ID.Seq
	return list, first == s.least && int(last-first) == len(list)-1
}

// add adds a roster and reports whether it was new.
func (s *rosters) add(r *Roster) bool {
	at, ok := slices.BinarySearchFunc(s.list, r.ID, func(a *Roster, id RosterID) int {
		switch {
		case a.ID.before(id):
			return -1
		case id.before(a.ID):
			return 1
		}
		return 0
	})
	if ok {
		return false
	}
	s.list = slices.Insert(s.list, at, r)
	if len(s.list) > rosterLimit { // only releases by notes need the lowest
		s.list = slices.Delete(s.list, 0, 1)
	}
	return true
}

// supersede takes the news that rosters below least are not in use any more.
func (s *rosters) supersede(least Seq) { s.least = max(s.least, least) }

// drop forgets rosters out of use, unless keep holds.
func (s *rosters) drop(keep func(Seq) bool) {
	s.list = slices.DeleteFunc(s.list, func(r *Roster) bool {
		return r.ID.Seq < s.least && r != s.newest() && !keep(r.ID.Seq)
	})
}

// nodes returns whom the rosters name, in any role.
func (s *rosters) nodes() []NodeID {
	var ids []NodeID
	for _, r := range s.list {
		ids = append(ids, r.Voters.Incoming...)
		ids = append(ids, r.Voters.Outgoing...)
		for _, a := range r.Spans {
			for _, x := range a.Responders {
				ids = append(ids, x.Node)
			}
		}
	}
	return ids
}
