// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/machines"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// sim is a run.
type sim struct {
	machines.Run
	Bed
	plan  Plan
	draws world.Draws
	net   *world.Network
	// processes by id - 1: members, readers, and then gateways.
	processes []*process
	groups    []*group
	load      load
	// shared is the processors of Bed.Processors, and own those of the clients' process; nil with a machine for each process.
	shared *world.Processors
	own    []*world.CPU
}

// group is a Raft group.
type group struct {
	id      uint64
	voters  []*member // the leader is the first
	readers []*member
}

// process is a program on a machine of its own.
type process struct {
	machines.Process
	w       *sim
	id      uint64
	kind    string
	ends    []end // by group; nil: the process has no part in it
	sent    int   // bytes
	crossed int   // bytes sent to other zones
	calls   []call
	serving int
	looked  struct { // at the processor
		at, spent time.Duration
		busy      float64
	}
}

// looksEvery is the time between two looks at a processor.
const looksEvery = 50 * time.Millisecond

// busy returns the share of time for which the processor was busy of late, as a Host knows it.
func (p *process) busy() float64 {
	if passed := p.w.Now() - p.looked.at; passed >= looksEvery {
		p.looked.busy = float64(p.CPU.Spent-p.looked.spent) / float64(passed)
		p.looked.at, p.looked.spent = p.w.Now(), p.CPU.Spent
	}
	return p.looked.busy
}

// end is a process's part in a group: a replica, or a gateway.
type end interface {
	Tick()
	Receive(m wire.Message)
	Propose(command []byte, done func())
	read(done func())
}

// newSim makes all processes, and waits until each group has its leader.
func newSim(bed Bed, plan Plan) (*sim, error) {
	if plan.Replicas == 0 {
		plan.Replicas = plan.Members
	}
	w := &sim{Bed: bed, plan: plan, draws: world.NewDraws(bed.Seed, 1)}
	w.net = world.NewNetwork(&w.Agenda, world.NewDraws(bed.Seed, 2), plan.Machines(), &world.Traits{Least: bed.Delay, Rate: bed.Rate})
	w.setApart()
	w.setTogether()
	for id := range uint64(plan.Machines()) {
		p := &process{w: w, id: id + 1, kind: "member", Process: machines.NewProcess(&w.Run, &w.Costs, w.Sync, fmt.Sprint("process ", id+1))}
		switch {
		case id >= uint64(plan.Members+plan.Readers):
			p.kind = "gateway"
		case id >= uint64(plan.Members):
			p.kind = "reader"
		}
		p.CPU.Share = w.shared
		w.processes = append(w.processes, p)
		w.After(w.draws.Within(0, tick), p.tick)
	}
	for g := range uint64(plan.Groups) {
		if err := w.found(&group{id: g + 1}); err != nil {
			return nil, err
		}
	}
	elected := func() bool {
		return !slices.ContainsFunc(w.groups, func(g *group) bool {
			return g.leader().Core.State().Role != raft.StateLeader || plan.Leases && !g.responds()
		})
	}
	if !w.Until(10*time.Second, elected) {
		w.Fail("not each group has its leader, and its responders")
		return nil, w.Err()
	}
	return w, nil
}

// setTogether has all processes share processors.
func (w *sim) setTogether() {
	if w.Processors == 0 {
		return
	}
	w.shared = &world.Processors{Free: w.Processors}
	for range w.Processors {
		w.own = append(w.own, &world.CPU{After: w.After, Wake: w.Costs.Wake, Share: w.shared})
	}
}

// found begins a group.
func (w *sim) found(g *group) error {
	w.groups = append(w.groups, g)
	first := int(g.id-1) * max(w.plan.Members/w.plan.Groups, 1)
	var voters []*process
	for i := range w.plan.Replicas {
		voters = append(voters, w.processes[(first+i)%w.plan.Members])
	}
	readers := w.processes[w.plan.Members : w.plan.Members+w.plan.Readers]
	for _, p := range w.processes {
		p.ends = append(p.ends, nil)
	}
	for _, p := range slices.Concat(voters, readers) {
		m, err := newMember(p, g, voters, readers)
		if err != nil {
			return err
		}
		p.ends[g.id-1] = m
		if len(g.voters) < len(voters) {
			g.voters = append(g.voters, m)
		} else {
			g.readers = append(g.readers, m)
		}
	}
	campaigns := time.Duration(0)
	if w.plan.Leases {
		campaigns = leaseTime + tick // a member votes a lease after its start
	}
	w.After(campaigns, g.leader().Campaign)
	for _, p := range w.processes[w.plan.Members+w.plan.Readers:] {
		x, err := newGateway(p, g)
		if err != nil {
			return err
		}
		p.ends[g.id-1] = x
	}
	return nil
}

// responds reports whether all voters answer reads by their leases.
func (g *group) responds() bool {
	return !slices.ContainsFunc(g.voters, func(m *member) bool { return !m.Drive.R.Status().Leases.Stable })
}

func (g *group) leader() *member { return g.voters[0] }

// tick is the process's clock.
func (p *process) tick() {
	p.w.After(tick, p.tick)
	p.Idle(tick)
	for _, e := range p.ends {
		if e != nil {
			e.Tick()
		}
	}
}

// send sends messages, as the send stage and the transport of a host do: what goes to a process in
// one class is a frame, without appends that a later one makes pointless.
func (p *process) send(messages []wire.Message) {
	w := p.w
	p.Post(messages, true, func(f *machines.Frame) {
		p.sent += f.Bytes
		if w.plan.zone(p.id) != w.plan.zone(f.To) {
			p.crossed += f.Bytes
		}
		to := w.processes[f.To-1]
		w.net.Send(p.id, f.To, world.Frame{Bytes: f.Bytes, Lane: int(f.Class), Ordered: true, Arrive: func(bool) {
			to.Take(f, func(m wire.Message) { to.ends[m.Group-1].Receive(m) })
		}})
	})
}

// atOnce is the number of clients' calls that a process works at, while others wait for its other
// work: clients share connections (see hostnode), and connections the processor.
const atOnce = 16

// serve works at a call of a client, and then calls then.
func (p *process) serve(cost time.Duration, then func()) {
	p.calls = append(p.calls, call{cost, then})
	p.nextCall()
}

// call is a client's call that waits for the processor.
type call struct {
	cost time.Duration
	then func()
}

func (p *process) nextCall() {
	if p.serving == atOnce || len(p.calls) == 0 {
		return
	}
	c := p.calls[0]
	p.calls = p.calls[1:]
	p.serving++
	p.Work(c.cost, func() {
		p.serving--
		c.then()
		p.nextCall()
	})
}
