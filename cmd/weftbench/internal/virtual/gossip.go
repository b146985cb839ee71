// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Gossip measures when followers have the payloads of entries that they know to be committed, and how
// far followers are behind the leader, in a group of each size.
type Gossip struct {
	Group
	// Loads, in place of Load, are shares of the throughput of full copies; 0 is a group that is
	// idle except for one client, which rests for 50 ms between proposals. From 1 on, sides that
	// send full copies are left out.
	Loads []float64
	// Time is how long a row runs, in virtual time.
	Time time.Duration
	// Learners are beside the voters in each group; the figures are the voters'.
	Learners int
}

// gossipRow is the measurement of followers with one way of replication under one load.
type gossipRow struct {
	Voters int     `json:"voters"`
	Side   string  `json:"side"`
	Load   float64 `json:"load"`
	// Wait has, for each entry and follower, the time from the follower's learning of the
	// commit to its application of the entry; Stale, the time from the commit at the leader
	// to the same application.
	Wait  []time.Duration `json:"-"`
	Stale []time.Duration `json:"-"`
	// Quantiles of those, in nanoseconds: 0.5, 0.9, 0.99, 1.
	WaitNS  [4]time.Duration `json:"wait_ns"`
	StaleNS [4]time.Duration `json:"stale_ns"`
	// Prompt is the share of entries that were complete no later than the
	// follower learnt of their commit.
	Prompt float64 `json:"prompt"`
	// Calls counts proposals, P50 and P99 are their latencies.
	Calls int           `json:"calls"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
}

var quantiles = [4]float64{0.5, 0.9, 0.99, 1}

// Run measures all rows.
func (cfg *Gossip) Run(ctx context.Context) (*lab.Section, error) {
	rows, err := cfg.rows(ctx)
	return cfg.report(rows), err
}

func (cfg *Gossip) rows(ctx context.Context) (rows []gossipRow, err error) {
	for _, load := range cfg.Loads {
		err := cfg.each(ctx, func(voters int, side Side) error {
			if load >= 1 && !side.Coded {
				return nil
			}
			row, err := cfg.measure(side, voters, load)
			rows = append(rows, row)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("at a load of %v: %w", load, err)
		}
	}
	return rows, nil
}

const (
	idlePause = 50 * time.Millisecond
	drain     = 2 * time.Second
)

func (cfg *Gossip) measure(side Side, voters int, load float64) (gossipRow, error) {
	row := gossipRow{Voters: voters, Side: side.Name, Load: load}
	o := network(voters, cfg.Seed, cfg.Delay)
	addLearners(&o, cfg.Learners)
	side.Use(&o)
	w := gossipWatch{size: cfg.Size, voters: uint64(voters), learnt: make([][]time.Duration, voters+1+cfg.Learners)}
	o.OnCommit, o.OnApply = w.committed, w.applied
	c, err := elected(o, &w.c)
	if err != nil {
		return row, err
	}
	if err := c.Run(c.Now() + 100*time.Millisecond); err != nil {
		return row, err
	}
	clients := vnet.LoadOptions{Sizes: []int{cfg.Size}, Seed: cfg.Seed}
	if load == 0 {
		clients.Clients, clients.Pause = 1, idlePause
	} else {
		clients.Rate = cfg.rate(voters, load)
	}
	l, err := c.StartLoad(clients)
	if err != nil {
		return row, err
	}
	if err := c.Run(c.Now() + cfg.Time); err != nil {
		return row, err
	}
	l.Stop()
	until := c.Now() + drain
	if done, err := c.RunUntil(until, func() bool { return l.Open() == 0 && w.all() }); err != nil || !done {
		return row, fmt.Errorf("within %v %d proposals were not done, followers not all complete: %w", drain, l.Open(), err)
	}
	row.summarize(&w, l.Calls())
	return row, nil
}

func (r *gossipRow) summarize(w *gossipWatch, calls []vnet.Call) {
	r.Wait, r.Stale = w.wait, w.stale
	prompt := 0
	for _, d := range r.Wait {
		if d == 0 {
			prompt++
		}
	}
	r.Prompt = float64(prompt) / float64(max(len(r.Wait), 1))
	for i, q := range quantiles {
		r.WaitNS[i], r.StaleNS[i] = lab.Quantile(r.Wait, q), lab.Quantile(r.Stale, q)
	}
	l := latencyOf(calls)
	r.Calls, r.P50, r.P99 = l.Calls, l.P50, l.P99
}

// gossipWatch sees when nodes learn of commits, and when they apply.
type gossipWatch struct {
	c      *vnet.Cluster
	size   int
	voters uint64
	// learnt has the time at which a node learnt that an index is committed, by
	// node and index.
	learnt      [][]time.Duration
	wait, stale []time.Duration
}

func (w *gossipWatch) committed(node, index uint64) {
	for uint64(len(w.learnt[node])) <= index {
		w.learnt[node] = append(w.learnt[node], w.c.Now())
	}
}

func (w *gossipWatch) applied(node uint64, e *pb.Entry) {
	if node == leader || node > w.voters || len(e.GetData()) != w.size {
		return
	}
	now, i := w.c.Now(), e.GetIndex()
	w.wait = append(w.wait, now-w.learnt[node][i])
	w.stale = append(w.stale, now-w.learnt[leader][i])
}

// all reports whether all followers have applied what is committed.
func (w *gossipWatch) all() bool {
	for id := range w.c.Nodes() {
		if w.c.Applied(uint64(id)+1) != w.c.Committed(leader) {
			return false
		}
	}
	return true
}
