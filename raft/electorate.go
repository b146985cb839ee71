// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"maps"
	"slices"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// electorate says whose votes and acknowledgements count: to win an election, to
// commit, to confirm a read, to go on leading.
//
// The voters of the configuration in force count, both halves of a joint one. One
// further configuration in the log changes nothing, because its majorities and the
// present majorities have a member in common. But a torn write can leave two: the last
// change survives a crash, and the commit index covering the first change is lost. Then
// majorities of all configurations are needed.
//
// Upstream's library counts the voters in force alone, and can split there. A node
// foresees only with coding on: then all members of the group foresee, and answers need
// not equal upstream's.
type electorate struct {
	// members is the configuration in force.
	members *tracker.ProgressTracker
	log     *raftLog
	// foresees says whether configurations of the log count before they are in force.
	foresees bool

	// changes are the indexes of configuration changes not in force.
	//
	// Invariant: ascending; empty unless the node foresees. Each is the index of a
	// configuration change in the log.
	changes []uint64
	// coming are the voters after each of the changes, if there is more than one.
	//
	// Invariant: a function of members and of the changes' entries; so are
	// everybody and newest.
	coming []quorum.MajorityConfig
	// everybody is all members of the coming configurations.
	everybody []uint64
	// newest is the voters after the last change; nil if there is none.
	newest map[uint64]struct{}
}

// sets returns the sets of voters: a majority of each must agree. An empty set agrees
// to everything.
func (e *electorate) sets() []quorum.MajorityConfig {
	inForce := e.members.Voters[:]
	if len(e.coming) == 0 {
		return inForce
	}
	return append(slices.Clone(inForce), e.coming...)
}

// voters returns whose votes count, in order of id.
func (e *electorate) voters() []uint64 {
	ids := e.members.VoterNodes()
	if len(e.coming) == 0 {
		return ids
	}
	for _, v := range e.coming {
		ids = append(ids, v.Slice()...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// everyone returns the ids of all members, learners too, in order.
func (e *electorate) everyone() []uint64 {
	ids := slices.Clone(e.everybody)
	for id := range e.members.Progress {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// expects reports whether a node is a member of a coming configuration.
func (e *electorate) expects(id uint64) bool { return slices.Contains(e.everybody, id) }

// tally counts votes.
func (e *electorate) tally(votes map[uint64]bool) quorum.VoteResult {
	result := e.members.Voters.VoteResult(votes)
	for _, v := range e.coming {
		switch vr := v.VoteResult(votes); {
		case vr == quorum.VoteLost || result == quorum.VoteLost:
			result = quorum.VoteLost
		case vr == quorum.VotePending:
			result = quorum.VotePending
		}
	}
	return result
}

// committable returns the highest index acknowledged by a majority of each set.
func (e *electorate) committable() uint64 {
	k := e.members.Committed()
	for _, v := range e.coming {
		k = min(k, uint64(v.CommittedIndex(acks(e.members.Progress))))
	}
	return k
}

// active reports whether a majority of each set was heard from since the last
// check of the quorum.
func (e *electorate) active() bool {
	if len(e.coming) == 0 {
		return e.members.QuorumActive()
	}
	heard := make(map[uint64]bool, len(e.members.Progress))
	for id, pr := range e.members.Progress {
		heard[id] = pr.RecentActive
	}
	return e.tally(heard) == quorum.VoteWon
}

// appended is called after entries are appended, and reports whether the voters to
// count have changed.
func (e *electorate) appended(ents []*pb.Entry) bool {
	if !e.foresees {
		return false
	}
	n := len(e.changes)
	for _, ent := range ents {
		if isConfChange(ent) {
			e.changes = append(e.changes, ent.GetIndex())
		}
	}
	return len(e.changes) > n && e.derive()
}

// cut is called before the log is dropped from an index on.
func (e *electorate) cut(from uint64) bool {
	n := len(e.changes)
	for n > 0 && e.changes[n-1] >= from {
		n--
	}
	if n == len(e.changes) {
		return false
	}
	e.changes = e.changes[:n]
	return e.derive()
}

// applied is called after the host has applied the log up to an index. Changes up to
// there are in force, or were refused by the host.
func (e *electorate) applied(index uint64) bool {
	n := 0
	for n < len(e.changes) && e.changes[n] <= index {
		n++
	}
	if n == 0 {
		return false
	}
	e.changes = e.changes[n:]
	return e.derive()
}

// holdsChange reports whether the host was handed a change and has not put it into
// force. The host would then apply the change on top of a snapshot restored now, whose
// members have the change already.
func (e *electorate) holdsChange() bool {
	return len(e.changes) > 0 && e.changes[0] <= e.log.applying
}

// switched is called after the host has put a change into force: the next of the log
// or, in a bootstrap, a change not handed out yet. Only a change handed to the host can
// be the next of the log.
func (e *electorate) switched() {
	if len(e.changes) > 0 && e.changes[0] <= e.log.applying {
		e.changes = e.changes[1:]
	}
	e.derive()
}

// restored is called after a snapshot has replaced the log.
func (e *electorate) restored() { e.changes = nil; e.derive() }

// derive computes the coming configurations, and returns true.
func (e *electorate) derive() bool {
	e.coming, e.everybody, e.newest = nil, nil, nil
	if len(e.changes) == 0 {
		return true
	}
	t := tracker.MakeProgressTracker(1, 0)
	t.Config, t.Progress = e.members.Clone(), cloneProgress(e.members.Progress)
	for _, index := range e.changes {
		ent, err := e.log.entry(index)
		if err != nil {
			return true
		}
		cc, err := decodeConfChange(ent)
		if err != nil {
			return true
		}
		cfg, progress, err := changed(t, cc)
		if err != nil {
			// Refused on applying, as a host may. A host may refuse further changes,
			// and so reach configurations not derived here. With up to three changes
			// each such configuration is one step away from a derived one, and so
			// covered. Four changes at once need a host that applied none of the first
			// three, although a leader had, and lost their commit index in one crash.
			continue
		}
		t.Config, t.Progress, e.newest = cfg, progress, cfg.Voters.IDs()
		if len(e.changes) < 2 {
			return true
		}
		for _, v := range cfg.Voters {
			if len(v) > 0 {
				e.coming = append(e.coming, v)
			}
		}
		e.everybody = slices.AppendSeq(e.everybody, maps.Keys(progress))
	}
	return true
}

// follow has a leader replicate to members of configurations to come: their
// acknowledgements count.
func (e *electorate) follow(leader uint64) {
	t := e.members
	for _, id := range e.everybody {
		if t.Progress[id] == nil {
			voter := slices.ContainsFunc(e.coming, func(v quorum.MajorityConfig) bool { _, ok := v[id]; return ok })
			t.Progress[id] = &tracker.Progress{
				Next:      e.log.last().index + 1,
				Inflights: tracker.NewInflights(t.MaxInflight, t.MaxInflightBytes),
				IsLearner: !voter,
			}
		}
	}
	for id := range t.Progress {
		if id != leader && !isMember(t.Config, id) && !e.expects(id) {
			delete(t.Progress, id)
		}
	}
}

// acks are the acknowledged indexes of members, in the form of package quorum.
type acks tracker.ProgressMap

// AckedIndex implements quorum.AckedIndexer.
func (a acks) AckedIndex(id uint64) (quorum.Index, bool) {
	pr, ok := a[id]
	if !ok {
		return 0, false
	}
	return quorum.Index(pr.Match), true
}
