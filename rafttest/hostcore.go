// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
)

// checkedCore is the core of a replica, which shows the checker each step.
type checkedCore struct {
	replica.Core
	p *hostProcess
	// conf is the members at the core; changed is set when the members are new.
	conf    *pb.ConfState
	changed bool
	// emitted is the last entry handed out for applying.
	emitted uint64
}

// newCore makes the core, and keeps hold of it.
func (p *hostProcess) newCore(cfg raft.Config) (replica.Core, error) {
	inner, err := replica.Weft(cfg)
	if err != nil {
		return nil, err
	}
	p.core = &checkedCore{Core: inner, p: p, conf: confOf(inner.Members()), emitted: p.applied}
	return p.core, nil
}

// seen shows the core to the checker after a step.
func (c *checkedCore) seen() {
	st := c.Core.State()
	c.p.s.check.observed(c.p.n, sight{role: st.Role, term: st.Term, commit: st.Commit}, c.conf)
}

func (c *checkedCore) Tick() {
	c.Core.Tick()
	c.seen()
}

func (c *checkedCore) Step(m *pb.Message) error {
	err := c.Core.Step(m)
	c.seen()
	return err
}

func (c *checkedCore) Campaign() error {
	err := c.Core.Campaign()
	c.seen()
	return err
}

func (c *checkedCore) Propose(data []byte) error {
	err := c.Core.Propose(data)
	c.seen()
	return err
}

func (c *checkedCore) ApplyConfChange(cc pb.ConfChangeI) *pb.ConfState {
	c.conf, c.changed = c.Core.ApplyConfChange(cc), true
	c.seen()
	return c.conf
}

func (c *checkedCore) Ready() replica.Ready {
	rd := c.Core.Ready()
	check, n := c.p.s.check, c.p.n
	if a := rd.Append; a != nil {
		check.ready(n, a.GetSnapshot(), a.GetEntries(), stateIn(a))
		if snap := a.GetSnapshot(); !raft.IsEmptySnap(snap) {
			c.conf, c.changed, c.emitted = snap.GetMetadata().GetConfState(), true, snap.GetMetadata().GetIndex()
			check.jumped(n, c.emitted)
			c.p.s.reach.SnapshotsRestored++
		}
	}
	for _, e := range rd.Apply.GetEntries() {
		check.applied(n, e)
		c.emitted = e.GetIndex()
	}
	for _, m := range rd.Messages {
		check.sent(n, m)
		check.sentAtRest(n, m)
	}
	return rd
}

// hostLog is a disk as rawnode wants to see a log. The simulator writes by
// itself: see stages.go.
type hostLog struct{ *disk }
