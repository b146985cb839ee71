// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package electorate knows who counts in a Raft group. No other package looks at a
// configuration: Raft and its extensions ask questions here.
//
// # When a change counts
//
//	appended        committed       reported        ApplyConfChange
//	   |                |               |                 |
//	---+----------------+---------------+-----------------+------> one node
//	   |<------------------- pending -------------------->|
//
// A change of the members is pending from the moment it stands in this node's log until
// the host has put it into force (ApplyConfChange), refused it (ApplyConfChange with a
// change of node 0), or taken a snapshot behind it. A report that the entry is applied
// does not end it: leaders of etcd report entries before they apply them. Only under
// [Rules.AppliedFirst] is a reported change without the call a refused one.
//
// A host that starts without an applied index ([Electorate.Repeats]) is handed changes again
// that its state holds, and may leave out the call for those, as etcd does. Their report ends
// them.
//
// With coding, every configuration in the log counts beside the one in force, if more than
// one change is pending. One pending change adds nothing, because majorities of two
// neighbouring configurations have a member in common. A torn write can leave two: the last
// change survives the crash, and the commit index that covers the first one is lost.
// Upstream's library counts the configuration in force alone, and can split there; so does
// a node without coding, whose answers equal upstream's.
//
// # The questions
//
// Beside each question stands the schedule that breaks a group with another answer.
//
//	Sets          Who must agree to a commit, a vote, a read and a lease? The same
//	              majorities. A lease of a majority of the configuration in force alone:
//	              {3 4 5}, by the newest configuration, elect 4 and commit a write that a
//	              read at 1 by the lease of 2 misses.
//	Voters        Who is asked for a vote? Everybody in Sets.
//	MayWin        May this node lead? Voters in force, and voters to come where
//	              nobody else can win. A removed leader that campaigns stops a group.
//	Everyone      Who receives units, answers a winner, and may grant a lease? Members of
//	              every configuration that counts. A grantor that leases do not know is
//	              a majority that never comes.
//	Heirs         To whom may a stuck leader hand over? Voters of the newest
//	              configuration: a voter that it removes would be refused.
//	MayFollow     What may a change follow? Nothing pending. The next change, checked
//	              against voters that are not the ones to come, takes units from committed
//	              entries; a second end of one joint configuration makes every node panic.
//	MustLeave     Is the joint configuration to be left? If it is the last in the log,
//	              whoever appended the others.
//	InForceTo     Up to where may leases take the log as applied? To before the first
//	              pending change. A roster made under a configuration that is over names a
//	              member whose adoption never comes, and no write commits.
//	HoldsChange   May a snapshot be restored? Not while the host holds a change, which
//	              would come on top of the snapshot's members.
//	Settled       Which members may others learn from this node (see below)? Those in
//	              force, with an index at which the log leads to them. With an earlier
//	              index the learner would count by members that its log does not lead to.
//
// # Members learned from others
//
// A node that lacks a payload below a change can never apply the change, if the other members
// have compacted the payload. Its pending changes go on counting, and if it has the longest log,
// it needs votes of members that have left. So members tell each other, in answers to votes,
// which members they have in force, and the entry at which they have them. The log up to an
// entry leads every node to the same members. A node that has the very entry therefore counts
// as if it had applied its log up to there: the members learned take the place of those in
// force, and of the changes up to the entry, in every question about who must agree and who
// takes part. What the host has put into force, and what may follow in the log, stays.
package electorate

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/confchange"
	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// Log is the log as the electorate reads it.
type Log interface {
	Entry(index uint64) (*pb.Entry, error)
	// HandedOut is the highest index that the host was handed to apply.
	HandedOut() uint64
}

// Rules say how changes in the log count.
type Rules struct {
	// Tracks: changes in the log are followed, because an extension asks for them.
	Tracks bool
	// Foresees: configurations in the log count before they are in force. Implies Tracks.
	Foresees bool
	// AppliedFirst: the host puts a change into force before it reports the entry, so a
	// report without the call means that the host refused the change.
	AppliedFirst bool
}

// Electorate is who counts at one node.
type Electorate struct {
	// members is the configuration in force, with the progress of each member's log. A
	// leader has the progress of members to come as well; see Follow.
	members tracker.ProgressTracker
	log     Log
	rules   Rules

	// pending are the indexes of changes that have not ended.
	//
	// Invariant: ascending; empty unless rules.Tracks. Each is the index of a change in
	// the log.
	pending []uint64
	// coming are the voters after each pending change, if there is more than one.
	//
	// Invariant: a function of members.Config and of the entries at pending; so are
	// everybody and newest. Empty unless rules.Foresees.
	coming []quorum.MajorityConfig
	// everybody is all members of the coming configurations.
	everybody map[uint64]struct{}
	// newest is the voters after the last pending change; nil if there is none.
	newest map[uint64]struct{}

	// since is the index of the last change that is in force, or a later one.
	since uint64
	// past is the log with which a host began that is handed its log again, nil otherwise.
	past *past
	// learned is members that others have in force at an index not applied here, or nil; see Learn.
	//
	// Invariant: the first pending change stands at or before that index, which is committed.
	learned *learned
}

