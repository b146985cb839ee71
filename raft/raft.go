// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/confchange"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// raft is what a node is whatever its role: identity, term, vote, log, members,
// and what it has to say to the host. The role itself is a type of its own that
// embeds a pointer to this one and adds what only that role has.
type raft struct {
	id     uint64
	cfg    Config // with defaults filled in
	logger Logger

	// term is the latest term this node has seen, vote whom it voted for in it,
	// lead whom it follows in it. The first two are durable before anything
	// that depends on them leaves the node.
	//
	// Invariant: term never falls; vote changes once a term, from None.
	term, vote, lead uint64

	role role
	log  *raftLog

	// members is the configuration in force, the last one applied, and what is
	// known of each member's log. The latter means something at a leader only,
	// but hosts can see it anywhere (WithProgress).
	members tracker.ProgressTracker
	// electorate is whose votes and acknowledgements count.
	electorate electorate
	// coder is what coding and leases add: see coder.go.
	coder coder

	// outbox holds messages that may leave at once; vouching holds those that
	// vouch for state: votes and acknowledgements. They leave when everything
	// that was handed out to be written before them is durable (thesis 3.8).
	// Messages of a node to itself are always vouching.
	outbox, vouching []*pb.Message
	// readStates holds reads that were confirmed here, for the next Ready.
	readStates []ReadState
	// earlyReads holds reads that reached a leader before it had committed an
	// entry of its term. They outlive that leadership: should the node lead
	// again, it answers them then, which is late but right.
	earlyReads []*pb.Message

	// quietTicks counts ticks since a follower last heard from its leader or
	// gave its vote, since a candidate began, and at a leader since the last
	// quorum check or the begin of a transfer.
	quietTicks int
	// patience is how many of them a follower or candidate bears, drawn anew at
	// each change of role from [ElectionTick, 2*ElectionTick).
	patience int
}

// role is what a node does as a follower, candidate or leader.
type role interface {
	state() StateType
	// tick lets one tick pass.
	tick()
	// step handles a message of the present term, or without a term, that is
	// not the same for all roles. It answers for every message type: those that
	// mean nothing to the role are ignored.
	step(m *pb.Message) error
}

// newRaft starts a node, as a follower, from what storage has.
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
		id:      cfg.ID,
		cfg:     cfg,
		logger:  cfg.Logger,
		log:     log,
		members: tracker.MakeProgressTracker(cfg.MaxInflightMsgs, cfg.MaxInflightBytes),
	}
	r.role = &follower{raft: r}
	r.electorate = electorate{members: &r.members, log: log}
	r.coder, log.node = plainCoder{log}, r
	members, err := r.restoredMembers(cs, log.last().index)
	if err != nil {
		return nil, fmt.Errorf("raft: Storage.InitialState has a configuration %s that cannot be restored: %w", DescribeConfState(cs), err)
	}
	r.switchConfig(members.Config, members.Progress)
	if err := r.resume(hs, cfg.Applied); err != nil {
		return nil, err
	}
	if err := r.extend(); err != nil {
		return nil, err
	}
	r.becomeFollower(r.term, None)
	r.logger.Infof("raft: node %x starts at term %d, members %s, commit index %d, applied %d, log ends at %v",
		r.id, r.term, r.members.Config, log.committed, log.applied, log.last())
	return r, log.err
}

// resume takes over the hard state and the applied index of before a restart.
func (r *raft) resume(hs *pb.HardState, applied uint64) error {
	l := r.log
	if !IsEmptyHardState(hs) {
		if commit := hs.GetCommit(); commit < l.committed || commit > l.last().index {
			return fmt.Errorf("raft: Storage.InitialState has commit index %d, but the log covers [%d, %d]: was it damaged, truncated or lost?",
				commit, l.committed, l.last().index)
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

// restoredMembers builds the members of a configuration from nothing. The
// progress of each starts behind lastIndex.
func (r *raft) restoredMembers(cs *pb.ConfState, lastIndex uint64) (tracker.ProgressTracker, error) {
	if cs == nil {
		return tracker.ProgressTracker{}, errors.New("it is nil")
	}
	t := tracker.MakeProgressTracker(r.cfg.MaxInflightMsgs, r.cfg.MaxInflightBytes)
	cfg, progress, err := confchange.Restore(confchange.Changer{Tracker: t, LastIndex: lastIndex}, cs)
	if err != nil {
		return t, err
	}
	t.Config, t.Progress = cfg, progress
	return t, cs.Equivalent(t.ConfState())
}

// leading returns the leader that this node is, or nil.
func (r *raft) leading() *leader {
	l, _ := r.role.(*leader)
	return l
}

func (r *raft) softState() SoftState { return SoftState{Lead: r.lead, RaftState: r.role.state()} }

// enter begins a role in a term: all that the previous role knew is forgotten.
func (r *raft) enter(ro role, term, lead uint64) {
	if r.term != term {
		r.term, r.vote = term, None
	}
	r.quietTicks = 0
	r.patience = r.cfg.ElectionTick + r.cfg.Rand.IntN(r.cfg.ElectionTick)
	last := r.log.last().index
	for id, pr := range r.members.Progress {
		*pr = tracker.Progress{
			Next:      last + 1,
			Inflights: tracker.NewInflights(r.members.MaxInflight, r.members.MaxInflightBytes),
			IsLearner: pr.IsLearner,
		}
		if id == r.id {
			pr.Match = last
		}
	}
	r.turn(ro, lead)
}

// turn takes on a role and a leader, in this node's term.
func (r *raft) turn(ro role, lead uint64) {
	r.role, r.lead = ro, lead
	if l := r.leading(); l != nil {
		r.electorate.follow(r.id)
	}
	r.coder.Turned(shownRole(ro), r.term, lead)
}

func (r *raft) becomeFollower(term, lead uint64) {
	r.enter(&follower{raft: r}, term, lead)
	r.logger.Infof("raft: node %x follows %x at term %d", r.id, r.lead, r.term)
}

// promotable reports whether this node may lead: it is a voter, or a learner that the
// last change of its log makes one and that may campaign before it applies the change;
// and it has no snapshot to apply, whose configuration might say otherwise.
func (r *raft) promotable() bool {
	pr := r.members.Progress[r.id]
	if pr == nil || r.log.tail.snapshot != nil {
		return false
	}
	_, comes := r.electorate.newest[r.id]
	return !pr.IsLearner || comes && r.coder.MayCampaign()
}

// appliedTo hears that the host has applied everything up to index.
func (r *raft) appliedTo(index uint64, size entryEncodingSize) {
	r.log.appliedTo(max(index, r.log.applied), size)
	r.coder.Applied(r.log.applied)
	if r.electorate.applied(r.log.applied) {
		r.votersChanged()
		if l := r.leading(); l != nil && l.advanceCommit() {
			l.broadcastAppend() // the host refused changes, and fewer are needed than before
		}
	}
	if l := r.leading(); l != nil {
		l.leaveJointIfDue()
	}
}

// snapshotApplied hears that the host has written and applied the snapshot.
func (r *raft) snapshotApplied(s *pb.Snapshot) {
	index := s.GetMetadata().GetIndex()
	r.log.tail.snapshotWritten(index)
	r.appliedTo(index, 0)
}
