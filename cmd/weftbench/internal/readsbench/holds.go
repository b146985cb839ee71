// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"context"
	"fmt"
	"time"
)

// Hold is the delay of reads at responders by a write of their key.
type Hold struct {
	Network string `json:"network"`
	Policy  string `json:"policy"`
	// Trip is the round trip from the leader to the farthest responder, which is the duration of a
	// write.
	Trip time.Duration `json:"trip_ns"`
	// Reads is the number of reads, Late the number of reads that took longer than without a write;
	// Delay is the additional time of these reads. Window is, as a mean over writes, the time from
	// the beginning of a write to the beginning of the last late read.
	Reads   int           `json:"reads"`
	Late    int           `json:"late"`
	Delay   Latency       `json:"delay"`
	Window  time.Duration `json:"window_ns"`
	Wrong   int           `json:"wrong"`
	latency []time.Duration
}

const (
	holdRate   = 2500 * time.Microsecond // between two reads at a responder: 400 a second, as in the paper's Figure 10
	holdWrites = 40
)

// Holds measures the delay of reads by a write of their key, for policies with responders.
func (cfg *Config) Holds(ctx context.Context) ([]Hold, error) {
	var rows []Hold
	for _, n := range append([]Network{flat(5, 40*time.Millisecond)}, Networks()[1:]...) {
		for _, p := range policies() {
			if !p.responders {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			row, err := cfg.hold(n, p)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	fmt.Fprintln(cfg.Progress, "reads of a key that is written")
	return rows, nil
}

// hold writes a key at intervals, from the leader's site, while clients read the key at every
// responder.
func (cfg *Config) hold(n Network, p *Policy) (Hold, error) {
	row := Hold{Network: n.Name, Policy: p.Name, Trip: n.farthest()}
	g, err := newGroup(setup{net: n, policy: p, keys: 1, value: cfg.Value, seed: cfg.Seed})
	if err != nil {
		return row, err
	}
	every := 4*row.Trip + 100*time.Millisecond
	end := g.c.Now() + holdWrites*every
	var began time.Duration // of the last write
	windows := make([]time.Duration, holdWrites+1)
	writes := 0
	g.onDone(func(o *op) {
		if o.write {
			return
		}
		row.Reads++
		if late := o.latency() - n.Client; late > 0 {
			row.Late++
			row.latency = append(row.latency, late)
			windows[writes] = max(windows[writes], o.begun-began)
		}
	})
	g.every(every, end, func() {
		began = g.c.Now()
		writes++
		g.begin(n.Leader, 0, true)
	})
	for _, id := range n.Responders {
		// Reads at different responders are not in step.
		g.c.After(time.Duration(g.rng.Int64N(int64(holdRate))), func() {
			g.every(holdRate, end, func() { g.begin(uint64(id), 0, false) })
		})
	}
	if err := g.c.Run(end); err != nil {
		return row, err
	}
	if err := g.drain(); err != nil {
		return row, err
	}
	row.Delay, row.Wrong = latencyOf(row.latency), g.check.wrong()
	for _, w := range windows {
		row.Window += w / holdWrites
	}
	return row, nil
}

// every calls do at intervals of d until end.
func (g *group) every(d, end time.Duration, do func()) {
	g.c.After(d, func() {
		if g.c.Now() < end {
			do()
			g.every(d, end, do)
		}
	})
}

// Path is the cost of a read at a responder in messages between nodes.
type Path struct {
	Policy   string  `json:"policy"`
	Reads    int     `json:"reads"`
	Messages float64 `json:"messages"`
	Mean     time.Duration
}

// Paths counts messages for reads at responders, in a group without writes: the messages of a run
// with reads, less the messages of a run without reads.
func (cfg *Config) Paths(ctx context.Context) ([]Path, error) {
	var rows []Path
	for _, p := range policies() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s := setup{net: Networks()[1], policy: p, keys: 100, value: cfg.Value, seed: cfg.Seed, work: messageWork, read: readWork}
		reads, sum, with, err := cfg.path(s, 4)
		if err != nil {
			return nil, err
		}
		_, _, without, err := cfg.path(s, 0)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Path{p.Name, reads, float64(int64(with)-int64(without)) / float64(reads), sum / time.Duration(reads)})
	}
	return rows, nil
}

// path returns the number of finished reads of clients near responders, the sum of their durations,
// and the number of messages sent meanwhile.
func (cfg *Config) path(s setup, clients int) (reads int, sum time.Duration, messages uint64, err error) {
	g, err := newGroup(s)
	if err != nil {
		return 0, 0, 0, err
	}
	end := g.c.Now() + time.Second
	sent := g.c.SentByAll().Messages
	g.onDone(func(o *op) {
		reads++
		sum += o.latency()
		if g.c.Now() < end {
			g.begin(o.node, g.rng.IntN(s.keys), false)
		}
	})
	for _, id := range s.net.Responders {
		for range clients {
			g.begin(uint64(id), g.rng.IntN(s.keys), false)
		}
	}
	// All ops are done by then.
	err = g.c.Run(end + time.Second)
	return reads, sum, g.c.SentByAll().Messages - sent, err
}