// past is up to where a log was committed, and where it ended.
type past struct {
	committed, last uint64
	// reported are the indexes of changes of this log that a report has ended: the host may yet call for them.
	reported []uint64
}

// learned is members, and the index at which others have them in force.
type learned struct {
	Members
	at uint64
}

// New returns the electorate of a node without members. A leader's window to each
// member is bounded by maxInflight messages and maxInflightBytes.
func New(maxInflight int, maxInflightBytes uint64, log Log, rules Rules) *Electorate {
	rules.Tracks = rules.Tracks || rules.Foresees
	return &Electorate{members: tracker.MakeProgressTracker(maxInflight, maxInflightBytes), log: log, rules: rules}
}

// Questions about the configuration in force.

// Config is the configuration in force. Nobody may change it, or decide by it.
func (e *Electorate) Config() tracker.Config { return e.members.Config }

// counts is the configuration by which this node counts: the one in force, or the one learned.
func (e *Electorate) counts() *tracker.Config {
	if e.learned != nil {
		return &e.learned.config
	}
	return &e.members.Config
}

// ConfState is the same for a snapshot.
func (e *Electorate) ConfState() *pb.ConfState { return e.members.ConfState() }

// Settled returns the configuration in force, and the highest index, at most applied, at which
// the log leads to it. It says false if there is none.
func (e *Electorate) Settled(applied uint64) (cs *pb.ConfState, index uint64, ok bool) {
	index = e.InForceTo(applied)
	return e.ConfState(), index, e.rules.Foresees && index >= e.since
}

// LearnedAt is the index at which this node has its members from others, 0 if it counts by those
// in force.
func (e *Electorate) LearnedAt() uint64 {
	if e.learned == nil {
		return 0
	}
	return e.learned.at
}

// IsVoter reports whether a node is a voter in force, of either half.
func (e *Electorate) IsVoter(id uint64) bool { return isVoter(*e.counts(), id) }

// Tracks reports whether changes in the log are followed.
func (e *Electorate) Tracks() bool { return e.rules.Tracks }

// Incoming is the voters in force, without those that a joint configuration is to leave
// behind. Nobody may change it.
func (e *Electorate) Incoming() quorum.MajorityConfig { return e.members.Voters[0] }

// IsJoint reports whether the configuration in force is joint.
func (e *Electorate) IsJoint() bool { return len(e.members.Voters[1]) > 0 }

// Smallest is the number of voters of the smaller half: it bounds the level of units.
func (e *Electorate) Smallest() int {
	v := e.counts().Voters
	if len(v[1]) == 0 {
		return len(v[0])
	}
	return min(len(v[0]), len(v[1]))
}

// Questions about who must agree.

// Sets are the sets of voters of each of which a majority must agree: to a vote, a
// commit, a read, a lease. An empty set agrees to everything. Nobody may change them.
func (e *Electorate) Sets() []quorum.MajorityConfig {
	now := e.counts().Voters[:]
	if len(e.coming) == 0 {
		return now
	}
	return append(slices.Clone(now), e.coming...)
}

// Torn reports whether Sets has sets of pending changes.
func (e *Electorate) Torn() bool { return len(e.coming) > 0 }

// Coming are the sets that are not in force.
func (e *Electorate) Coming() []quorum.MajorityConfig {
	if e.learned != nil {
		return e.Sets()
	}
	return e.coming
}

// Voters are the members of Sets, in order of id.
func (e *Electorate) Voters() (ids []uint64) {
	for _, v := range e.Sets() {
		ids = append(ids, v.Slice()...)
	}
	return ascending(ids)
}

// Tally counts votes.
func (e *Electorate) Tally(votes map[uint64]bool) quorum.VoteResult {
	result := quorum.VoteWon
	for _, v := range e.Sets() {
		switch vr := v.VoteResult(votes); {
		case vr == quorum.VoteLost || result == quorum.VoteLost:
			result = quorum.VoteLost
		case vr == quorum.VotePending:
			result = quorum.VotePending
		}
	}
	return result
}

// Committable returns the highest index acknowledged by a majority of each set.
func (e *Electorate) Committable() uint64 { return e.Confirmed(acks(e.members.Progress)) }

// Confirmed returns the highest number said by a majority of each set.
func (e *Electorate) Confirmed(said quorum.AckedIndexer) uint64 {
	k := e.counts().Voters.CommittedIndex(said)
	for _, v := range e.coming {
		k = min(k, v.CommittedIndex(said))
	}
	return uint64(k)
}

// Active reports whether a majority of each set was heard from since the last check of
// the quorum.
func (e *Electorate) Active() bool {
	heard := make(map[uint64]bool, len(e.members.Progress))
	for id, pr := range e.members.Progress {
		heard[id] = pr.RecentActive
	}
	return e.Tally(heard) == quorum.VoteWon
}

