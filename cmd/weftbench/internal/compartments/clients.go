// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/world"
)

// Outcome is what was measured of a run.
type Outcome struct {
	Plan          Plan
	Writes, Reads float64       // a second
	Median        time.Duration // of all calls
	Use           []Use         // of processes: leaders of groups, other members, gateways, readers
	Egress        float64       // bytes that the first leader sent, for a write
	Crossed       float64       // bytes that went from zone to zone, for a write
	LeaderPer     time.Duration // processor time of the first leader for a write
	LeaderCall    time.Duration // and for a call
	// AllPer is the processor time of all processes, and AllBytes what they sent, for a call.
	AllPer   time.Duration
	AllBytes float64
}

// Use is how busy the processors of a kind of process are.
type Use struct {
	Kind       string
	Processes  int
	Mean, Most float64 // shares of time
}

// Rate returns calls a second.
func (o Outcome) Rate() float64 { return o.Writes + o.Reads }

// Busiest returns the kind of process whose processor is the busiest.
func (o Outcome) Busiest() (u Use) {
	for _, x := range o.Use {
		if x.Most > u.Most {
			u = x
		}
	}
	return u
}

// load is the clients of a run.
type load struct {
	command       []byte
	waits         int // clients without an answer so far
	counts        bool
	writes, reads int
	took          []time.Duration
}

// client is a closed loop.
type client struct {
	w        *sim
	at       *process // for writes
	writes   end      // there
	readsAt  *process
	reader   end        // there
	reads    float64    // share
	cpu      *world.CPU // of the client's process; nil: the process costs nothing
	answered bool
}

// run runs a plan: until each client has had an answer, and then for the time to be measured.
func run(bed Bed, plan Plan) (Outcome, error) {
	w, err := newSim(bed, plan)
	if err != nil {
		return Outcome{}, err
	}
	w.load.command = make([]byte, bed.Value)
	w.join()
	w.Until(time.Minute, func() bool { return w.load.waits == 0 })
	if w.Err() == nil && w.load.waits > 0 {
		w.Fail("%d clients have no answer", w.load.waits)
	}
	spent, sent := w.spent()
	crossed := w.crossed()
	w.load.counts = true
	begun := w.Now()
	w.Pass(bed.Time)
	if w.Err() != nil {
		return Outcome{}, w.Err()
	}
	took := (w.Now() - begun).Seconds()
	o := Outcome{Plan: plan, Writes: float64(w.load.writes) / took, Reads: float64(w.load.reads) / took, Median: lab.Quantile(w.load.took, 0.5)}
	after, sentAfter := w.spent()
	shares := make([]float64, len(after))
	for i := range after {
		o.AllPer += after[i] - spent[i]
		o.AllBytes += float64(sentAfter[i] - sent[i])
		shares[i] = min((after[i]-spent[i]).Seconds()/took, 1)
	}
	lead := int(w.groups[0].leader().id) - 1
	if n := w.load.writes + w.load.reads; n > 0 {
		o.AllPer, o.AllBytes = o.AllPer/time.Duration(n), o.AllBytes/float64(n)
		o.LeaderCall = (after[lead] - spent[lead]) / time.Duration(n)
	}
	if w.load.writes > 0 {
		o.Crossed = float64(w.crossed()-crossed) / float64(w.load.writes)
		o.Egress = float64(sentAfter[lead]-sent[lead]) / float64(w.load.writes)
		o.LeaderPer = (after[lead] - spent[lead]) / time.Duration(w.load.writes)
	}
	o.Use = w.use(shares)
	return o, nil
}

// spent returns the processor time and the sent bytes of each process so far.
func (w *sim) spent() (cpu []time.Duration, sent []int) {
	for _, p := range w.processes {
		cpu, sent = append(cpu, p.CPU.Spent), append(sent, p.sent)
	}
	return cpu, sent
}

// crossed returns the bytes that went from zone to zone so far.
func (w *sim) crossed() (bytes int) {
	for _, p := range w.processes {
		bytes += p.crossed
	}
	return bytes
}

// use sorts shares of processors by the kind of process.
func (w *sim) use(shares []float64) (all []Use) {
	leads := map[uint64]bool{}
	for _, g := range w.groups {
		leads[g.leader().id] = true
	}
	for _, kind := range []string{"leader", "follower", "gateway", "reader"} {
		u := Use{Kind: kind}
		for i, p := range w.processes {
			is := p.kind
			if is == "member" {
				is = "follower"
				if leads[p.id] {
					is = "leader"
				}
			}
			if is == kind {
				u.Processes++
				u.Mean += shares[i]
				u.Most = max(u.Most, shares[i])
			}
		}
		if u.Processes > 0 {
			u.Mean /= float64(u.Processes)
			all = append(all, u)
		}
	}
	return all
}

// join starts all clients, at different times.
func (w *sim) join() {
	add := func(c *client) {
		if n := len(w.own); n > 0 {
			c.cpu = w.own[w.load.waits%n]
		}
		w.load.waits++
		w.After(w.draws.Within(0, time.Millisecond), c.next)
	}
	for i := range w.plan.Clients {
		g, turn := w.groups[i%len(w.groups)], i/len(w.groups)
		m := g.leader()
		if w.plan.Spread {
			m = g.voters[turn%len(g.voters)]
		}
		c := &client{w: w, at: m.process, writes: m, reads: w.plan.Reads}
		if n := w.plan.Gateways; n > 0 {
			c.at = w.processes[w.plan.Machines()-n+turn%n]
			c.writes = c.at.ends[g.id-1]
		}
		c.readsAt, c.reader = c.at, c.writes
		if len(g.readers) > 0 {
			r := g.readers[turn%len(g.readers)]
			c.readsAt, c.reader = r.process, r
		}
		add(c)
	}
	for i := range w.plan.ReadClients * w.plan.Readers {
		g, turn := w.groups[i%len(w.groups)], i/len(w.groups)
		r := g.readers[turn%len(g.readers)]
		add(&client{w: w, readsAt: r.process, reader: r, reads: 1})
	}
}

// next makes a call.
func (c *client) next() {
	w, begun := c.w, c.w.Now()
	reads := c.reads > 0 && w.draws.Chance(c.reads)
	bytes := len(w.load.command)
	if reads {
		bytes = 0
	}
	half := w.callCost(bytes) / 2
	done := func() { w.After(w.Delay, func() { c.work(half, func() { c.done(begun, reads) }) }) }
	call := func() {
		if reads {
			c.readsAt.serve(w.callCost(bytes), func() { c.reader.read(done) })
			return
		}
		c.at.serve(w.callCost(bytes), func() { c.writes.Propose(w.load.command, done) })
	}
	c.work(half, func() { w.After(w.Delay, call) })
}

// work works at a call in the client's process.
func (c *client) work(cost time.Duration, then func()) {
	if c.cpu == nil {
		then()
		return
	}
	c.cpu.Add(func() (time.Duration, func()) { return cost, then })
}

// callCost is what a client's call costs its process, beside the Host's part.
func (w *sim) callCost(bytes int) time.Duration {
	c := w.Costs.Lean
	if w.plan.Way == hostnode.RPC {
		c = w.Costs.RPC
	}
	return c + costs.PerKiB(bytes, w.Costs.CallKiB)
}

// done takes an answer.
func (c *client) done(begun time.Duration, reads bool) {
	l := &c.w.load
	if !c.answered {
		c.answered = true
		l.waits--
	}
	if l.counts {
		l.took = append(l.took, c.w.Now()-begun)
		if reads {
			l.reads++
		} else {
			l.writes++
		}
	}
	c.next()
}
