// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/machines"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// gateway is a gateway of a group at a process without a replica.
type gateway struct {
	*process
	g       *replica.Gateway
	waiting map[replica.Call]func()
	last    replica.Call
	inputs  []func(*replica.Gateway)
	cost    time.Duration // of inputs
	turning bool          // a turn waits for the processor
	alarm   time.Duration // when the next turn without inputs begins, at the latest
}

func newGateway(p *process, g *group) (*gateway, error) {
	s := replica.Settings{ID: p.id, Group: g.id, Boot: 1, ElectionTick: electionTicks, MaxCalls: 1 << 20}
	if !p.w.plan.Batches {
		s.MaxBatchBytes = 1
	}
	pure, err := replica.NewGateway(s)
	if err != nil {
		return nil, err
	}
	var homes []uint64
	for _, m := range g.voters {
		homes = append(homes, m.id)
	}
	pure.SetHomes(homes, nil)
	return &gateway{process: p, g: pure, waiting: map[replica.Call]func(){}}, nil
}

// post queues an input, as Drive.Post does for a replica; a turn takes all that wait.
func (x *gateway) post(cost time.Duration, do func(*replica.Gateway)) {
	x.inputs, x.cost = append(x.inputs, do), x.cost+cost
	if !x.turning {
		x.turning = true
		x.CPU.Add(x.turn)
	}
}

func (x *gateway) turn() (cost time.Duration, effect func()) {
	inputs, cost := x.inputs, x.cost
	x.inputs, x.cost, x.turning = nil, 0, false
	return cost, func() {
		x.g.At(x.w.Now())
		for _, do := range inputs {
			do(x.g)
		}
		out := x.g.Flush(x.w.Now())
		x.send(out.Sends)
		for _, d := range out.Done {
			done := x.waiting[d.Call]
			delete(x.waiting, d.Call)
			if d.Err != nil {
				x.w.Fail("gateway %d: a call ends with %v", x.id, d.Err)
				return
			}
			done()
		}
		x.arm()
	}
}

// arm has a turn begin at the gateway's deadline.
func (x *gateway) arm() {
	at, due := x.g.Deadline()
	if now := x.w.Now(); due && (x.alarm <= now || at < x.alarm) {
		x.alarm = max(at, now)
		x.w.After(x.alarm-now, func() { x.post(0, func(*replica.Gateway) {}) })
	}
}

// Tick implements end, as the methods below do.
func (x *gateway) Tick() { x.post(0, func(g *replica.Gateway) { g.Tick(x.w.Now()) }) }

// Receive takes a message.
func (x *gateway) Receive(m wire.Message) {
	x.post(0, func(g *replica.Gateway) {
		if err := g.Receive(m); err != nil {
			x.w.Fail("gateway %d refuses a message of %d: %v", x.id, m.From, err)
		}
	})
}

// Propose has the gateway take a command.
func (x *gateway) Propose(command []byte, done func()) {
	x.call(x.w.Costs.Propose, done, func(g *replica.Gateway, call replica.Call) { g.Propose(call, command, x.w.Now()+machines.Longest) })
}

// read has the gateway take a query, which costs it what a read costs a Host.
func (x *gateway) read(done func()) {
	x.call(x.w.Costs.Read, done, func(g *replica.Gateway, call replica.Call) {
		g.Query(call, nil, replica.ReadOptions{Policy: x.w.plan.Policy}, x.w.Now()+machines.Longest)
	})
}

func (x *gateway) call(cost time.Duration, done func(), begin func(*replica.Gateway, replica.Call)) {
	x.last++
	call := x.last
	x.waiting[call] = done
	x.post(cost, func(g *replica.Gateway) { begin(g, call) })
}
