// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// plainCore is upstream's library at one node among others: it draws from the node's
// randomness.
type plainCore struct {
	replica.Core
	draws world.Draws
}

func newPlainCore(draws world.Draws) replica.NewCore {
	return func(cfg raft.Config) (core replica.Core, err error) {
		world.WithEntropy(draws, func() { core, err = replica.Upstream(cfg) })
		return plainCore{core, draws}, err
	}
}

func (c plainCore) try(call func() error) (err error) {
	world.WithEntropy(c.draws, func() { err = call() })
	return err
}

func (c plainCore) Tick() { world.WithEntropy(c.draws, c.Core.Tick) }

func (c plainCore) Campaign() error { return c.try(c.Core.Campaign) }

func (c plainCore) ForgetLeader() error { return c.try(c.Core.ForgetLeader) }

func (c plainCore) Step(m *pb.Message) error { return c.try(func() error { return c.Core.Step(m) }) }

func (c plainCore) TransferLeader(to uint64) {
	world.WithEntropy(c.draws, func() { c.Core.TransferLeader(to) })
}

func (c plainCore) Propose(data []byte) error {
	return c.try(func() error { return c.Core.Propose(data) })
}

func (c plainCore) ApplyConfChange(cc pb.ConfChangeI) (cs *pb.ConfState) {
	world.WithEntropy(c.draws, func() { cs = c.Core.ApplyConfChange(cc) })
	return cs
}
