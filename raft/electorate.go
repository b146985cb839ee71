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
// The voters of the configuration in force count, both halves of a joint one.
// One further configuration in the log changes nothing: it is one step away, so
// that majorities of both have a member in common. But a write that a crash tore
// can leave two: the last of them survives, and the commit index that says that
// the first is committed is lost. Then majorities of all of them are needed.
//
// Upstream's library counts the voters in force alone, and can split there. A
// node foresees only where an extension says so: then all members of its group
// do, and it need not answer as upstream does.
type electorate struct {
	// members is the configuration in force.
	members *tracker.ProgressTracker
	log     *raftLog

	// changes are the indexes of configuration changes that are not in force.
	//
	// Invariant: ascending; empty unless the node foresees. Each is an entry of the log that
	// changes the configuration.
	changes []uint64
	// coming are the voters after each of the changes, if there is more than one.
	//
	// Invariant: a function of members and of the changes' entries; so are
	// everybody and newest.
	coming []quorum.MajorityConfig
	// everybody is all members of those configurations.
	everybody []uint64
	// newest is the voters after the last change; nil if there is none.
	newest map[uint64]struct{}
}

// foresees reports whether configurations of the log count before they are in force.
func (e *electorate) foresees() bool { return e.log.node.cfg.Coding != nil }

// sets returns the sets of voters that count, a majority of each of which must
// agree. A set may be empty, and then agrees to all.
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

// expects reports whether a node is a member of a configuration to come that
// counts.
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

// committable returns the highest index that a majority of each set has
// acknowledged.
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

// appended hears of entries that now stand in the log, and reports whether other
// voters count since.
func (e *electorate) appended(ents []*pb.Entry) bool {
	if !e.foresees() {
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

// cut hears that the log from an index on is dropped.
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

// applied hears that the host has applied the log up to an index. Changes up to
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

// holdsChange reports whether the host was handed a change that it has not put into
// force. It would come on top of a snapshot that is taken now, with the members of then.
func (e *electorate) holdsChange() bool {
	return len(e.changes) > 0 && e.changes[0] <= e.log.applying
}

// switched hears that the next change was put into force, as every node does, or
// another configuration than the log has: the first of a bootstrap stands in the
// log as well. Only what was handed to the host can be in force.
func (e *electorate) switched() {
	if len(e.changes) > 0 && e.changes[0] <= e.log.applying {
		e.changes = e.changes[1:]
	}
	e.derive()
}

// restored hears that a snapshot has replaced the log.
func (e *electorate) restored() { e.changes = nil; e.derive() }

// derive works out the configurations that are not in force. It returns true.
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
			// Refused when it is applied, as the host may. A host that refuses others,
			// too, leads to configurations that are not derived here; up to three
			// changes, each is one step away from one that is, and so covered. Four at
			// once take a host that applied none of the first three, which a leader
			// had applied, and lost in one crash that they are committed.
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

// acks are the acknowledged indexes of members, as package quorum asks for them.
type acks tracker.ProgressMap

// AckedIndex implements quorum.AckedIndexer.
func (a acks) AckedIndex(id uint64) (quorum.Index, bool) {
	pr, ok := a[id]
	if !ok {
		return 0, false
	}
	return quorum.Index(pr.Match), true
}

func cloneProgress(m tracker.ProgressMap) tracker.ProgressMap {
	out := make(tracker.ProgressMap, len(m))
	for id, pr := range m {
		p := *pr
		out[id] = &p
	}
	return out
}