// IsAlone reports whether a node is each set by itself. A removed or demoted leader is not
// alone: the remaining voter may have won a later term.
func (e *Electorate) IsAlone(id uint64) bool {
	others := func(v quorum.MajorityConfig) bool {
		_, in := v[id]
		return len(v) > 1 || len(v) == 1 && !in
	}
	v := e.counts().Voters
	return len(v[0]) == 1 && len(v[1]) == 0 && !slices.ContainsFunc(e.Sets(), others)
}

// MayWin reports whether a node may lead: a voter in force or, if early holds, a member
// that the last pending change makes a voter.
func (e *Electorate) MayWin(id uint64, early bool) bool {
	pr := e.members.Progress[id]
	if pr == nil {
		return false
	}
	votes := !pr.IsLearner
	if e.learned != nil {
		votes = e.IsVoter(id)
	}
	_, comes := e.newest[id]
	return votes || comes && early
}

// Questions about who takes part.

// Everyone is the members, learners too, of every configuration that counts, in order of id.
func (e *Electorate) Everyone() []uint64 {
	return ascending(slices.AppendSeq(slices.Collect(maps.Keys(e.everybody)), maps.Keys(e.members.Progress)))
}

// Expects reports whether a node is a member of a configuration to come.
func (e *Electorate) Expects(id uint64) bool {
	_, comes := e.everybody[id]
	return comes
}

// Brings returns voters that the last pending change brings and that this node does not
// follow yet.
func (e *Electorate) Brings() (ids []uint64) {
	for id := range e.newest {
		if e.members.Progress[id] == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Heirs are the voters of the newest configuration in the log, in order of id. since is
// the index of the change that made it, 0 if it is in force.
func (e *Electorate) Heirs() (ids []uint64, since uint64) {
	newest := e.newest
	if newest == nil {
		newest = e.members.Voters.IDs()
	} else {
		since = e.pending[len(e.pending)-1]
	}
	return slices.Sorted(maps.Keys(newest)), since
}

// Questions about changes.

// errPending refuses a change for now.
var errPending = errors.New("the configuration change before it is not in force yet")

// MayFollow returns why no further change may be appended now, or nil.
func (e *Electorate) MayFollow() error {
	if len(e.pending) > 0 {
		return fmt.Errorf("%w: entry %d waits for the host's ApplyConfChange", errPending, e.pending[0])
	}
	return nil
}

// MustLeave reports whether the configuration in force is joint, is to be left
// automatically, and no change behind it is pending, as far as this node tracks changes.
func (e *Electorate) MustLeave() bool { return e.members.AutoLeave && len(e.pending) == 0 }

// FirstPending is the index of the first pending change, 0 if there is none.
func (e *Electorate) FirstPending() uint64 {
	if len(e.pending) == 0 {
		return 0
	}
	return e.pending[0]
}

// InForceTo returns the highest index, at most applied, without a pending change at or
// below it.
func (e *Electorate) InForceTo(applied uint64) uint64 {
	if first := e.FirstPending(); first > 0 && first <= applied {
		return first - 1
	}
	return applied
}

// HoldsChange reports whether the host was handed a change that has not ended.
func (e *Electorate) HoldsChange() bool {
	return len(e.pending) > 0 && e.pending[0] <= e.log.HandedOut()
}

// After returns the configuration after a change to the one in force, and the nodes that have
// a vote then and have none now, in order of id.
func (e *Electorate) After(cc *pb.ConfChangeV2) (cfg tracker.Config, brings []uint64, err error) {
	t := e.members
	t.Config, t.Progress = e.members.Clone(), cloneProgress(e.members.Progress)
	if cfg, _, err = changed(confchange.Changer{Tracker: inForce(t), LastIndex: 1}, cc); err != nil {
		return cfg, nil, err
	}
	for id := range cfg.Voters.IDs() {
		if !e.IsVoter(id) {
			brings = append(brings, id)
		}
	}
	slices.Sort(brings)
	return cfg, brings, nil
}

// Progress of members' logs. It means something at a leader, and hosts may see it anywhere.

// Progress returns a member's progress, nil for a node that is not followed.
func (e *Electorate) Progress(id uint64) *tracker.Progress { return e.members.Progress[id] }

// All is the progress of all followed members.
func (e *Electorate) All() tracker.ProgressMap { return e.members.Progress }

// Visit calls f for each followed member in order of id.
func (e *Electorate) Visit(f func(id uint64, pr *tracker.Progress)) { e.members.Visit(f) }

// NewProgress returns the progress of a member whose log may end anywhere, from index next on.
func (e *Electorate) NewProgress(next uint64, learner bool) tracker.Progress {
	return tracker.Progress{
		Next:      next,
		Inflights: tracker.NewInflights(e.members.MaxInflight, e.members.MaxInflightBytes),
		IsLearner: learner,
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

func ascending(ids []uint64) []uint64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}
