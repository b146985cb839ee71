// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// Times of nodes.
const (
	tick          = 50 * time.Millisecond
	electionTicks = 20
	syncTime      = 500 * time.Microsecond
	longest       = time.Hour        // the deadline of calls: none passes
	hintEvery     = time.Millisecond // how often a leader hears what waits at its node
)

// ranged is a range: warehouses, their Raft group, and what its leader keeps in memory.
type ranged struct {
	id      uint64
	first   int // warehouse
	members []*member
	leader  *member
	locks   locks
	looked  map[[2]int]int // where the oldest open order of a district was seen
}

// member is a replica of a range at a node.
type member struct {
	*node
	world.NoStreams // members begin together, and logs are kept
	r               *ranged
	replica         *replica.Replica
	core            replica.Core
	entries         replicatest.MemLog
	drive           *world.Drive
	state           *state
	waiting         map[replica.Call]func()
	last            replica.Call
	hinted          time.Duration
}

func newMember(n *node, r *ranged, peers []uint64, s *state) (*member, error) {
	m := &member{node: n, r: r, entries: replicatest.NewMemLog(), waiting: map[replica.Call]func(){}, state: s}
	m.Wanted = func(to uint64) { n.w.fail("node %d wants to send %d a snapshot", n.id, to) }
	cfg := replica.Config{Settings: replica.Settings{
		ID: n.id, Group: r.id, Log: m.entries, Boot: 1, ElectionTick: electionTicks, HeartbeatTick: 1, Peers: peers,
		MaxCalls: 1 << 20, RetainEntries: 1 << 40, RetainBytes: 1 << 50, Rand: world.NewDraws(n.w.plan.Seed, 100*r.id+n.id),
		MaxBatchBytes: 1, // a batch of writes is an entry
		Coding:        n.w.side.coding(), Clock: n.w,
	}}
	if cfg.Coding != nil {
		cfg.Coding.Busy = func() float64 { return n.busy }
	}
	founder := cfg
	founder.ID = peers[0]
	first, err := replica.PrepareLog(founder)
	if err != nil {
		return nil, err
	}
	if err := m.entries.Append(*first, nil); err != nil {
		return nil, err
	}
	cfg.Core = func(rc raft.Config) (replica.Core, error) {
		core, err := replica.Weft(rc)
		m.core = core
		return core, err
	}
	if m.replica, err = replica.New(cfg); err != nil {
		return nil, err
	}
	m.drive = world.NewDrive(m.replica, m, world.DriveOptions{Group: r.id, ID: n.id, Life: 1, Patience: longest})
	m.drive.Kick()
	return m, nil
}

func (m *member) campaign() {
	m.drive.Post(0, func(r *replica.Replica) {
		if err := r.Campaign(); err != nil {
			m.w.fail("node %d does not campaign: %v", m.id, err)
		}
	})
}

// leads reports whether the member leads its range.
func (m *member) leads() bool { return m.core.State().Role == raft.StateLeader }

// propose has the range replicate a command, and calls done when the leader has applied it.
func (m *member) propose(command []byte, done func()) {
	m.w.noted(len(command))
	m.last++
	call := m.last
	m.waiting[call] = done
	m.drive.Post(m.w.Costs.Propose, func(r *replica.Replica) { r.Propose(call, command, m.w.Now()+longest) })
}

func (m *member) receive(msg wire.Message) {
	m.drive.Post(0, func(*replica.Replica) {
		if err := m.drive.Deliver(msg); err != nil {
			m.w.fail("node %d refuses a message of %d: %v", m.id, msg.From, err)
		}
	})
}

// Now implements world.Surroundings, as the methods below do.
func (m *member) Now() time.Duration { return m.w.Now() }

// Work gives the processor a task.
func (m *member) Work(t world.Task) { m.cpu.Add(t) }

// Later plans a call.
func (m *member) Later(d time.Duration, happen func()) { m.w.After(d, happen) }

// TurnBegins tells the replica what waits at the node, for all its groups, as a host does.
func (m *member) TurnBegins() time.Duration {
	if now := m.w.Now(); now-m.hinted >= hintEvery {
		m.hinted = now
		m.replica.At(now)
		m.replica.Backlog(m.out.waiting)
	}
	return 0
}

// Flushed ends the run if the replica is out of service.
func (m *member) Flushed(err error) bool {
	if err != nil {
		m.w.fail("node %d is out of service: %v", m.id, err)
	}
	return err == nil
}

// TurnEnds has nothing to do.
func (m *member) TurnEnds() {}

// Ended ends a call.
func (m *member) Ended(d replica.Done) {
	done := m.waiting[d.Call]
	delete(m.waiting, d.Call)
	if d.Err != nil {
		m.w.fail("node %d: a call ends with %v", m.id, d.Err)
		return
	}
	done()
}

// Send sends messages.
func (m *member) Send(messages []wire.Message) { m.send(messages) }

// Append queues a write.
func (m *member) Append(a *replica.Append) {
	m.queue = append(m.queue, logWrite{m, a})
	m.write()
}

// Compact does not happen: logs are kept.
func (m *member) Compact(*replica.Compact) {}

// Step applies all that waits.
func (m *member) Step() {
	m.cpu.Add(func() (time.Duration, func()) {
		steps, cost := m.drive.TakeApplies(), time.Duration(0)
		for _, s := range steps {
			cost += time.Duration(len(s.Apply.Batch.Commands))*m.w.Costs.Apply + costs.PerKiB(s.Bytes(), m.w.Costs.LogKiB)
		}
		return cost, func() {
			for _, s := range steps {
				for _, c := range s.Apply.Batch.Commands {
					if err := m.state.apply(c); err != nil {
						m.w.fail("node %d: %v", m.id, err)
					}
				}
				m.drive.Post(0, func(r *replica.Replica) { r.ApplyDone(*s.Apply, make([]any, len(s.Apply.Batch.Commands))) })
			}
			m.drive.Stepped()
		}
	})
}
