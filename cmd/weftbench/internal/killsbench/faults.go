// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package killsbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/cluster"
	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
)

// Fault is one failure of a responder.
type Fault struct {
	Failure string `json:"failure"`
	// Held is the longest time that a write took which was under way at the failure or began
	// after it. Holds is how often writes were held up: slow ones between which there were
	// others count as one time each.
	Held  time.Duration `json:"held_ns"`
	Holds int           `json:"holds"`
	// Reads is how many reads there were at the other nodes, of keys that nobody writes,
	// Longest the longest of them. Before and After are 99th percentiles, before and after the
	// failure; Late counts those after it that took over 2 ms more than Before.
	Reads   int           `json:"reads"`
	Late    int           `json:"late"`
	Before  time.Duration `json:"before_ns"`
	After   time.Duration `json:"after_ns"`
	Longest time.Duration `json:"longest_ns"`
}

// failure is a way in which a responder fails, and how it gets well.
type failure struct {
	name, about  string
	strike, heal func(c *cluster.Cluster, victim, leader *cluster.Node) error
}

func failures() []failure {
	cut := func(yes, deaf bool) func(*cluster.Cluster, *cluster.Node, *cluster.Node) error {
		return func(c *cluster.Cluster, victim, leader *cluster.Node) error {
			from, to := victim.ID, leader.ID
			if deaf {
				from, to = to, from
			}
			c.Links.Cut(from, to, yes)
			return nil
		}
	}
	return []failure{
		{
			"killed", "SIGKILL",
			func(_ *cluster.Cluster, v, _ *cluster.Node) error { return v.Kill() },
			func(_ *cluster.Cluster, v, _ *cluster.Node) error { return v.Start() },
		},
		{
			"stopped", "SIGSTOP; it goes on at the end",
			func(_ *cluster.Cluster, v, _ *cluster.Node) error { return v.Pause() },
			func(_ *cluster.Cluster, v, _ *cluster.Node) error { return v.Resume() },
		},
		{"deaf", "nothing of the leader reaches it; it hears the others, and all hear it", cut(true, true), cut(false, true)},
		{"mute", "nothing of it reaches the leader; it hears all, and the others hear it", cut(true, false), cut(false, false)},
	}
}

const (
	// failTime and leaseTime are kvdemo's; Bound is what a write may wait for a responder:
	// two rounds more, which on one machine are nothing beside these.
	failTime  = 500 * time.Millisecond
	leaseTime = time.Second
	// Bound is the longest time that a responder may hold a write up.
	Bound = failTime + leaseTime
	// observed is how long a failure is looked at.
	observed = 2*Bound + time.Second
	// lateBy is how much longer a read takes that counts as late.
	lateBy = 2 * time.Millisecond
)

// faults has responders fail in each way.
func (b *bench) faults(ctx context.Context) (err error) {
	s := &side{name: "responders", leases: true}
	if err := b.start(ctx, s, func(int, int) time.Duration { return 0 }); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.c.Close()) }()
	for i := range b.cfg.Faults {
		for _, f := range failures() {
			fault, err := s.fault(ctx, f)
			if err != nil {
				return fmt.Errorf("%s, failure %d: %w", f.name, i+1, err)
			}
			b.results.Faults = append(b.results.Faults, fault)
			b.say("failure %d of %d, %s: writes held up %d times, %v at most; %d of %d reads late, the longest took %v", i+1, b.cfg.Faults, f.name,
				fault.Holds, fault.Held.Round(time.Millisecond), fault.Late, fault.Reads, fault.Longest.Round(10*time.Microsecond))
		}
	}
	return nil
}

// fault has one responder fail under load, and get well. Then another node leads: a leader
// makes a responder that failed wait longer each time.
func (s *side) fault(ctx context.Context, f failure) (Fault, error) {
	leader, err := s.ready(ctx)
	if err != nil {
		return Fault{}, err
	}
	others := slices.DeleteFunc(slices.Clone(s.c.Nodes), func(n *cluster.Node) bool { return n == leader })
	victim, next := others[0], others[1]
	w, r := startWrites(ctx, &cluster.Cluster{Nodes: []*cluster.Node{leader}}, nil), startReads(ctx, s.c, victim)
	stop := sync.OnceFunc(func() { w.stop(); r.stop() })
	defer stop()
	if err := w.calm(ctx, time.Second); err != nil {
		return Fault{}, err
	}
	at := time.Now()
	if err := f.strike(s.c, victim, leader); err != nil {
		return Fault{}, err
	}
	select {
	case <-ctx.Done():
		return Fault{}, context.Cause(ctx)
	case <-time.After(observed):
	}
	end := time.Now()
	if _, err := w.next(ctx, end); err != nil {
		return Fault{}, err
	}
	stop()
	fault := Fault{Failure: f.name}
	fault.writes(w.list(), at, end)
	fault.reads(r.list(), at)
	if err := f.heal(s.c, victim, leader); err != nil {
		return fault, err
	}
	if _, err := s.c.WaitLeader(ctx); err != nil {
		return fault, err
	}
	return fault, s.c.HandTo(ctx, next)
}

// writes looks at the writes around a failure.
func (f *Fault) writes(acks []ack, at, end time.Time) {
	var calm []time.Duration
	for _, a := range acks {
		if a.done.Before(at) {
			calm = append(calm, a.done.Sub(a.begun))
		}
	}
	// Much longer than usual, whatever the machine does besides.
	slow := max(failTime/2, 2*virtual.Quantile(calm, 0.99))
	slices.SortFunc(acks, func(a, b ack) int { return a.begun.Compare(b.begun) })
	var until time.Time
	for _, a := range acks {
		took := a.done.Sub(a.begun)
		if a.done.Before(at) || a.begun.After(end) {
			continue
		}
		f.Held = max(f.Held, took)
		if took > slow {
			if a.begun.After(until) {
				f.Holds++
			}
			until = a.done
		}
	}
}

// reads looks at the reads around a failure.
func (f *Fault) reads(acks []ack, at time.Time) {
	var before, after []time.Duration
	for _, a := range acks {
		if a.done.Before(at) {
			before = append(before, a.done.Sub(a.begun))
		} else {
			after = append(after, a.done.Sub(a.begun))
		}
	}
	f.Reads, f.Before, f.After, f.Longest = len(after), virtual.Quantile(before, 0.99), virtual.Quantile(after, 0.99), virtual.Quantile(after, 1)
	for _, d := range after {
		if d > f.Before+lateBy {
			f.Late++
		}
	}
}

// readPace is the time between two reads at a node.
const readPace = 5 * time.Millisecond

// startReads begins to read keys that nobody writes, at every node but one, one after the other.
func startReads(ctx context.Context, c *cluster.Cluster, but *cluster.Node) *writes {
	ctx, cancel := context.WithCancel(ctx)
	w := &writes{cancel: cancel}
	for _, n := range c.Nodes {
		if n == but {
			continue
		}
		w.group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				begun := time.Now()
				_, err := n.KV().Get(ctx, &kvpb.GetRequest{Key: fmt.Sprintf("still/%d", i%100)})
				w.note(begun, notThere(err))
				time.Sleep(readPace)
			}
		})
	}
	return w
}
