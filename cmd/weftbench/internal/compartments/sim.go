// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
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
	w       *sim
	id      uint64
	kind    string
	cpu     world.CPU
	log     writer
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
		p.looked.busy = float64(p.cpu.Spent-p.looked.spent) / float64(passed)
		p.looked.at, p.looked.spent = p.w.Now(), p.cpu.Spent
	}
	return p.looked.busy
}

// end is a process's part in a group: a replica, or a gateway.
type end interface {
	Tick()
	Receive(m wire.Message)
	propose(command []byte, done func())
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
		p := &process{w: w, id: id + 1, kind: "member", log: writer{disk: world.NewSpindle(&w.Agenda)}}
		switch {
		case id >= uint64(plan.Members+plan.Readers):
			p.kind = "gateway"
		case id >= uint64(plan.Members):
			p.kind = "reader"
		}
		p.cpu.After = w.After
		p.cpu.Wake, p.cpu.Share = bed.Costs.Wake, w.shared
		w.processes = append(w.processes, p)
		w.After(w.draws.Within(0, tick), p.tick)
	}
	for g := range uint64(plan.Groups) {
		if err := w.found(&group{id: g + 1}); err != nil {
			return nil, err
		}
	}
	elected := func() bool {
		for _, g := range w.groups {
			if g.leader().Core.State().Role != raft.StateLeader || plan.Leases && !g.responds() {
				return false
			}
		}
		return true
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
	p.cpu.Add(func() (time.Duration, func()) {
		return time.Duration((p.w.Costs.Second + p.w.Costs.WakeSecond).Seconds() * float64(tick)), func() {}
	})
	for _, e := range p.ends {
		if e != nil {
			e.Tick()
		}
	}
}

// send sends messages, as the send stage and the transport of a host do: what goes to a process in
// one class is a frame, without appends that a later one makes pointless.
func (p *process) send(messages []wire.Message) {
	c, w := &p.w.Costs, p.w
	var frames []*frame
	for _, m := range messages {
		i := slices.IndexFunc(frames, func(f *frame) bool { return f.to == m.To && f.class == m.Class() })
		if i < 0 {
			i = len(frames)
			frames = append(frames, &frame{to: m.To, class: m.Class()})
		}
		frames[i].add(m)
	}
	cost := time.Duration(0)
	for _, f := range frames {
		if err := f.encode(); err != nil {
			w.Fail("process %d encodes a message: %v", p.id, err)
			return
		}
		cost += c.FrameOut + time.Duration(len(f.encoded))*c.Message + costs.PerKiB(f.bytes, c.KiBOut)
	}
	p.cpu.Add(func() (time.Duration, func()) {
		return cost, func() {
			for _, f := range frames {
				p.sent += f.bytes
				if w.plan.zone(p.id) != w.plan.zone(f.to) {
					p.crossed += f.bytes
				}
				w.net.Send(p.id, f.to, world.Frame{Bytes: f.bytes, Lane: int(f.class), Ordered: true,
					Arrive: func(bool) { w.processes[f.to-1].receive(f) }})
			}
		}
	})
}

// frame is messages to a process.
type frame struct {
	to       uint64
	class    wire.Class
	messages []wire.Message
	encoded  [][]byte
	bytes    int
}

// add adds a message, by the rule of the transport's queues.
func (f *frame) add(m wire.Message) {
	if place, ok := wire.PlaceOf(m); ok {
		f.messages = slices.DeleteFunc(f.messages, func(old wire.Message) bool {
			at, ok := wire.PlaceOf(old)
			return ok && old.Group == m.Group && place.Supersedes(at)
		})
	}
	f.messages = append(f.messages, m)
}

func (f *frame) encode() error {
	for _, m := range f.messages {
		b, err := m.MarshalBinary()
		if err != nil {
			return err
		}
		f.encoded, f.bytes = append(f.encoded, b), f.bytes+len(b)
	}
	return nil
}

// receive takes a frame.
func (p *process) receive(f *frame) {
	c := &p.w.Costs
	cost := c.FrameIn + time.Duration(len(f.encoded))*c.Message + costs.PerKiB(f.bytes, c.KiBIn)
	p.cpu.Add(func() (time.Duration, func()) {
		return cost, func() {
			for _, b := range f.encoded {
				var m wire.Message
				if err := m.UnmarshalBinary(b); err != nil {
					p.w.Fail("process %d decodes a message: %v", p.id, err)
					return
				}
				p.ends[m.Group-1].Receive(m)
			}
		}
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
	p.cpu.Add(func() (time.Duration, func()) {
		return c.cost, func() {
			p.serving--
			c.then()
			p.nextCall()
		}
	})
}
