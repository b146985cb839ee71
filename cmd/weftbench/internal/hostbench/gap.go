// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostbench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/weftbench/internal/load"
	"github.com/weftraft/weft/internal/lab"
)

// gaps are the longest times without an answered write around the kill of a
// leader, ascending.
type gaps struct {
	Side string          `json:"side"`
	All  []time.Duration `json:"gaps_ns"`
}

// Median returns the median gap.
func (g *gaps) Median() time.Duration { return lab.Quantile(g.All, 0.5) }

// gaps kills leaders, those of all sides in turn.
func (b *bench) gaps(ctx context.Context) error {
	if b.cfg.Kills == 0 {
		return nil
	}
	for _, s := range b.cfg.Sides {
		b.report.Gaps = append(b.report.Gaps, &gaps{Side: s.Name})
	}
	for kill := range b.cfg.Kills {
		b.say("[%v] kill %d of %d", b.elapsed(), kill+1, b.cfg.Kills)
		for i, c := range b.clusters {
			gap, err := b.gap(ctx, c)
			if err != nil {
				return fmt.Errorf("%s: kill the leader: %w", c.Name, err)
			}
			b.report.Gaps[i].All = append(b.report.Gaps[i].All, gap)
		}
	}
	for _, g := range b.report.Gaps {
		slices.Sort(g.All)
		b.say("gap after a kill of the leader  %-9s median %v of %v", g.Side, g.Median().Round(time.Millisecond), g.All)
	}
	return nil
}

// gap kills the leader under load and returns the longest time without an
// answer from then on.
func (b *bench) gap(ctx context.Context, c *cluster.Cluster) (time.Duration, error) {
	if _, err := c.WaitLeader(ctx); err != nil {
		return 0, err
	}
	before := 500 * time.Millisecond
	after := time.Duration(4*b.cfg.ElectionTicks) * b.cfg.Tick
	plan := b.plan(c.Clients(), row{Clients: 16, Size: 1 << 10}, 0, before+after)
	var acks lab.Acks
	plan.Note, plan.Timeout = acks.Note, 2*time.Second
	done := make(chan error, 1)
	go func() {
		_, err := load.Run(ctx, plan)
		done <- err
	}()
	select {
	case err := <-done:
		return 0, fmt.Errorf("the load ended early: %w", err)
	case <-time.After(before):
	}
	leader, err := c.WaitLeader(ctx) // it may have changed under load
	if err != nil {
		return 0, err
	}
	killed := time.Now()
	if err := leader.Kill(); err != nil {
		return 0, err
	}
	if err := <-done; err != nil {
		return 0, err
	}
	gap := acks.LongestGap(killed, time.Now())
	if err := leader.Start(); err != nil {
		return 0, err
	}
	_, err = c.WaitLeader(ctx)
	return gap, err
}
