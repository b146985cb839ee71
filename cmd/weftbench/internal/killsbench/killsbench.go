// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package killsbench measures what clients of real processes see when a node of a cluster with
// roster leases fails: how long no write is acknowledged after the leader was killed, with
// leases off and on in turns; which reads at the other nodes are answered meanwhile; and how long
// a responder that fails holds writes up.
//
// Clients write all the time, a new call to every node at a fixed pace, whatever became of
// the calls before: so the first answer to a call that began after a failure tells when
// writes go on.
package killsbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/internal/lab"
)

// Config says what to measure.
type Config struct {
	Kvdemo, Dir string
	Nodes       int
	// Kills is how many leaders are killed on each side, and Reads how many more under reads;
	// Faults is how often responders fail in each way.
	Kills, Reads, Faults int
	// Tick and ElectionTicks are those of the nodes.
	Tick          time.Duration
	ElectionTicks int
	Progress      io.Writer
}

// Gap is one loss of a leader: the time from the loss to the first acknowledgement of a write
// begun after the loss.
type Gap struct {
	Side string        `json:"side"`
	Gap  time.Duration `json:"gap_ns"`
}

// Results are what was measured.
type Results struct {
	Gaps   []Gap   `json:"gaps"`
	Reads  []Reads `json:"reads"`
	Faults []Fault `json:"faults"`
}

// side is a cluster. Where responders are to fail in all ways, its links can be cut and
// slowed down, and its disks be stuck.
type side struct {
	name          string
	leases, fails bool
	c             *cluster.Cluster
}

type bench struct {
	cfg     Config
	begun   time.Time
	results Results
}

// Run kills leaders, and has responders fail. The results before an error are there.
func Run(ctx context.Context, cfg Config) (_ *Results, err error) {
	b := &bench{cfg: cfg, begun: time.Now()}
	if cfg.Kills > 0 {
		err = b.kill(ctx, cfg.Kills, "", func(s *side) (string, error) {
			gap, err := s.kill(ctx)
			if err == nil {
				b.results.Gaps = append(b.results.Gaps, Gap{s.name, gap})
			}
			return " " + gap.Round(time.Millisecond).String(), err
		})
	}
	if cfg.Reads > 0 && err == nil {
		err = b.kill(ctx, cfg.Reads, " under reads", func(s *side) (string, error) {
			reads, err := s.readsAfterKill(ctx)
			if err == nil {
				b.results.Reads = append(b.results.Reads, reads...)
			}
			return "", err
		})
	}
	if cfg.Faults > 0 && err == nil {
		err = b.faults(ctx)
	}
	return &b.results, err
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.cfg.Progress, "[%v] %s\n", time.Since(b.begun).Round(time.Second), fmt.Sprintf(format, args...))
}

// start starts a cluster and, if the cluster has leases, names every node as a responder.
func (b *bench) start(ctx context.Context, s *side) (err error) {
	args := []string{"--tick", b.cfg.Tick.String(), "--election-ticks", fmt.Sprint(b.cfg.ElectionTicks)}
	if s.leases {
		args = append(args, "--leases")
	}
	dir := filepath.Join(b.cfg.Dir, fmt.Sprintf("%s-%d", s.name, time.Since(b.begun)))
	cfg := cluster.Config{Name: s.name, Serve: lab.Serve{Program: []string{b.cfg.Kvdemo, "serve"}, Args: args}, Nodes: b.cfg.Nodes, Dir: dir, Responders: s.leases}
	if s.fails {
		cfg.Links = func(int, int) time.Duration { return 0 }
		cfg.Disks = true
	}
	s.c, err = cluster.Start(ctx, cfg)
	return err
}

// ready waits until all nodes run and follow one leader, and, with leases, answer reads.
func (s *side) ready(ctx context.Context) (*cluster.Node, error) {
	if s.leases {
		if err := s.c.WaitStable(ctx, 3*time.Minute); err != nil {
			return nil, err
		}
	}
	return s.c.WaitLeader(ctx)
}

// kill kills the leaders of a cluster without leases and of one with them, in turns. While one side gets well the next is hit.
func (b *bench) kill(ctx context.Context, times int, how string, kill func(*side) (string, error)) (err error) {
	sides := []*side{{name: "leases off"}, {name: "leases", leases: true}}
	for _, s := range sides {
		if err := b.start(ctx, s); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.c.Close()) }()
	}
	return lab.Turns(times, len(sides), func(i, side int) error {
		s := sides[side]
		said, err := lab.Again(func() (string, error) { return kill(s) })
		if err != nil {
			return fmt.Errorf("%s, kill %d%s: %w", s.name, i+1, how, err)
		}
		b.say("kill %d of %d%s: %s%s", i+1, times, how, s.name, said)
		return nil
	})
}

// rounds returns the least number of failures behind a figure.
func (c Config) rounds() (least int) {
	for _, n := range []int{c.Kills, c.Reads, c.Faults} {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// Publishable returns an error if the report is to go into a document, and rests on too little.
func (c Config) Publishable(path string) error { return lab.Publishable(path, c.rounds()) }

// warm is how long clients write before a failure.
const warm = 200 * time.Millisecond

// kill kills the leader under writes, and returns when writes go on. It starts the node
// again.
func (s *side) kill(ctx context.Context) (time.Duration, error) {
	leader, err := s.ready(ctx)
	if err != nil {
		return 0, err
	}
	w := startWrites(ctx, but(s.c.Nodes, leader)...)
	defer w.stop()
	if err := w.calm(ctx, warm); err != nil {
		return 0, err
	}
	if now, err := s.c.WaitLeader(ctx); err != nil || now != leader {
		return 0, cmp.Or(err, fmt.Errorf("%w: the leader changed before it was killed", lab.ErrDisturbed))
	}
	at := time.Now()
	if err := leader.Kill(); err != nil {
		return 0, err
	}
	gap, err := w.next(ctx, at)
	if err != nil {
		return 0, err
	}
	return gap, leader.Start()
}
