// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package outagebench takes a follower away from a cluster of real processes
// under load, brings it back, and measures what clients see of both.
package outagebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/cluster"
	"github.com/weftraft/weft/cmd/weftbench/internal/load"
	"github.com/weftraft/weft/internal/lab"
)

// Config says what to measure.
type Config struct {
	Kvdemo string // the nodes' program
	Nodes  []int
	Egress int // bytes a second that leave a node
	Size   int // bytes of a value
	// Load is the load of clients in an open loop, as a share of the throughput of full
	// copies; 0 is a closed loop.
	Load []float64
	// Rounds is how often each side is measured, in turns.
	Rounds int
	// Away is how long the follower is away, Before how long is measured with
	// all of them.
	Away, Before time.Duration
	// Retain is how many bytes of log nodes keep. A follower that missed more
	// gets a snapshot. 0: as much as it can miss.
	Retain int

	Dir      string    // for the nodes' data
	Progress io.Writer // told of each phase
}

// Row is the measurement of one cluster under one load, in one round.
type Row struct {
	Nodes int     `json:"nodes"`
	Side  string  `json:"side"`
	Load  float64 `json:"load"`
	Round int     `json:"round"`
	// Before is the time with all nodes up, Away the time after the follower's kill,
	// Back the time from the follower's start until its state equals the leader's.
	Before Phase `json:"before"`
	Away   Phase `json:"away"`
	Back   Phase `json:"back"`
	// Missed is the number of entries that the follower lacked. Sent is the number of
	// bytes that the leader sent during Back, for each byte of value written meanwhile.
	Missed uint64  `json:"missed"`
	Sent   float64 `json:"sent"`
}

// Phase is what clients saw for a time.
type Phase struct {
	Took   time.Duration `json:"took_ns"`
	Calls  int64         `json:"calls"`
	Failed int64         `json:"failed"`
	P50    time.Duration `json:"p50_ns"`
	P99    time.Duration `json:"p99_ns"`
	Max    time.Duration `json:"max_ns"`
}

// PerSecond is how many calls were answered.
func (p Phase) PerSecond() float64 { return float64(p.Calls) / p.Took.Seconds() }

const (
	clients = 16
	warm    = 2 * time.Second
	level   = 2 * clients // entries behind: no more than are under way
	patient = 10 * time.Minute
)

// The sides. Full copies come first, as what the other is compared with.
var sides = []string{"off", "on"}

