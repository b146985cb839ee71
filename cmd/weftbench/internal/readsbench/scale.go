// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"context"
	"fmt"
	"io"
	"time"
)

// ScaleConfig configures the measurement of reads by the number of nodes.
type ScaleConfig struct {
	// Nodes are numbers of nodes; the nodes beyond Voters are learners.
	Nodes  []int
	Voters int
	// Clients is the number of clients near each node; a client asks one read after another.
	Clients int
	// Read and Message are the processor time of a read and of a message, sent or received; a node
	// has a single processor.
	Read, Message time.Duration
	// Writes is the number of writes a second during the reads.
	Writes int
	// Time is the duration of a row, in virtual time.
	Time     time.Duration
	Seed     uint64
	Progress io.Writer
}

// ScaleRow is the capacity of a number of nodes.
type ScaleRow struct {
	Policy string `json:"policy"`
	Nodes  int    `json:"nodes"`
	// Rate is reads a second, Slope the rate divided by Nodes times the rate of a single node.
	Rate  float64 `json:"rate"`
	Slope float64 `json:"slope"`
	// Leader is the share of its processor that the leader needs for writes, leases and heartbeats,
	// without reads; Added is the mean addition to this share by each further node.
	Leader float64 `json:"leader"`
	Added  float64 `json:"added"`
	Wrong  int     `json:"wrong"`
}

// scaleTrip is the round trip between nodes.
const scaleTrip = 500 * time.Microsecond

// Scale measures the rate of reads for each number of nodes.
func (cfg *ScaleConfig) Scale(ctx context.Context) ([]ScaleRow, error) {
	var rows []ScaleRow
	for _, p := range policies() {
		if p.responders && !p.Ours {
			continue
		}
		one := ScaleRow{}
		for _, n := range append([]int{1}, cfg.Nodes...) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if n == 1 && one.Nodes == 1 {
				continue
			}
			row, err := cfg.row(p, n)
			if err != nil {
				return nil, err
			}
			if n == 1 {
				one = row
			}
			row.Slope = row.Rate / (float64(n) * one.Rate)
			row.Added = (row.Leader - one.Leader) / float64(max(n-1, 1))
			rows = append(rows, row)
		}
		fmt.Fprintln(cfg.Progress, p.Name)
	}
	return rows, nil
}

func (cfg *ScaleConfig) row(p *Policy, nodes int) (ScaleRow, error) {
	row := ScaleRow{Policy: p.Name, Nodes: nodes}
	reads := 0
	g, err := cfg.run(p, nodes, func(g *group, end time.Duration) {
		g.load(cfg.Clients, func() bool { return g.c.Now() >= end }, func(uint64) (int, bool) { return g.rng.IntN(g.keys), false })
		g.onDone(func(o *op) {
			if !o.write && o.done <= end {
				reads++
			}
		})
	})
	if err != nil {
		return row, err
	}
	row.Rate = float64(reads) / cfg.Time.Seconds()
	if err := g.drain(); err != nil {
		return row, err
	}
	row.Wrong = g.check.wrong()
	// Again without reads, and for longer, because heartbeats are rare.
	const longer = 10
	idle := *cfg
	idle.Time *= longer
	busy := time.Duration(0)
	g, err = idle.run(p, nodes, func(g *group, _ time.Duration) { busy = g.c.Busy(g.net.Leader) })
	if err != nil {
		return row, err
	}
	row.Leader = float64(g.c.Busy(g.net.Leader)-busy) / float64(idle.Time)
	return row, nil
}

// run runs a group under writes and the load of begin, and returns the group at the end.
func (cfg *ScaleConfig) run(p *Policy, nodes int, begin func(g *group, end time.Duration)) (*group, error) {
	g, err := newGroup(setup{
		net: flat(nodes, scaleTrip), policy: p, keys: 1000, value: 128, seed: cfg.Seed,
		learners: max(0, nodes-cfg.Voters), work: cfg.Message, read: cfg.Read,
	})
	if err != nil {
		return nil, err
	}
	end := g.c.Now() + cfg.Time
	begin(g, end)
	if cfg.Writes > 0 {
		write := g.done
		g.done = func(o *op) {
			if !o.write && write != nil {
				write(o)
			}
		}
		g.every(time.Second/time.Duration(cfg.Writes), end, func() { g.begin(g.net.Leader, g.rng.IntN(g.keys), true) })
	}
	return g, g.c.Run(end)
}
