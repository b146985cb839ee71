// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"strconv"
	"time"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// member is a replica of a group at a process, with a log in memory and a state machine that keeps
// nothing.
type member struct {
	*process
	world.NoStreams // members begin together, and logs are kept
	group           *group
	r               *replica.Replica
	core            replica.Core
	entries         replicatest.MemLog
	drive           *world.Drive

	waiting map[replica.Call]func()
	last    replica.Call
}

// longest is the deadline of calls: none passes.
const longest = time.Hour

// newMember begins a replica. All members of a group begin with the same configuration, readers too.
func newMember(p *process, g *group, voters, readers []*process) (*member, error) {
	m := &member{process: p, group: g, entries: replicatest.NewMemLog(), waiting: map[replica.Call]func(){}}
	m.Wanted = func(to uint64) { p.w.fail("process %d wants to send %d a snapshot", p.id, to) }
	cfg := m.config()
	founder := cfg
	founder.ID = voters[0].id
	for _, v := range voters {
		founder.Peers = append(founder.Peers, v.id)
	}
	first, err := replica.PrepareLog(founder)
	if err != nil {
		return nil, err
	}
	conf := first.Snapshot.GetMetadata().GetConfState()
	for _, r := range readers {
		conf.Learners = append(conf.Learners, r.id)
	}
	if err := m.entries.Append(*first, nil); err != nil {
		return nil, err
	}
	if p.kind == "member" {
		cfg.Peers = founder.Peers
	}
	if m.r, err = replica.New(cfg); err != nil {
		return nil, err
	}
	m.drive = world.NewDrive(m.r, m, world.DriveOptions{Group: g.id, ID: p.id, Life: 1, Patience: longest})
	m.drive.Kick()
	return m, nil
}

func (m *member) config() replica.Config {
	plan := &m.w.plan
	cfg := replica.Config{Busy: m.busy, Tick: tick, Settings: replica.Settings{
		ID: m.id, Group: m.group.id, Log: m.entries, Boot: 1, ElectionTick: electionTicks, HeartbeatTick: 1,
		MaxCalls: 1 << 20, RetainEntries: 1 << 40, RetainBytes: 1 << 50, Rand: world.NewDraws(m.w.Seed, 100*m.group.id+m.id),
	}}
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
	cfg.Core = func(rc raft.Config) (replica.Core, error) {
		newCore := replica.Weft
		if plan.Upstream {
			newCore = replica.Upstream
		}
		core, err := newCore(rc)
		m.core = core
		return core, err
	}
	return cfg
}

func (m *member) campaign() {
	m.drive.Post(0, func(r *replica.Replica) {
		if err := r.Campaign(); err != nil {
			m.w.fail("process %d does not campaign: %v", m.id, err)
		}
	})
}

func (m *member) tick() {
	m.drive.Post(0, func(r *replica.Replica) { r.Tick(m.w.Now()) })
}

// receive takes a message.
func (m *member) receive(msg wire.Message) {
	m.drive.Post(0, func(*replica.Replica) {
		if err := m.drive.Deliver(msg); err != nil {
			m.w.fail("process %d refuses a message of %d: %v", m.id, msg.From, err)
		}
	})
}

// propose has the replica take a command.
func (m *member) propose(command []byte, done func()) {
	m.call(m.w.Costs.Propose, done, func(r *replica.Replica, call replica.Call) { r.Propose(call, command, m.w.Now()+longest) })
}

// read has the replica take a linearizable read.
func (m *member) read(done func()) {
	m.call(m.w.Costs.Read, done, func(r *replica.Replica, call replica.Call) {
		r.ReadWith(call, replica.ReadOptions{Policy: m.w.plan.Policy}, m.w.Now()+longest)
	})
}

// Asked answers a query of a gateway, whose home this is: one more read.
func (m *member) Asked(q replica.Query) {
	m.drive.Post(m.w.Costs.Read, func(r *replica.Replica) { r.Answered(q, wire.Reply{Code: wire.Answered}) })
}

func (m *member) call(cost time.Duration, done func(), begin func(*replica.Replica, replica.Call)) {
	m.last++
	call := m.last
	m.waiting[call] = done
	m.drive.Post(cost, func(r *replica.Replica) { begin(r, call) })
}

// Now implements world.Surroundings, as the methods below do.
func (m *member) Now() time.Duration { return m.w.Now() }

// Work gives the processor a task.
func (m *member) Work(t world.Task) { m.cpu.Add(t) }

// Later plans a call.
func (m *member) Later(d time.Duration, happen func()) { m.w.After(d, happen) }

// TurnBegins returns no cost: a turn costs what is in it.
func (m *member) TurnBegins() time.Duration { return 0 }

// Flushed ends the run if the replica is out of service.
func (m *member) Flushed(err error) bool {
	if err != nil {
		m.w.fail("process %d is out of service: %v", m.id, err)
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
		m.w.fail("process %d: a call ends with %v", m.id, d.Err)
		return
	}
	done()
}

// Send sends messages.
func (m *member) Send(messages []wire.Message) { m.send(messages) }

// Append queues a write.
func (m *member) Append(a *replica.Append) {
	m.log.queue = append(m.log.queue, write{m, a})
	m.process.write()
}

// Compact does not happen: logs are kept.
func (m *member) Compact(*replica.Compact) {}

// Step applies all that waits.
func (m *member) Step() {
	m.cpu.Add(func() (time.Duration, func()) {
		steps, commands := m.drive.TakeApplies(), 0
		for _, s := range steps {
			commands += len(s.Apply.Batch.Commands)
		}
		return time.Duration(commands) * m.w.Costs.Apply, func() {
			for _, s := range steps {
				m.drive.Post(0, func(r *replica.Replica) { r.ApplyDone(*s.Apply, make([]any, len(s.Apply.Batch.Commands))) })
			}
			m.drive.Stepped()
		}
	})
}