// Run measures all rows, round by round; in a round, the rows of one load and number of nodes follow each other.
func Run(ctx context.Context, cfg Config) (rows []Row, err error) {
	for _, nodes := range cfg.Nodes {
		for _, share := range cfg.Load {
			err := lab.Turns(cfg.Rounds, len(sides), func(round, i int) error {
				row, err := cfg.measure(ctx, Row{Nodes: nodes, Side: sides[i], Load: share, Round: round})
				if err != nil {
					return fmt.Errorf("%d nodes, coding %s: %w", nodes, sides[i], err)
				}
				rows = append(rows, row)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// measure runs a cluster through all phases.
func (cfg *Config) measure(ctx context.Context, row Row) (_ Row, err error) {
	rate := float64(cfg.Egress) / float64((row.Nodes-1)*cfg.Size) // of full copies
	retain := cfg.Retain
	if retain == 0 { // more than leaves a node meanwhile, and so than it can miss
		retain = 2*int(float64(cfg.Egress)*(cfg.Away+cfg.Before).Seconds()) + 256<<20
	}
	name := fmt.Sprintf("coding-%s-%d-%v-%d", row.Side, row.Nodes, row.Load, row.Round)
	c, err := cluster.Start(ctx, cluster.Config{
		Name: name, Nodes: row.Nodes, Dir: filepath.Join(cfg.Dir, name),
		Serve: lab.Serve{
			Program: []string{cfg.Kvdemo, "serve"},
			Args:    []string{"--coding", row.Side, "--egress", fmt.Sprint(cfg.Egress), "--retain-bytes", fmt.Sprint(retain)},
		},
	})
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return row, err
	}
	r := &run{Config: cfg, row: &row, cluster: c, leader: leader, plan: load.Plan{
		Addresses: []string{leader.Client}, Clients: clients, Size: cfg.Size, Keys: load.KeysFor(cfg.Size),
		Rate: row.Load * rate, Duration: time.Hour, Timeout: time.Minute, Seed: 1,
	}}
	return row, r.phases(ctx)
}

// run is one cluster under load.
type run struct {
	*Config
	row     *Row
	cluster *cluster.Cluster
	leader  *cluster.Node
	plan    load.Plan
}

func (r *run) phases(ctx context.Context) error {
	away := r.cluster.Nodes[0]
	if away == r.leader {
		away = r.cluster.Nodes[1]
	}
	if _, err := r.during(ctx, "warming up", func() error { return lab.Sleep(ctx, warm) }); err != nil {
		return err
	}
	begin, err := r.look(ctx)
	if err != nil {
		return err
	}
	if r.row.Before, err = r.during(ctx, "all nodes", func() error { return lab.Sleep(ctx, r.Config.Before) }); err != nil {
		return err
	}
	r.row.Away, err = r.during(ctx, "one away", func() error { return errors.Join(away.Kill(), lab.Sleep(ctx, r.Config.Away)) })
	if err != nil {
		return err
	}
	back, err := r.look(ctx)
	if err != nil {
		return err
	}
	r.row.Back, err = r.during(ctx, "it is back", func() error {
		if err := away.Start(); err != nil {
			return err
		}
		return r.caughtUp(ctx, away)
	})
	if err != nil {
		return err
	}
	end, err := r.look(ctx)
	if err != nil {
		return err
	}
	if end.term != begin.term {
		return fmt.Errorf("the leader changed: term %d was %d; measure again on a machine with less to do", end.term, begin.term)
	}
	r.row.Sent = float64(end.sent-back.sent) / float64(r.row.Back.Calls*int64(r.Size))
	return nil
}

// during makes the load while something happens.
func (r *run) during(ctx context.Context, what string, happens func() error) (Phase, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		*lab.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := load.Run(ctx, r.plan)
		done <- outcome{result, err}
	}()
	err := happens()
	cancel()
	o := <-done
	if err = errors.Join(err, o.err); err != nil {
		return Phase{}, err
	}
	p := Phase{o.Elapsed, o.Calls, o.Failed, o.Latency.Quantile(0.5), o.Latency.Quantile(0.99), o.Latency.Quantile(1)}
	_, _ = fmt.Fprintf(r.Progress, "%d nodes, coding %-3s  load %v  %-11s %6.1f s  %6.0f/s  p50 %7.1f ms  p99 %7.1f ms  worst %7.1f ms  %d failed\n",
		r.row.Nodes, r.row.Side, r.row.Load, what, p.Took.Seconds(), p.PerSecond(), ms(p.P50), ms(p.P99), ms(p.Max), p.Failed) // a courtesy
	return p, nil
}

// caughtUp waits until a restarted node has applied every entry that the leader has applied.
func (r *run) caughtUp(ctx context.Context, n *cluster.Node) error {
	first := true
	return r.cluster.WaitFor(ctx, patient, "the node to catch up", func(all []*kvpb.StatusResponse) bool {
		is, leader := all[n.ID-1], all[r.leader.ID-1]
		if is == nil || leader == nil {
			return false
		}
		if first {
			first = false
			r.row.Missed = leader.GetApplied() - min(is.GetApplied(), leader.GetApplied())
		}
		return is.GetApplied()+level >= leader.GetApplied()
	})
}

// reading is what the leader says of itself.
type reading struct{ term, sent uint64 }

func (r *run) look(ctx context.Context) (now reading, err error) {
	s, err := r.leader.KV().Status(ctx, &kvpb.StatusRequest{})
	if err != nil {
		return now, err
	}
	now.term = s.GetTerm()
	for _, link := range s.GetLinks() {
		now.sent += link.GetSentBytes()
	}
	return now, nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
