// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"

	upstream "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/internal/theirs"
	"github.com/weftraft/weft/raft"
)

// Upstream is the [NewCore] of go.etcd.io/raft/v3. Rand and Clock of the
// configuration have no counterpart there and are not used.
//
// That library panics where its storage fails. The core catches this one kind
// of panic: it is out of service from then on, and Err says why.
func Upstream(cfg raft.Config) (Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &upstreamCore{storage: &watchedStorage{Storage: cfg.Storage}}
	cfg.Storage = c.storage
	if cfg.Logger == nil {
		cfg.Logger = silent.Logger{}
	}
	err := c.guarded(func() (err error) {
		c.rn, err = upstream.NewRawNode(theirs.Config(&cfg))
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// upstreamCore calls upstream's RawNode, each time behind guarded.
type upstreamCore struct {
	rn      *upstream.RawNode
	storage *watchedStorage
}

var _ Core = (*upstreamCore)(nil)

// guarded calls f unless the core is out of service. A panic passes, unless the
// storage failed and so explains it.
func (c *upstreamCore) guarded(f func() error) (err error) {
	if err := c.Err(); err != nil {
		return err
	}
	defer func() {
		if c.storage.failure() != nil {
			_ = recover() // the caller gets the failure that caused the panic
			err = c.Err()
		}
	}()
	return f()
}

// do is guarded for what cannot fail; Err tells if it did.
func (c *upstreamCore) do(f func()) {
	_ = c.guarded(func() error { f(); return nil })
}

func (c *upstreamCore) Tick()         { c.do(c.rn.Tick) }
func (c *upstreamCore) TickQuiesced() { c.do(c.rn.TickQuiesced) }

func (c *upstreamCore) Step(m *pb.Message) error {
	return translated(c.guarded(func() error { return c.rn.Step(m) }))
}

func (c *upstreamCore) Campaign() error { return c.guarded(c.rn.Campaign) }

func (c *upstreamCore) Propose(data []byte) error {
	return translated(c.guarded(func() error { return c.rn.Propose(data) }))
}

func (c *upstreamCore) ProposeConfChange(cc pb.ConfChangeI) error {
	return translated(c.guarded(func() error { return c.rn.ProposeConfChange(cc) }))
}

func (c *upstreamCore) ApplyConfChange(cc pb.ConfChangeI) (cs *pb.ConfState) {
	c.do(func() { cs = c.rn.ApplyConfChange(cc) })
	return pb.EnsureConfState(cs)
}

func (c *upstreamCore) ResumeAppends(uint64) {}

func (c *upstreamCore) ReadIndex(rctx []byte)       { c.do(func() { c.rn.ReadIndex(rctx) }) }
func (c *upstreamCore) TransferLeader(to uint64)    { c.do(func() { c.rn.TransferLeader(to) }) }
func (c *upstreamCore) ForgetLeader() error         { return c.guarded(c.rn.ForgetLeader) }
func (c *upstreamCore) ReportUnreachable(id uint64) { c.do(func() { c.rn.ReportUnreachable(id) }) }
func (c *upstreamCore) HasReady() (has bool)        { c.do(func() { has = c.rn.HasReady() }); return has }
func (c *upstreamCore) Err() error                  { return c.storage.failure() }
func (c *upstreamCore) ReportSnapshot(id uint64, ok bool) {
	c.do(func() { c.rn.ReportSnapshot(id, theirs.SnapshotStatus(ok)) })
}

func (c *upstreamCore) Ready() (rd Ready) {
	c.do(func() {
		r := c.rn.Ready()
		rd = sortMessages(theirs.ReadStates(r.ReadStates), r.Messages)
		rd.Changed = r.SoftState != nil || !raft.IsEmptyHardState(r.HardState)
	})
	return rd
}

func (c *upstreamCore) State() (s CoreState) {
	c.do(func() {
		b := c.rn.BasicStatus()
		s = CoreState{Term: b.GetTerm(), Commit: b.GetCommit(), Applied: b.Applied, Lead: b.Lead, Role: raft.StateType(b.RaftState)}
	})
	return s
}

func (c *upstreamCore) Members() (cfg tracker.Config, progress map[uint64]tracker.Progress) {
	c.do(func() {
		s := c.rn.Status()
		cfg, progress = s.Config, s.Progress
	})
	return cfg, progress
}

// translated turns upstream's errors into Weft's, so that callers compare with
// one set.
func translated(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, upstream.ErrProposalDropped):
		return raft.ErrProposalDropped
	case errors.Is(err, upstream.ErrStepPeerNotFound):
		return raft.ErrStepPeerNotFound
	case errors.Is(err, upstream.ErrStepLocalMsg):
		return raft.ErrStepLocalMsg
	}
	return fmt.Errorf("upstream core: %w", err)
}
