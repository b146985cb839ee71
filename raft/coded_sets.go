// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"maps"
	"slices"

	"go.etcd.io/raft/v3/confchange"
	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// The sets of voters that count. They are those of the configuration in force,
// and one further configuration in the log changes nothing: it is one step away,
// so that majorities of both have a member in common. But a write that a crash
// tore can leave more than one: the last of them survives, and the commit index
// that says that the first is committed is lost. Then majorities of all of them
// are needed, to win, to cut and to commit.

// pendingConf is the configuration changes of the log that are not in force.
type pendingConf struct {
	// changes are their indexes, ascending.
	changes []uint64
	// sets are the voters after each of them, if there is more than one.
	sets []quorum.MajorityConfig
	// members are all members of those configurations, by id.
	members []uint64
	// newest is the voters after the last of them; nil if there is none.
	newest map[uint64]struct{}
}

// voterSets returns the sets of voters that count.
func (c *coded) voterSets() []quorum.MajorityConfig {
	inForce := c.r.members.Voters[:]
	if len(c.pending.sets) == 0 {
		return inForce
	}
	return append(slices.Clone(inForce), c.pending.sets...)
}

// voterSets returns the sets of voters that count, with coding or without.
func (r *raft) voterSets() []quorum.MajorityConfig {
	if r.coded != nil {
		return r.coded.voterSets()
	}
	return r.members.Voters[:]
}

