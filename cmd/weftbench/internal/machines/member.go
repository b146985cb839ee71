// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"time"

	"google.golang.org/protobuf/proto"

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
	longest       = time.Hour // the deadline of calls: none passes
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
	world.NoStreams // members begin together, and logs are kept
	// Applied is the number of applied commands.
	Applied int
	place   Place
	replica *replica.Replica
	core    replica.Core
	entries replicatest.MemLog
	drive   *world.Drive
	waiting map[replica.Call]func()
	last    replica.Call
}

// Join adds a member of a group to a node that has not failed.
func (n *Node) Join(p Place) (*Member, error) {
	m := &Member{Node: n, place: p, entries: replicatest.NewMemLog(), waiting: map[replica.Call]func(){}}
	m.Wanted = func(to uint64) { n.w.Fail("node %d wants to send %d a snapshot", n.ID, to) }
	cfg := replica.Config{Settings: replica.Settings{
		ID: n.ID, Group: p.Group, Log: m.entries, Boot: 1, ElectionTick: electionTicks, HeartbeatTick: 1, Peers: p.Peers,
		MaxCalls: 1 << 20, RetainEntries: 1 << 40, RetainBytes: 1 << 50, Rand: world.NewDraws(n.w.plan.Seed, 100*p.Group+n.ID),
		MaxBatchBytes: 1, // a batch of writes is an entry
		Coding:        p.Coding, Clock: n.w,
	}, Backlog: m.out.waiting}
	if p.Coding != nil {
		p.Coding.Busy = func() float64 { return n.busy }
	}
	founder := cfg
	founder.ID = p.Peers[0]
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
	m.drive = world.NewDrive(m.replica, m, world.DriveOptions{Group: p.Group, ID: n.ID, Life: 1, Patience: longest})
	m.drive.Kick()
	n.members[p.Group], n.order = m, append(n.order, m)
	return m, nil
}

// Campaign has the member begin an election.
func (m *Member) Campaign() {
	m.drive.Post(0, func(r *replica.Replica) {
		if err := r.Campaign(); err != nil {
			m.w.Fail("node %d does not campaign: %v", m.ID, err)
		}
	})
}

// Leads reports whether the member leads its group.
func (m *Member) Leads() bool { return m.core.State().Role == raft.StateLeader }

// Propose has the group of a leader replicate a command, and calls done when the leader has applied it.
func (m *Member) Propose(command []byte, done func()) {
	m.last++
	call := m.last
	m.waiting[call] = done
	m.drive.Post(m.w.Costs.Propose, func(r *replica.Replica) { r.Propose(call, command, m.w.Now()+longest) })
}

func (m *Member) receive(msg wire.Message) {
	m.drive.Post(0, func(*replica.Replica) {
		if err := m.drive.Deliver(msg); err != nil {
			m.w.Fail("node %d refuses a message of %d: %v", m.ID, msg.From, err)
		}
	})
}

// Now implements world.Surroundings, as the methods below do.
func (m *Member) Now() time.Duration { return m.w.Now() }

// Work gives the processor a task.
func (m *Member) Work(t world.Task) { m.cpu.Add(t) }

// Later plans a call.
func (m *Member) Later(d time.Duration, happen func()) { m.w.After(d, happen) }

// TurnBegins costs nothing.
func (m *Member) TurnBegins() time.Duration { return 0 }

// Flushed ends the run if the replica is out of service.
func (m *Member) Flushed(err error) bool {
	if err != nil {
		m.w.Fail("node %d is out of service: %v", m.ID, err)
	}
	return err == nil
}

// TurnEnds has nothing to do.
func (m *Member) TurnEnds() {}

// Ended ends a call.
func (m *Member) Ended(d replica.Done) {
	done := m.waiting[d.Call]
	delete(m.waiting, d.Call)
	if d.Err != nil {
		m.w.Fail("node %d: a call ends with %v", m.ID, d.Err)
		return
	}
	done()
}

// Send sends messages.
func (m *Member) Send(messages []wire.Message) { m.send(messages) }

// Append queues a write.
func (m *Member) Append(a *replica.Append) {
	cost := time.Duration(0)
	for _, e := range a.Write.Entries {
		cost += m.w.Costs.Entry + costs.PerKiB(proto.Size(e), m.w.Costs.LogKiB)
	}
	m.log(cost, func() {
		if err := m.entries.Append(a.Write, nil); err != nil {
			m.w.Fail("node %d writes its log: %v", m.ID, err)
		}
		m.drive.Post(0, func(r *replica.Replica) { r.AppendDone(*a) })
	})
}

// Compact does not happen: logs are kept.
func (m *Member) Compact(*replica.Compact) {}

// Step applies all that waits.
func (m *Member) Step() {
	m.cpu.Add(func() (time.Duration, func()) {
		steps, cost := m.drive.TakeApplies(), time.Duration(0)
		for _, s := range steps {
			cost += time.Duration(len(s.Apply.Batch.Commands))*m.w.Costs.Apply + costs.PerKiB(s.Bytes(), m.w.Costs.LogKiB)
		}
		return cost, func() {
			for _, s := range steps {
				for _, c := range s.Apply.Batch.Commands {
					m.Applied++
					if err := m.place.Apply(c); err != nil {
						m.w.Fail("node %d: %v", m.ID, err)
					}
				}
				m.drive.Post(0, func(r *replica.Replica) { r.ApplyDone(*s.Apply, make([]any, len(s.Apply.Batch.Commands))) })
			}
			m.drive.Stepped()
		}
	})
}
