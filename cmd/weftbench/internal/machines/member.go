// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// Times of nodes.
const (
	tick          = 50 * time.Millisecond
	electionTicks = 20
	syncTime      = 500 * time.Microsecond
)

// Place is where a group's member is, and what it does.
type Place struct {
	Group  uint64
	Peers  []uint64     // ids of the group's nodes, some of which may have failed
	Coding *raft.Coding // of this member alone
	Apply  func(command []byte) error
}

// Member is a replica of a group at a node.
type Member struct {
	*Node
	*Seat
	// Applied is the number of applied commands.
	Applied int
	place   Place
}

// Join adds a member of a group to a node that has not failed.
func (n *Node) Join(p Place) (*Member, error) {
	m := &Member{Node: n, Seat: NewSeat(&n.Process), place: p}
	cfg := replica.Config{Settings: m.Settings(n.w.plan.Seed, p.Group, n.ID), Backlog: m.out.waiting}
	cfg.ElectionTick, cfg.Peers, cfg.Coding, cfg.Clock = electionTicks, p.Peers, p.Coding, n.w
	cfg.MaxBatchBytes = 1 // a batch of writes is an entry
	if p.Coding != nil {
		p.Coding.Busy = func() float64 { return n.busy }
		if p.Coding.Policy == nil {
			p.Coding.Policy = adaptive.New(adaptive.Options{Trials: n.trials})
		}
	}
	if err := m.Begin(cfg, replica.Weft, m, p.Peers, nil); err != nil {
		return nil, err
	}
	n.members[p.Group], n.order = m, append(n.order, m)
	return m, nil
}

// Leads reports whether the member leads its group.
func (m *Member) Leads() bool { return m.Core.State().Role == raft.StateLeader }

// Send sends messages.
func (m *Member) Send(messages []wire.Message) { m.send(messages) }

// Step applies all that waits.
func (m *Member) Step() {
	m.Seat.Apply(func(s world.Step) time.Duration {
		return time.Duration(len(s.Apply.Batch.Commands))*m.w.Costs.Apply + costs.PerKiB(s.Bytes(), m.w.Costs.LogKiB)
	}, func(commands [][]byte) {
		for _, c := range commands {
			m.Applied++
			if err := m.place.Apply(c); err != nil {
				m.w.Fail("node %d: %v", m.ID, err)
			}
		}
	})
}
