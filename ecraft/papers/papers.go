// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package papers has the policies of published systems, for comparison. Their units overlap, or the
// number of data units changes from entry to entry, so the policies choose sets of units, while
// package ecraft counts units of disjoint strips. The core does not run these policies, because
// each gives a weaker guarantee than the core; the comment of each policy names the difference.
//
// Words are as elsewhere: N voters, m the majority, f = N-m the failures that Raft survives. Server
// 0 is the leader and holds every payload whole; server i+1 is Round.Followers[i]. The policies use
// voters only.
package papers

import "github.com/weftraft/weft/ecraft"

// SetPolicy decides which units of an entry each follower stores, in the general form.
type SetPolicy interface {
	// Name is the policy's name in reports.
	Name() string
	// AssignSets fills sets[i] for r.Followers[i].
	AssignSets(r *ecraft.Round, sets []ecraft.Set) SetPlan
}

// SetPlan is the meaning of an assignment.
type SetPlan struct {
	ecraft.Plan
	// D units decode the payload. Each unit has ceil(Round.Size / D) bytes.
	D int
	// Quorum is the number of servers that must have answered, the leader included.
	Quorum int
	// Survives is the number of servers that may fail right after the commit, such that the
	// remaining servers can still decode.
	Survives int
	// Covers says that the answers must also cover the payload: see Commits.
	Covers bool
}

// Commits reports whether an entry may commit by its paper's rule, after the leader and the
// followers in answered have stored the units in sets.
func (p SetPlan) Commits(sets []ecraft.Set, answered []bool) bool {
	n, held := 1, []ecraft.Set{whole(p.D)}
	for i, yes := range answered {
		if yes {
			n++
			held = append(held, sets[i])
		} else {
			held = append(held, ecraft.Set{})
		}
	}
	if n < p.Quorum {
		return false
	}
	return !p.Covers || ecraft.CoveredSets(p.D, len(held)/2+1, held)
}

// whole is a payload's data units.
func whole(d int) (s ecraft.Set) {
	for u := range d {
		s.Add(u)
	}
	return s
}

// servers returns N, f and how many servers are healthy, the leader included.
func servers(r *ecraft.Round) (n, f, healthy int) {
	n, healthy = len(r.Followers)+1, 1
	for _, m := range r.Followers {
		if m.Healthy {
			healthy++
		}
	}
	return n, (n - 1) / 2, healthy
}

// full assigns full copies.
func full(r *ecraft.Round, sets []ecraft.Set) SetPlan {
	n, f, _ := servers(r)
	for i := range sets {
		sets[i] = whole(1)
	}
	return SetPlan{Plan: ecraft.Plan{Level: 1}, D: 1, Quorum: n - f, Survives: f}
}

// RSPaxos cuts a payload into m units, codes them into N, and always sends a unit to each server
// (Mu et al., HPDC 2014). Two quorums must share m servers, so a quorum is ceil((N+m)/2).
//
// Weaker: RSPaxos survives N less the quorum, at N = 5 one failure instead of two. With more
// failures no entry commits, and committed entries may be beyond recovery.
type RSPaxos struct{}

// Name implements SetPolicy.
func (RSPaxos) Name() string { return "rs-paxos" }

// AssignSets implements SetPolicy.
func (RSPaxos) AssignSets(r *ecraft.Round, sets []ecraft.Set) SetPlan {
	n, f, _ := servers(r)
	m := n - f
	one(sets)
	quorum := (n + m + 1) / 2
	return SetPlan{Plan: ecraft.Plan{Level: m}, D: m, Quorum: quorum, Survives: n - quorum}
}

// one assigns unit i to server i.
func one(sets []ecraft.Set) {
	for i := range sets {
		sets[i] = ecraft.Set{}
		sets[i].Add(i + 1)
	}
}

// CRaft sends a unit, of m data units, to each server while f+m servers are healthy, the number
// that survives f failures, and full copies otherwise (Wang et al., FAST 2020).
//
// Weaker: an entry under way as single units when a server fails cannot commit until the failure is
// detected and the entry was stored again, whole, in the place of the unit. Stores must be able to
// rewrite acknowledged entries, and the meaning of an acknowledgement depends on its time.
type CRaft struct{}

// Name implements SetPolicy.
func (CRaft) Name() string { return "craft" }

// AssignSets implements SetPolicy.
func (CRaft) AssignSets(r *ecraft.Round, sets []ecraft.Set) SetPlan {
	n, f, healthy := servers(r)
	m := n - f
	if healthy < f+m {
		return full(r, sets)
	}
	one(sets)
	return SetPlan{Plan: ecraft.Plan{Level: m}, D: m, Quorum: f + m, Survives: f}
}

// HRaft keeps m units when servers fail: the unit of each missing server goes to f healthy
// followers in addition to their own (Jia et al., IPDPS 2022).
//
// Weaker: as in CRaft, entries in flight wait for the failure to be detected, and for more units,
// which are appended to acknowledged entries.
type HRaft struct{}

// Name implements SetPolicy.
func (HRaft) Name() string { return "hraft" }

// AssignSets implements SetPolicy.
func (HRaft) AssignSets(r *ecraft.Round, sets []ecraft.Set) SetPlan {
	n, f, healthy := servers(r)
	m := n - f
	if healthy <= f {
		return full(r, sets) // no entry can commit
	}
	one(sets)
	for i, missing := range r.Followers {
		if missing.Healthy {
			continue
		}
		sets[i] = ecraft.Set{}
		copies := 0
		for j, other := range r.Followers {
			if other.Healthy && copies < f {
				sets[j].Add(i + 1)
				copies++
			}
		}
	}
	return SetPlan{Plan: ecraft.Plan{Level: m}, D: m, Quorum: healthy, Survives: f, Covers: true}
}

// FlexRaft cuts a payload into as many units as the healthy servers allow, healthy-f, and sends a
// unit to each (Zhang et al., ICPP 2023). Its bytes are the least that survive f failures.
//
// Weaker: when servers fail, entries in flight are coded anew with fewer units, and their holders
// overwrite acknowledged entries. A late answer to the old coding must not count for the new
// coding, an old message must not overwrite a new entry, and a store that tears a rewrite in a
// crash loses entries.
type FlexRaft struct{}

// Name implements SetPolicy.
func (FlexRaft) Name() string { return "flexraft" }

// AssignSets implements SetPolicy.
func (FlexRaft) AssignSets(r *ecraft.Round, sets []ecraft.Set) SetPlan {
	_, f, healthy := servers(r)
	k := healthy - f
	if k <= 1 {
		return silentGetNothing(r, sets, full(r, sets))
	}
	one(sets)
	return silentGetNothing(r, sets, SetPlan{Plan: ecraft.Plan{Level: k}, D: k, Quorum: healthy, Survives: f})
}

// silentGetNothing takes the units from followers that are not healthy, unless the rest is no
// majority.
func silentGetNothing(r *ecraft.Round, sets []ecraft.Set, p SetPlan) SetPlan {
	if _, f, healthy := servers(r); healthy > f {
		for i, m := range r.Followers {
			if !m.Healthy {
				sets[i] = ecraft.Set{}
				p.Covers = true // answers of followers without units do not count
			}
		}
	}
	return p
}
