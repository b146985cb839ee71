// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"math"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft/internal/electorate"
)

// raft is the part of a node common to all roles: identity, term, vote, log, members,
// and output for the host. Each role is a type of its own, with a pointer to raft
// embedded and the fields of the role.
type raft struct {
	id  uint64
	cfg Config // with defaults filled in

	// term is the latest term seen by this node, vote the node voted for in term, lead
	// the leader of term. term and vote are durable before any message that depends on
	// them leaves the node.
	//
	// Invariant: term never falls; vote changes once a term, from None.
	term, vote, lead uint64

	role role
	log  *raftLog
	// early is what the host may apply before it is written: see early.go. nil: nothing.
	early *early

	// members is who counts, with the progress of each member's log. Progress is
	// meaningful only at a leader, but hosts can see it anywhere (WithProgress).
	members *electorate.Electorate
	// extension is the extension, coding or leases: see extension.go.
	extension extension

	// outbox holds messages free to leave at once; vouching holds messages vouching for
	// state: votes and acknowledgements. A vouching message leaves once every write
	// handed out before is durable (thesis 3.8). Messages of a node to itself are
	// always vouching.
	outbox, vouching []*pb.Message
	// readStates holds reads confirmed here, for the next Ready.
	readStates []ReadState
	// earlyReads holds reads from before a leader had committed an entry of its term.
	// Early reads outlive the leadership: when the node leads again it answers them,
	// late but right. Few groups ever have one, so that the list is apart.
	earlyReads *[]*pb.Message

	// quietTicks counts ticks since a follower last heard from its leader or
	// gave its vote, since a candidate began, and at a leader since the last
	// quorum check or the begin of a transfer.
	quietTicks int32
	// patience is the limit on quietTicks at a follower or candidate, drawn anew at
	// each change of role from [ElectionTick, 2*ElectionTick); 0 where that overflows, as upstream's
	// library campaigns at its next tick then.
	patience int32
}

// role is the behaviour of a node as a follower, candidate or leader.
type role interface {
	state() StateType
	// tick counts one tick.
	tick()
	// step handles a message of the present term, or without a term, in the way of the
	// role. Message types without meaning to the role are ignored.
	step(m *pb.Message) error
}

// newRaft starts a node, as a follower, from its storage.
func newRaft(config *Config) (*raft, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	cfg := config.withDefaults()
	log, err := openLog(cfg.Storage, cfg.Logger, entryEncodingSize(cfg.MaxCommittedSizePerReady))
	if err != nil {
		return nil, err
	}
	hs, cs, err := cfg.Storage.InitialState()
	if err != nil {
		return nil, fmt.Errorf("%w: InitialState: %w", ErrStorage, err)
	}
	r := &raft{
		id:    cfg.ID,
		cfg:   cfg,
		log:   log,
		early: newEarly(cfg.MaxEarlyApplySize),
		members: electorate.New(cfg.MaxInflightMsgs, cfg.MaxInflightBytes, changeLog{log}, electorate.Rules{
			Tracks: cfg.Leases != nil, Foresees: cfg.Coding != nil, AppliedFirst: cfg.ConfChangesFirst,
		}),
	}
	r.role = &follower{raft: r}
	r.extension, log.node = alone{log}, r
	members, err := r.members.Restored(cs, log.last().Index)
	if err != nil {
		return nil, fmt.Errorf("raft: Storage.InitialState has a configuration %s that cannot be restored: %w", DescribeConfState(cs), err)
	}
	if err := r.resume(hs, cfg.Applied); err != nil {
		return nil, err
	}
	r.members.Take(members, log.committed)
	if cfg.Applied == 0 {
		r.members.Repeats(log.committed, log.last().Index)
	}
	r.sayMembers()
	if err := r.extend(); err != nil {
		return nil, err
	}
	r.becomeFollower(r.term, None)
	r.cfg.Logger.Infof("raft: node %x starts at term %d, members %s, commit index %d, applied %d, log ends at %v",
		r.id, r.term, r.members.Config(), log.committed, log.applied, log.last())
	return r, log.err
}

