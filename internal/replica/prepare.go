// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// firstMark is the beginning of the log of a new group: as if the first members had agreed,
// in term 1, on a snapshot of the empty state that names the first members. So no member
// ever replays the list of first members, and a node that joins later learns the list with
// its first snapshot.
var firstMark = logMark{term: 1, index: 1}

// PrepareLog looks at a log and the state machine beside the log before a replica is
// started, and returns the write that must be durable in the log first, or nil:
//
//   - the beginning of a new group, if both are empty and cfg.Peers is not;
//   - the state machine's own index, as a snapshot, if the log ends before: the node stopped
//     before the log had heard of a snapshot that the state machine restored, or before the log
//     had stored what the state machine had applied (MaxEarlyApplyBytes). The state has all
//     that the log lacks, and all of that is committed (rule E3 in raft/early.go).
//
// An error that wraps [ErrState] says that log and state machine do not fit together.
func PrepareLog(cfg Config) (*storage.Write, error) {
	hs, _, err := cfg.Log.InitialState()
	if err != nil {
		return nil, fmt.Errorf("read the log's state: %w", err)
	}
	first, err := cfg.Log.FirstIndex()
	if err != nil {
		return nil, fmt.Errorf("read the log's first index: %w", err)
	}
	last, err := cfg.Log.LastIndex()
	if err != nil {
		return nil, fmt.Errorf("read the log's last index: %w", err)
	}
	base := first - 1
	switch {
	case cfg.Applied == 0 && last == 0 && raft.IsEmptyHardState(hs):
		return beginning(cfg.Peers), nil
	case IsRestoreBegun(hs, last):
		return nil, fmt.Errorf("%w: a restore was begun here and has not ended: call Restore again, or begin with an empty directory", ErrState)
	case cfg.Applied == 0 && base > firstMark.index:
		return nil, fmt.Errorf("%w: the state machine is empty, the log begins behind index %d: restore the state's directory, or replace the node", ErrState, base)
	case cfg.Applied == 0:
		return nil, nil
	case raft.IsEmptyHardState(hs):
		return nil, fmt.Errorf("%w: the state machine is at index %d, the log is empty: restore the log's directory, or replace the node (it may have voted)", ErrState, cfg.Applied)
	case cfg.Applied < base:
		return nil, fmt.Errorf("%w: the state machine is at index %d, the log begins behind index %d: restore the state's directory, or replace the node", ErrState, cfg.Applied, base)
	}
	return caughtUp(cfg, hs, last)
}

// FirstState describes the empty state behind which the log of a new group begins. A state machine that has
// applied nothing returns index 0 and no host's bytes in its place.
func FirstState(log Log) (SnapshotMeta, error) {
	_, conf, err := log.InitialState()
	h := firstState(conf)
	return SnapshotMeta{Index: h.at.index, Host: h.encode()}, err
}

// startState returns what the state machine starts from.
func startState(cfg *Config) (*hostState, error) {
	if cfg.Applied > 0 {
		return decodeHostState(cfg.HostState)
	}
	_, conf, err := cfg.Log.InitialState()
	if err != nil {
		return nil, fmt.Errorf("read the log's state: %w", err)
	}
	first, err := cfg.Log.FirstIndex()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the log's first index: %w", err)
	case first-1 == firstMark.index:
		return firstState(conf), nil
	}
	return &hostState{conf: pb.EnsureConfState(conf), origins: originTable{}}, nil
}

func firstState(conf *pb.ConfState) *hostState {
	h := &hostState{at: firstMark, conf: pb.EnsureConfState(conf), origins: originTable{}}
	h.origins.setFirst(conf.GetVoters(), 0)
	return h
}

// beginning returns what the first members of a group write.
func beginning(peers []uint64) *storage.Write {
	if len(peers) == 0 {
		return nil
	}
	voters := slices.Clone(peers)
	slices.Sort(voters)
	h := hostState{at: firstMark, conf: pb.EnsureConfState(&pb.ConfState{Voters: voters})}
	return &storage.Write{
		Snapshot:  &pb.Snapshot{Metadata: h.meta()},
		HardState: &pb.HardState{Term: new(firstMark.term), Vote: new(raft.None), Commit: new(firstMark.index)},
	}
}

// caughtUp returns the write that makes a log begin at the state machine's index, if the
// log lacks that index.
func caughtUp(cfg Config, hs *pb.HardState, last uint64) (*storage.Write, error) {
	h, err := decodeHostState(cfg.HostState)
	if err != nil {
		return nil, err
	}
	if h.at.index != cfg.Applied {
		return nil, fmt.Errorf("%w: the state machine is at index %d, the host's bytes beside it at %d: it must keep both together", ErrState, cfg.Applied, h.at.index)
	}
	if cfg.Applied <= last {
		term, err := cfg.Log.Term(cfg.Applied)
		if err != nil {
			return nil, fmt.Errorf("read the term of index %d: %w", cfg.Applied, err)
		}
		if term == h.at.term {
			return nil, nil
		}
	}
	// What the state machine has is committed; whatever else the log has there is not. The node has
	// not voted in a term that its log has not heard of.
	next := &pb.HardState{Term: new(max(hs.GetTerm(), h.at.term)), Vote: new(raft.None), Commit: new(cfg.Applied)}
	if next.GetTerm() == hs.GetTerm() {
		next.Vote = new(hs.GetVote())
	}
	return &storage.Write{Snapshot: &pb.Snapshot{Metadata: h.meta(), Data: cfg.HostState}, HardState: next}, nil
}

// logView is the log as a core is to see it: at a restart it has the
// configuration, and the commit index, of what the state machine holds; and its
// snapshot is the present state of the state machine.
type logView struct {
	raft.Storage
	start   *hostState
	present func() *pb.SnapshotMetadata // nil while there is none
	durable func() uint64               // the index of the durable state
}

// Released tells a coding core up to which index this node will not ask for entries any
// more: its durable state, from which a restart begins.
func (v logView) Released() uint64 { return v.durable() }

// InitialState implements raft.Storage.
func (v logView) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hs, cs, err := v.Storage.InitialState()
	if err != nil || v.start == nil {
		return hs, cs, err
	}
	// The commit index is written without a sync. Applied entries were committed, so the
	// applied index may be ahead.
	if !raft.IsEmptyHardState(hs) && hs.GetCommit() < v.start.at.index {
		hs = &pb.HardState{Term: hs.Term, Vote: hs.Vote, Commit: new(v.start.at.index)}
	}
	return hs, v.start.conf, nil
}

// Snapshot implements raft.Storage.
func (v logView) Snapshot() (*pb.Snapshot, error) {
	meta := v.present()
	if meta == nil {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return &pb.Snapshot{Metadata: meta}, nil
}
