// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// FailConfig selects the failures of a responder to measure.
type FailConfig struct {
	// Voters are the sizes of the groups. All nodes are responders.
	Voters []int
	// Trip is the round trip between two nodes.
	Trip time.Duration
	// Lease and Fail are the settings of leases; a tick and a heartbeat are a fifth of Fail.
	Lease, Fail time.Duration
	// Seeds is the number of failures of each kind; the first has the seed First.
	Seeds    int
	First    uint64
	Progress io.Writer
	// lax, if set, is the Fail of the nodes, so that a test shows that too long a hold is found.
	lax time.Duration
}

// Failing is the effect of a kind of failure on the clients of a group, over all seeds.
type Failing struct {
	Voters  int    `json:"voters"`
	Policy  string `json:"policy"`
	Failure string `json:"failure"`
	// Bound is Fail, Lease and two round trips.
	Bound time.Duration `json:"bound_ns"`
	// Held is the longest time that a write took; Holds is the largest number of times that writes
	// were held up in a run, and Slow the number of writes that were held up.
	Held  time.Duration `json:"held_ns"`
	Holds int           `json:"holds"`
	Slow  int           `json:"slow"`
	// Writes and Reads are the numbers of ops after the failure.
	Writes int `json:"writes"`
	Reads  int `json:"reads"`
	// Calm is the 99th percentile of reads before the failure. Late is the number of reads at other
	// nodes, of keys without writes, that took more than 2 ms longer.
	Calm time.Duration `json:"calm_ns"`
	Late int           `json:"late"`
	// WrittenLate is the same for reads of keys with writes: a write that is held up delays the
	// reads of its key, too. WrittenWorst is the longest of these reads.
	WrittenLate  int           `json:"written_late"`
	WrittenWorst time.Duration `json:"written_worst_ns"`
	Wrong        int           `json:"wrong"`
}

// failure is a way in which a responder fails, from a moment on.
type failure struct {
	name, about string
	strike      func(g *group, victim uint64) error
}

// never is longer than any run.
const never = time.Hour

// failures returns the ways in which responders fail.
func failures(fail time.Duration) []failure {
	lost := vnet.Link{StallChance: 1, Stall: never}
	return []failure{
		{"dead", "its process ends", func(g *group, victim uint64) error {
			g.c.Kill(victim)
			return nil
		}},
		{"stopped", "its process stands still, and goes on after three leases", func(g *group, victim uint64) error {
			g.c.Pause(victim)
			g.c.After(3*g.leased.Lease, func() { g.c.Resume(victim) })
			return nil
		}},
		{"faltering", "it stands still for 1.4 times Fail, and goes on for 0.6 times, again and again", func(g *group, victim uint64) error {
			g.falter(victim, fail*14/10, fail*6/10)
			return nil
		}},
		{"slow", "messages take so long as Fail, to it and from it", func(g *group, victim uint64) error {
			return g.relink(victim, vnet.Link{Delay: fail}, vnet.Link{Delay: fail})
		}},
		{"deaf", "nothing of the leader reaches it; it hears the others, and all hear it", func(g *group, victim uint64) error {
			return g.c.SetLink(g.net.Leader, victim, lost)
		}},
		{"mute", "nothing of it reaches the leader; it hears all, and the others hear it", func(g *group, victim uint64) error {
			return g.c.SetLink(victim, g.net.Leader, lost)
		}},
		{"stuck disk", "its disk writes nothing any more", func(g *group, victim uint64) error {
			return g.c.SetNode(victim, vnet.Node{Egress: virtual.Egress, Sync: never})
		}},
	}
}

// falter has a node stand still and go on by turns.
func (g *group) falter(id uint64, still, on time.Duration) {
	g.c.Pause(id)
	g.c.After(still, func() {
		g.c.Resume(id)
		g.c.After(on, func() { g.falter(id, still, on) })
	})
}

// relink changes all links to a node, and all links from the node.
func (g *group) relink(id uint64, to, from vnet.Link) error {
	for i := range g.nodes {
		other := uint64(i) + 1
		if other == id {
			continue
		}
		if err := g.c.SetLink(other, id, to); err != nil {
			return err
		}
		if err := g.c.SetLink(id, other, from); err != nil {
			return err
		}
	}
	return nil
}

// Failing measures the time for which each failure of a responder holds writes up, and the effect
// on reads at the other nodes.
func (cfg *FailConfig) Failing(ctx context.Context) ([]Failing, error) {
	var rows []Failing
	for _, voters := range cfg.Voters {
		for _, p := range policies() {
			if !p.Ours {
				continue
			}
			for _, f := range failures(cfg.Fail) {
				row := Failing{Voters: voters, Policy: p.Name, Failure: f.name, Bound: cfg.Fail + cfg.Lease + 2*cfg.Trip}
				for i := range cfg.Seeds {
					if err := ctx.Err(); err != nil {
						return nil, err
					}
					if err := cfg.run(&row, p, f, cfg.First+uint64(i)); err != nil {
						return nil, fmt.Errorf("%d voters, %s, %s, seed %d: %w", voters, p.Name, f.name, cfg.First+uint64(i), err)
					}
				}
				rows = append(rows, row)
			}
			fmt.Fprintf(cfg.Progress, "N=%d, %s\n", voters, p.Name)
		}
	}
	return rows, nil
}

