// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package theirs translates what is given to this module's library into what
// upstream's, go.etcd.io/raft, takes, and what upstream's gives into what this module's gives.
package theirs

import (
	"errors"

	upstream "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// Config is a configuration for upstream's library. What it does not have
// (Coding, Rand, Clock) is left out; a Logger must be given.
func Config(c *raft.Config) *upstream.Config {
	return &upstream.Config{
		ID: c.ID, ElectionTick: c.ElectionTick, HeartbeatTick: c.HeartbeatTick,
		Storage: storage{c.Storage}, Applied: c.Applied, AsyncStorageWrites: c.AsyncStorageWrites,
		MaxSizePerMsg: c.MaxSizePerMsg, MaxCommittedSizePerReady: c.MaxCommittedSizePerReady,
		MaxUncommittedEntriesSize: c.MaxUncommittedEntriesSize,
		MaxInflightMsgs:           c.MaxInflightMsgs, MaxInflightBytes: c.MaxInflightBytes,
		CheckQuorum: c.CheckQuorum, PreVote: c.PreVote,
		ReadOnlyOption:              upstream.ReadOnlyOption(c.ReadOnlyOption),
		Logger:                      c.Logger,
		DisableProposalForwarding:   c.DisableProposalForwarding,
		DisableConfChangeValidation: c.DisableConfChangeValidation,
		StepDownOnRemoval:           c.StepDownOnRemoval,
	}
}

// Ready returns upstream's Ready as ours.
func Ready(rd upstream.Ready) raft.Ready {
	out := raft.Ready{HardState: rd.HardState, Entries: rd.Entries, Snapshot: rd.Snapshot, CommittedEntries: rd.CommittedEntries,
		Messages: rd.Messages, MustSync: rd.MustSync, ReadStates: ReadStates(rd.ReadStates)}
	if rd.SoftState != nil {
		out.SoftState = &raft.SoftState{Lead: rd.Lead, RaftState: raft.StateType(rd.RaftState)}
	}
	return out
}

// ReadStates returns upstream's read states as ours; nil if and only if they are.
func ReadStates(states []upstream.ReadState) []raft.ReadState {
	if states == nil {
		return nil
	}
	out := make([]raft.ReadState, len(states))
	for i, s := range states {
		out[i] = raft.ReadState(s)
	}
	return out
}

// BasicStatus returns upstream's status as ours, as Status does.
func BasicStatus(s upstream.BasicStatus) raft.BasicStatus {
	return raft.BasicStatus{ID: s.ID, HardState: s.HardState, Applied: s.Applied, LeadTransferee: s.LeadTransferee,
		SoftState: raft.SoftState{Lead: s.Lead, RaftState: raft.StateType(s.RaftState)}}
}

// Status returns upstream's status with configuration and progress.
func Status(s upstream.Status) raft.Status {
	return raft.Status{BasicStatus: BasicStatus(s.BasicStatus), Config: s.Config, Progress: s.Progress}
}

// SnapshotStatus says how the sending of a snapshot ended.
func SnapshotStatus(ok bool) upstream.SnapshotStatus {
	if ok {
		return upstream.SnapshotFinish
	}
	return upstream.SnapshotFailure
}

// storage gives a Storage the errors that upstream compares by identity.
type storage struct{ raft.Storage }

func storageError(err error) error {
	for _, e := range [...]struct{ ours, theirs error }{
		{raft.ErrCompacted, upstream.ErrCompacted},
		{raft.ErrUnavailable, upstream.ErrUnavailable},
		{raft.ErrSnapshotTemporarilyUnavailable, upstream.ErrSnapshotTemporarilyUnavailable},
		{raft.ErrSnapOutOfDate, upstream.ErrSnapOutOfDate},
	} {
		if errors.Is(err, e.ours) {
			return e.theirs
		}
	}
	return err
}

// Entries implements upstream's Storage.
func (s storage) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	entries, err := s.Storage.Entries(lo, hi, maxSize)
	return entries, storageError(err)
}

// Term implements upstream's Storage.
func (s storage) Term(i uint64) (uint64, error) {
	term, err := s.Storage.Term(i)
	return term, storageError(err)
}

// Snapshot implements upstream's Storage.
func (s storage) Snapshot() (*pb.Snapshot, error) {
	snap, err := s.Storage.Snapshot()
	return snap, storageError(err)
}
