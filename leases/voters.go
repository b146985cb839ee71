// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "slices"

// Voters are the voters of a configuration. Outgoing is empty unless the
// configuration is joint; then both halves have to agree. Both lists ascend.
//
// Two configurations with the same voters are the same to this package, because
// all it asks of a configuration is which sets of voters are a majority.
type Voters struct {
	Incoming, Outgoing []NodeID
}

// Members are the members taking part: voters, and learners, possible
// responders that never count. The lists ascend.
type Members struct {
	Voters
	Learners []NodeID
	// Coming are further sets of voters without a majority of each of which nothing is
	// committed and nobody is elected, of configurations that are not in force: see rule L29.
	Coming [][]NodeID
}

// counts reports whether a node is a voter of any set that counts.
func (m Members) counts(id NodeID) bool {
	return m.Voters.has(id) || slices.ContainsFunc(m.Coming, func(ids []NodeID) bool { return slices.Contains(ids, id) })
}

// majorityUntil is that of the voters in force, and of each set to come.
func (m Members) majorityUntil(end func(NodeID) Instant) Instant {
	until := m.Voters.majorityUntil(end)
	for _, ids := range m.Coming {
		until = min(until, Voters{Incoming: ids}.majorityUntil(end))
	}
	return until
}

// joint reports whether the configuration has two halves.
func (v Voters) joint() bool { return len(v.Outgoing) > 0 }

// has reports whether id is a voter of either half.
func (v Voters) has(id NodeID) bool {
	return slices.Contains(v.Incoming, id) || slices.Contains(v.Outgoing, id)
}

// equal reports whether both have the same voters.
func (v Voters) equal(o Voters) bool {
	return slices.Equal(v.Incoming, o.Incoming) && slices.Equal(v.Outgoing, o.Outgoing)
}

// majority reports whether yes holds for a majority of the voters, of each half
// if there are two. No voters have no majority.
func (v Voters) majority(yes func(NodeID) bool) bool {
	half := func(ids []NodeID) bool {
		n := 0
		for _, id := range ids {
			if yes(id) {
				n++
			}
		}
		return n > len(ids)/2
	}
	return half(v.Incoming) && (!v.joint() || half(v.Outgoing))
}

// majorityUntil returns until when more than half of the voters, and of both halves of a joint
// configuration, have not ended. end returns the end of each; 0: it has not begun.
func (v Voters) majorityUntil(end func(NodeID) Instant) Instant {
	half := func(ids []NodeID) Instant {
		var room [16]Instant
		ends := room[:0]
		for _, id := range ids {
			ends = append(ends, end(id))
		}
		slices.Sort(ends)
		if len(ends) == 0 {
			return 0
		}
		return ends[(len(ends)-1)/2]
	}
	until := half(v.Incoming)
	if v.joint() {
		until = min(until, half(v.Outgoing))
	}
	return until
}

// clone returns a copy with ascending lists that shares no memory with v.
func (v Voters) clone() Voters {
	return Voters{Incoming: ascending(v.Incoming), Outgoing: ascending(v.Outgoing)}
}

// has reports whether id is a voter or a learner.
func (m Members) has(id NodeID) bool { return m.Voters.has(id) || slices.Contains(m.Learners, id) }

// all returns everybody of them in ascending order, those who come included.
func (m Members) all() []NodeID {
	return ascending(append([][]NodeID{m.Incoming, m.Outgoing, m.Learners}, m.Coming...)...)
}

// ascending returns the ids of all lists in ascending order, each once.
func ascending(lists ...[]NodeID) []NodeID {
	ids := slices.Concat(lists...)
	slices.Sort(ids)
	return slices.Compact(ids)
}
