// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"strconv"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/machines"
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// member is a replica of a group at a process, with a state machine that keeps nothing.
type member struct {
	*process
	*machines.Seat
	group *group
}

// newMember begins a replica. All members of a group begin with the same configuration, readers too.
func newMember(p *process, g *group, voters, readers []*process) (*member, error) {
	m := &member{process: p, Seat: machines.NewSeat(&p.Process), group: g}
	cfg, ids := m.config(), func(processes []*process) (ids []uint64) {
		for _, p := range processes {
			ids = append(ids, p.id)
		}
		return ids
	}
	if p.kind == "member" {
		cfg.Peers = ids(voters)
	}
	core := replica.Weft
	if p.w.plan.Upstream {
		core = replica.Upstream
	}
	return m, m.Begin(cfg, core, m, ids(voters), ids(readers))
}

func (m *member) config() replica.Config {
	plan := &m.w.plan
	cfg := replica.Config{Busy: m.busy, Tick: tick, Settings: m.Settings(m.w.Seed, m.group.id, m.id)}
	cfg.ElectionTick = electionTicks
	if !plan.Batches {
		cfg.MaxBatchBytes = 1
	}
	all := func(uint64) bool { return true }
	if plan.Names {
		cfg.Names = &replica.Names{Announced: all}
	}
	if plan.Relays || plan.Readers > 0 && !plan.Upstream { // readers have relays in any case, as with a Host
		cfg.Names = &replica.Names{Relayed: all, Runs: all, Zone: func(id uint64) string {
			if !plan.Relays {
				return ""
			}
			return strconv.Itoa(plan.zone(id))
		}}
	}
	if plan.Leases {
		cfg.Clock = m.w
		cfg.Leases = &raft.Leases{Tick: tick, Boot: 1, Lease: leaseTime, Wanted: []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}}
	}
	if plan.Coded {
		cfg.Coding = &raft.Coding{Policy: ecraft.Levelled{}}
	}
	return cfg
}

// read has the replica take a linearizable read.
func (m *member) read(done func()) {
	m.Call(m.w.Costs.Read, done, func(r *replica.Replica, call replica.Call) {
		r.ReadWith(call, replica.ReadOptions{Policy: m.w.plan.Policy}, m.w.Now()+machines.Longest)
	})
}

// Asked answers a query of a gateway, whose home this is: one more read.
func (m *member) Asked(q replica.Query) {
	m.Drive.Post(m.w.Costs.Read, func(r *replica.Replica) { r.Answered(q, wire.Reply{Code: wire.Answered}) })
}

// Send sends messages.
func (m *member) Send(messages []wire.Message) { m.send(messages) }

// Step applies all that waits.
func (m *member) Step() {
	m.Apply(func(s world.Step) time.Duration {
		return time.Duration(len(s.Apply.Batch.Commands)) * m.w.Costs.Apply
	}, func([][]byte) {})
}
