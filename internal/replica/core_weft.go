// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"

	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// Weft is the [NewCore] of this module's own library.
func Weft(cfg raft.Config) (Core, error) {
	watched := &watchedStorage{Storage: cfg.Storage}
	cfg.Storage = watched
	rn, err := raft.NewRawNode(&cfg)
	if err != nil {
		return nil, err
	}
	return &weftCore{RawNode: rn, storage: watched}, nil
}

type weftCore struct {
	*raft.RawNode
	storage *watchedStorage
}

var _ Core = (*weftCore)(nil)

// Ready implements Core.
func (c *weftCore) Ready() Ready {
	rd := c.RawNode.Ready()
	sorted := sortMessages(rd.ReadStates, rd.Messages)
	sorted.Changed = rd.SoftState != nil || !raft.IsEmptyHardState(rd.HardState)
	return sorted
}

// ReportSnapshot implements Core.
func (c *weftCore) ReportSnapshot(id uint64, ok bool) {
	status := raft.SnapshotFinish
	if !ok {
		status = raft.SnapshotFailure
	}
	c.RawNode.ReportSnapshot(id, status)
}

// State implements Core.
func (c *weftCore) State() CoreState {
	s := c.BasicStatus()
	return CoreState{Term: s.GetTerm(), Commit: s.GetCommit(), Applied: s.Applied, Lead: s.Lead, Role: s.RaftState}
}

// Members implements Core.
func (c *weftCore) Members() (tracker.Config, map[uint64]tracker.Progress) {
	s := c.Status()
	return s.Config, s.Progress
}

// Err implements Core.
func (c *weftCore) Err() error { return cmp.Or(c.storage.failure(), c.RawNode.Err()) }