const (
	// stillKeys is the number of keys, from 0 on, without writes; failKeys is the number of all
	// keys.
	stillKeys, failKeys = 50, 100
	// failReads is the time between two reads at a node, failWrites between two writes.
	failReads, failWrites = 5 * time.Millisecond, 11 * time.Millisecond
	// lateBy is the additional time from which on a read counts as late.
	lateBy = 2 * time.Millisecond
)

// run makes a responder fail under load.
func (cfg *FailConfig) run(row *Failing, p *Policy, f failure, seed uint64) error {
	n := flat(row.Voters, cfg.Trip)
	n.Tick = cfg.Fail / 5
	var all []leases.NodeID
	for i := range n.Sites {
		all = append(all, leases.NodeID(i+1))
	}
	settings := raft.Leases{Lease: cfg.Lease, Fail: cmp.Or(cfg.lax, cfg.Fail)}
	g, err := newGroup(setup{
		net: n, policy: p, keys: failKeys, value: 128, seed: seed, wanted: []leases.Want{{Nodes: all}}, leased: settings,
		leases: func(l *raft.Leases) { l.Lease, l.Fail, l.Hold = settings.Lease, settings.Fail, 2*n.Tick },
	})
	if err != nil {
		return err
	}
	victim := 2 + seed%uint64(row.Voters-1)                           // any but the leader
	calm := 4*cfg.Fail + time.Duration(g.rng.Int64N(int64(cfg.Fail))) // at any phase of ticks and leases
	struck := g.c.Now() + calm
	end := struck + 4*(cfg.Fail+cfg.Lease)
	seen := &failSeen{struck: struck}
	g.onDone(seen.add)
	cfg.load(g, victim, end)
	if err := g.c.Run(struck); err != nil {
		return err
	}
	if err := f.strike(g, victim); err != nil {
		return err
	}
	if err := g.c.Run(end); err != nil {
		return err
	}
	if g.c.Leader() != n.Leader {
		return fmt.Errorf("node %d leads at the end, not node %d", g.c.Leader(), n.Leader)
	}
	if err := g.drain(); err != nil {
		return err
	}
	row.Wrong += g.check.wrong()
	return seen.measure(row)
}

// load makes clients write at the leader's site, and read at every node except the victim.
func (cfg *FailConfig) load(g *group, victim uint64, end time.Duration) {
	g.every(failWrites, end, func() { g.begin(g.net.Leader, stillKeys+g.rng.IntN(failKeys-stillKeys), true) })
	for i := range g.nodes {
		if id := uint64(i) + 1; id != victim {
			g.c.After(time.Duration(g.rng.Int64N(int64(failReads))), func() {
				g.every(failReads, end, func() { g.begin(id, g.rng.IntN(failKeys), false) })
			})
		}
	}
}

// failSeen holds the ops around a failure.
type failSeen struct {
	struck time.Duration // when the responder failed
	calm   []time.Duration
	calmW  []time.Duration // of writes
	reads  []*op           // after the failure, as are writes
	writes []*op
}

func (s *failSeen) add(o *op) {
	switch {
	case o.done >= s.struck && o.write:
		s.writes = append(s.writes, o)
	case o.done >= s.struck:
		s.reads = append(s.reads, o)
	case o.write:
		s.calmW = append(s.calmW, o.latency())
	case o.key < stillKeys:
		s.calm = append(s.calm, o.latency())
	}
}

// measure adds the effect of a failure to its row.
func (s *failSeen) measure(row *Failing) error {
	if len(s.calm) < 100 || len(s.calmW) < 10 || len(s.reads) < 100 || len(s.writes) < 10 {
		return fmt.Errorf("%d and %d reads, %d and %d writes: too few to compare", len(s.calm), len(s.reads), len(s.calmW), len(s.writes))
	}
	calm := lab.Quantile(s.calm, 0.99)
	row.Calm = max(row.Calm, calm)
	row.Reads += len(s.reads)
	for _, o := range s.reads {
		late := o.latency() > calm+lateBy
		switch {
		case o.key < stillKeys && late:
			row.Late++
		case o.key >= stillKeys && late:
			row.WrittenLate++
		}
		if o.key >= stillKeys {
			row.WrittenWorst = max(row.WrittenWorst, o.latency())
		}
	}
	row.Writes += len(s.writes)
	usual := 2 * lab.Quantile(s.calmW, 0.99)
	holds, until := 0, time.Duration(0)
	for _, o := range s.writes { // in the order of their ends
		row.Held = max(row.Held, o.latency())
		if o.latency() > usual {
			row.Slow++
			if o.begun > until {
				holds++
			}
			until = o.done
		}
	}
	row.Holds = max(row.Holds, holds)
	return nil
}
