// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weftraft/weft/ecraft/papers"
)

// Setting is the load and the network of a figure of a paper: clients in closed loops that put and
// get, at a leader with followers.
type Setting struct {
	Network Network
	// Sizes are means of the bytes of a put, each as likely; Spread is the standard deviation as a
	// share of the mean.
	Sizes  []int
	Spread float64
	// Gets is the share of gets, which the leader answers by its lease.
	Gets float64
	// Clients is the number of clients. Half of Trip passes between a client and the leader, in each
	// direction; a fifth of the clients is beside the leader.
	Clients int
	Trip    time.Duration
	// Warm is the time before the figures, Time the time of the figures.
	Warm, Time time.Duration
	// Failed followers, the last, are lost before clients begin, and known to be lost.
	Failed int
	// At are changes while clients go on, from the first client on.
	At   []Change
	Seed uint64
}

// Change is what happens at a time.
type Change struct {
	At time.Duration
	Do func(s *Setting, c Cluster)
}

// Outcome is what clients saw, and what the leader sent.
type Outcome struct {
	PerSecond float64
	Mean, P95 time.Duration // of all ops
	Put       time.Duration // mean of puts, from the leader's append to the commit
	Worst     time.Duration // of puts
	Trace     []float64     // ops in each second, from the first client on
	Sent      float64       // bytes sent by the leader for a byte of payload
	// Extra is the bytes of riders: what was sent because followers were late or lost.
	Extra int64
	// Acked and AtRisk are those of Usage.
	Acked, AtRisk int
	// Stuck says that the side commits nothing in this setting.
	Stuck bool
}

// Uniform returns the network of n nodes that are all as far from each other.
func Uniform(n int, egress float64, delay, jitter time.Duration) Network {
	net := Network{Egress: egress}
	for range n - 1 {
		net.Links = append(net.Links, Link{Delay: delay, Jitter: jitter})
	}
	return net
}

// Weft is the adaptive policy as package rawnode runs it, FullCopies is MultiPaxos and Raft, and
// Published is Crossword with its chooser.
func Weft() Side {
	s := hinted()
	s.Name = "Weft"
	return s
}

// FullCopies sends every follower the whole payload.
func FullCopies() Side {
	s := fixedLevel(1)
	s.spares = true
	return s
}

// Published is Crossword as published, which codes payloads of any size.
func Published() Side {
	return setSide("Crossword", func() any { return papers.NewCrosswordAdaptive() })
}

// Of is a published policy without a chooser.
func Of(name string, p papers.SetPolicy) Side { return setSide(name, func() any { return p }) }

func setSide(name string, policy func() any) Side {
	return Side{Name: name, Detect: time.Second, always: true, spares: true, policy: policy}
}

// stuck reports whether a side cannot commit with so many failures: RSPaxos has a quorum of its own.
func (s Side) stuck(n, failed int) bool {
	_, rs := s.policy().(papers.RSPaxos)
	m := n - n/2
	return rs && failed > n-(n+m+1)/2
}

// knowsFailures is the time until every side knows the followers that are lost.
const knowsFailures = 1500 * time.Millisecond

// Run runs a side. With cores, the sides of the core are real cores.
func (s Setting) Run(side Side, cores bool) (Outcome, error) {
	n := len(s.Network.Links) + 1
	if side.stuck(n, s.Failed) {
		return Outcome{Stuck: true}, nil
	}
	var c Cluster = newModel(s.Network, side, s.Seed)
	if cores {
		var err error
		if c, err = newCore(s.Network, side, s.Seed); err != nil {
			return Outcome{}, err
		}
	}
	start := time.Duration(0)
	for i := range s.Failed {
		c.Kill(n - 2 - i)
		start = knowsFailures
	}
	p := &players{s: &s, c: c, rng: rand.New(rand.NewPCG(s.Seed, 7)), start: start, open: map[uint64]put{}}
	p.out.Trace = make([]float64, int((s.Warm+s.Time)/time.Second)+1)
	c.OnCommit(p.committed)
	for _, ch := range s.At {
		c.Schedule(start+ch.At, func() { ch.Do(&s, c) })
	}
	for i := range s.Clients {
		// Clients that all began at once would ask in step.
		c.Schedule(start+time.Duration(i)*s.Trip/time.Duration(s.Clients), func() { p.next(i) })
	}
	end := start + s.Warm + s.Time
	for c.Now() < end && c.Step() {
	}
	return p.outcome(), c.Err()
}

// players are the clients of a setting.
type players struct {
	s     *Setting
	c     Cluster
	rng   *rand.Rand
	start time.Duration
	open  map[uint64]put
	took  []time.Duration
	puts  []time.Duration
	out   Outcome
}

// put is a put that is not committed.
type put struct {
	client    int
	begun, at time.Duration
}

// away is how far a client is from the leader, in one direction.
func (p *players) away(client int) time.Duration {
	if client%5 == 0 {
		return 0
	}
	return p.s.Trip / 2
}

// next makes a client begin its next op.
func (p *players) next(client int) {
	begun, away := p.c.Now(), p.away(client)
	if p.rng.Float64() < p.s.Gets {
		p.c.Schedule(begun+2*away+getTime, func() { p.done(client, begun) })
		return
	}
	mean := float64(p.s.Sizes[p.rng.IntN(len(p.s.Sizes))])
	size := max(int(mean*(1+p.s.Spread*p.rng.NormFloat64())), 1)
	p.c.Schedule(begun+away, func() {
		index := p.c.Propose(size)
		p.open[index] = put{client, begun, p.c.Now()}
	})
}

// getTime is the leader's time for a get.
const getTime = 100 * time.Microsecond

func (p *players) committed(index uint64, now time.Duration) {
	o, ok := p.open[index]
	if !ok {
		return
	}
	delete(p.open, index)
	if o.begun >= p.start+p.s.Warm {
		p.puts = append(p.puts, now-o.at)
	}
	p.c.Schedule(now+p.away(o.client), func() { p.done(o.client, o.begun) })
}

func (p *players) done(client int, begun time.Duration) {
	now := p.c.Now()
	if second := int((now - p.start) / time.Second); second < len(p.out.Trace) {
		p.out.Trace[second]++
	}
	if now >= p.start+p.s.Warm {
		p.took = append(p.took, now-begun)
	}
	p.next(client)
}

func (p *players) outcome() Outcome {
	out := p.out
	out.Trace = out.Trace[:len(out.Trace)-1] // a part of a second
	out.PerSecond = float64(len(p.took)) / p.s.Time.Seconds()
	mean := func(list []time.Duration) (sum time.Duration) {
		for _, d := range list {
			sum += d
		}
		return sum / time.Duration(max(len(list), 1))
	}
	out.Mean, out.Put = mean(p.took), mean(p.puts)
	if len(p.took) > 0 {
		slices.Sort(p.took)
		out.P95 = p.took[len(p.took)*95/100]
	}
	if len(p.puts) > 0 {
		out.Worst = slices.Max(p.puts)
	}
	u := p.c.Usage()
	out.Extra, out.Acked, out.AtRisk = u.Hedged, u.Acked, u.AtRisk
	if u.Payload > 0 {
		out.Sent = float64(u.Egress) / float64(u.Payload)
	}
	return out
}