// resume takes over the hard state and the applied index of before a restart.
func (r *raft) resume(hs *pb.HardState, applied uint64) error {
	l := r.log
	if !IsEmptyHardState(hs) {
		if commit := hs.GetCommit(); commit < l.committed || commit > l.last().Index {
			return fmt.Errorf("raft: Storage.InitialState has commit index %d, but the log covers [%d, %d]: was it damaged, truncated or lost?",
				commit, l.committed, l.last().Index)
		}
		r.term, r.vote, l.committed = hs.GetTerm(), hs.GetVote(), hs.GetCommit()
	}
	if applied > 0 {
		if applied < l.applied || applied > l.committed {
			return fmt.Errorf("raft: Config.Applied is %d; it must lie in [%d, %d], from the snapshot's index to the commit index",
				applied, l.applied, l.committed)
		}
		l.appliedTo(applied, 0)
	}
	return nil
}

// leading returns this node's role as a leader, or nil.
func (r *raft) leading() *leader {
	l, _ := r.role.(*leader)
	return l
}

func (r *raft) softState() SoftState { return SoftState{Lead: r.lead, RaftState: r.role.state()} }

// enter begins a role in a term: the state of the previous role is forgotten.
func (r *raft) enter(ro role, term, lead uint64) {
	if r.term != term {
		r.term, r.vote = term, None
	}
	r.quietTicks = 0
	r.patience = int32(min(max(r.cfg.ElectionTick+r.cfg.Rand.IntN(r.cfg.ElectionTick), 0), math.MaxInt32))
	last := r.log.last().Index
	for id, pr := range r.members.All() {
		*pr = r.members.NewProgress(last+1, pr.IsLearner)
		if id == r.id {
			pr.Match = last
		}
	}
	r.turn(ro, lead)
}

// countTick counts a quiet tick. The count has an end: an idle group may be quiet for as long as
// its host runs, and its follower, behind a count that began anew below zero, would wait as long
// again before it campaigns.
func (r *raft) countTick() {
	if r.quietTicks < math.MaxInt32 {
		r.quietTicks++
	}
}

// turn takes on a role and a leader, in this node's term.
func (r *raft) turn(ro role, lead uint64) {
	r.role, r.lead = ro, lead
	r.cfg.Placement.follow(lead, r.cfg.ElectionTick)
	if l := r.leading(); l != nil {
		r.members.Follow(r.id, r.log.last().Index+1)
	}
	r.extension.Turned(shownRole(ro), r.term, lead)
}

func (r *raft) becomeFollower(term, lead uint64) {
	r.enter(&follower{raft: r}, term, lead)
	r.cfg.Logger.Infof("raft: node %x follows %x at term %d", r.id, r.lead, r.term)
}

// promotable reports whether this node may lead. The node must be a voter, or a learner
// that becomes a voter by the last change of its log and may campaign before applying
// the change (MayCampaign); and no snapshot waits to be applied, because its
// configuration might differ.
func (r *raft) promotable() bool {
	return r.log.tail.snapshot == nil && (r.members.MayWin(r.id, false) || r.members.MayWin(r.id, true) && r.extension.MayCampaign())
}

// appliedTo is called after the host has applied everything up to index.
func (r *raft) appliedTo(index uint64, size entryEncodingSize) {
	r.log.appliedTo(max(index, r.log.applied), size)
	r.extension.Applied(r.log.applied)
	if r.members.Reported(r.log.applied, r.leading() != nil) {
		r.votersChanged()
		if l := r.leading(); l != nil && l.advanceCommit() {
			l.broadcastAppend() // the host refused changes, and fewer are needed than before
		}
	}
	if l := r.leading(); l != nil {
		l.leaveJointIfDue()
	}
}

// snapshotApplied is called after the host has written and applied the snapshot.
func (r *raft) snapshotApplied(s *pb.Snapshot) {
	index := s.GetMetadata().GetIndex()
	r.log.tail.snapshotWritten(index)
	r.appliedTo(index, 0)
}