// everyone returns the ids of all members, in order.
func (c *coded) everyone() []uint64 {
	ids := slices.Clone(c.pending.members)
	for id := range c.r.members.Progress {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// noteChanges notes the configuration changes among entries that were appended.
func (c *coded) noteChanges(ents []*pb.Entry) {
	if c == nil {
		return
	}
	n := len(c.pending.changes)
	for _, e := range ents {
		if isConfChange(e) {
			c.pending.changes = append(c.pending.changes, e.GetIndex())
		}
	}
	if len(c.pending.changes) > n {
		c.derivePending()
	}
}

// dropChanges forgets changes in entries from index on.
func (c *coded) dropChanges(index uint64) {
	n := len(c.pending.changes)
	for n > 0 && c.pending.changes[n-1] >= index {
		n--
	}
	if n < len(c.pending.changes) {
		c.pending.changes = c.pending.changes[:n]
		c.derivePending()
	}
}

// changesApplied forgets changes up to index.
func (c *coded) changesApplied(index uint64) {
	n := 0
	for n < len(c.pending.changes) && c.pending.changes[n] <= index {
		n++
	}
	if n > 0 {
		c.pending.changes = c.pending.changes[n:]
		c.derivePending()
	}
}

// holdsChange reports whether the host was handed a change that it has not put into
// force. It would come on top of a snapshot that is taken now, with the members of then.
func (c *coded) holdsChange() bool {
	return c != nil && len(c.pending.changes) > 0 && c.pending.changes[0] <= c.r.log.applying
}

// confSwitched hears that the next change was put into force, and who was a member
// before.
func (c *coded) confSwitched(before tracker.ProgressMap) {
	if c == nil {
		return
	}
	// Only what was handed out can be in force. (Those of a bootstrap are put into
	// force twice.)
	if p := &c.pending; len(p.changes) > 0 && p.changes[0] <= c.r.log.applying {
		p.changes = p.changes[1:]
	}
	// One that joins may be another than had its id before, whatever the log says
	// of that one.
	maps.DeleteFunc(c.accounts, func(id uint64, _ *account) bool {
		return before[id] == nil || c.r.members.Progress[id] == nil
	})
	c.derivePending()
	c.puller.SetMembers(c.everyone())
	// Who may campaign in spite of a change (mayCampaignBlocked) may be removed
	// by it meanwhile.
	if s := c.r.role.state(); (s == StateCandidate || s == StatePreCandidate) && !isVoter(c.r.members.Config, c.r.id) {
		c.r.becomeFollower(c.r.term, None)
	}
}

// derivePending works out the configurations that are not in force.
func (c *coded) derivePending() {
	p := &c.pending
	p.sets, p.members, p.newest = nil, nil, nil
	for _, rec := range c.ledger.recs {
		rec.covered = false // that was in other sets
	}
	if len(p.changes) == 0 {
		return
	}
	r := c.r
	t := tracker.MakeProgressTracker(1, 0)
	t.Config, t.Progress = r.members.Clone(), cloneProgress(r.members.Progress)
	for _, index := range p.changes {
		term, err := r.log.term(index)
		if err != nil {
			return
		}
		e, err := c.entry(entryID{term: term, index: index})
		if err != nil {
			return
		}
		cc, err := decodeConfChange(e)
		if err != nil {
			return
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
		t.Config, t.Progress, p.newest = cfg, progress, cfg.Voters.IDs()
		if len(p.changes) < 2 {
			return
		}
		for _, v := range cfg.Voters {
			if len(v) > 0 {
				p.sets = append(p.sets, v)
			}
		}
		for id := range progress {
			p.members = append(p.members, id)
		}
	}
	if l := r.leading(); l != nil {
		l.followPending()
	}
}

// followPending has a leader replicate to members of configurations that are not
// in force: their acknowledgements count.
func (l *leader) followPending() {
	p := &l.coded.pending
	for _, id := range p.members {
		if l.members.Progress[id] == nil {
			voter := slices.ContainsFunc(p.sets, func(v quorum.MajorityConfig) bool { _, ok := v[id]; return ok })
			l.members.Progress[id] = &tracker.Progress{
				Next:      l.log.last().index + 1,
				Inflights: tracker.NewInflights(l.members.MaxInflight, l.members.MaxInflightBytes),
				IsLearner: !voter,
			}
		}
	}
	for id := range l.members.Progress {
		_, learner := l.members.Learners[id]
		_, next := l.members.LearnersNext[id]
		if !learner && !next && !isVoter(l.members.Config, id) && !slices.Contains(p.members, id) && id != l.id {
			delete(l.members.Progress, id)
		}
	}
}

// changed returns what a configuration becomes by a change.
func changed(t tracker.ProgressTracker, cc *pb.ConfChangeV2) (tracker.Config, tracker.ProgressMap, error) {
	change := confchange.Changer{Tracker: inForce(t), LastIndex: 1}
	if cc.LeaveJoint() {
		return change.LeaveJoint()
	}
	if autoLeave, joint := cc.EnterJoint(); joint {
		return change.EnterJoint(autoLeave, cc.Changes...)
	}
	return change.Simple(cc.Changes...)
}

func cloneProgress(m tracker.ProgressMap) tracker.ProgressMap {
	out := make(tracker.ProgressMap, len(m))
	for id, pr := range m {
		p := *pr
		out[id] = &p
	}
	return out
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

// acknowledgedByAll returns the highest index that a majority of each set of
// voters that counts has acknowledged.
func (c *coded) acknowledgedByAll() uint64 {
	k := c.r.members.Committed()
	for _, v := range c.pending.sets {
		k = min(k, uint64(v.CommittedIndex(acks(c.r.members.Progress))))
	}
	return k
}

// voteResult counts votes in all sets that count.
func (c *coded) voteResult(votes map[uint64]bool) quorum.VoteResult {
	result := c.r.members.Voters.VoteResult(votes)
	for _, v := range c.pending.sets {
		switch vr := v.VoteResult(votes); {
		case vr == quorum.VoteLost || result == quorum.VoteLost:
			result = quorum.VoteLost
		case vr == quorum.VotePending:
			result = quorum.VotePending
		}
	}
	return result
}

// quorumActive reports whether a majority of each set of voters that counts was
// heard from since the last check.
func (l *leader) quorumActive() bool {
	if l.coded == nil || len(l.coded.pending.sets) == 0 {
		return l.members.QuorumActive()
	}
	active := make(map[uint64]bool, len(l.members.Progress))
	for id, pr := range l.members.Progress {
		active[id] = pr.RecentActive
	}
	return l.tally(active) == quorum.VoteWon
}

// tally counts votes.
func (r *raft) tally(votes map[uint64]bool) quorum.VoteResult {
	if r.coded != nil {
		return r.coded.voteResult(votes)
	}
	return r.members.Voters.VoteResult(votes)
}

// voters returns whose votes count, in order of id.
func (r *raft) voters() []uint64 {
	ids := r.members.VoterNodes()
	if r.coded == nil || len(r.coded.pending.sets) == 0 {
		return ids
	}
	for _, v := range r.coded.pending.sets {
		ids = append(ids, v.Slice()...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// mayCampaignBlocked reports whether this node may campaign although it has not
// applied a committed configuration: it cannot, as it lacks a payload before it.
// With the longest log it may be the only one that can win, and who leads can
// bring it what it lacks.
func (c *coded) mayCampaignBlocked() bool {
	if c == nil || len(c.pending.changes) == 0 {
		return false
	}
	rec := c.ledger.incomplete()
	return rec != nil && rec.id.index < c.pending.changes[0]
}
