// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package virtual measures groups of real cores over a simulated network, in virtual time. It has
// four tables: the bytes that a byte of payload takes ([Bytes]), when followers have payloads
// ([Gossip]), how long nothing commits after the leader is lost ([Failover]), and what a follower
// costs that is lost and comes back ([Away]).
package virtual

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Group is what the tables have in common.
type Group struct {
	// Voters are the sizes of the groups, Size that of a payload in bytes.
	Voters []int
	Size   int
	// Load is the share of what full copies can do that clients ask for.
	Load float64
	// Delay is the delay of a message in one direction.
	Delay time.Duration
	// Sides run in the core. The others are compared with the first.
	Sides []Side
	// Seed feeds the runs.
	Seed uint64
	// Progress hears of each row.
	Progress io.Writer
}

const (
	// leader is the node that leads, in tables that do not kill leaders.
	leader = 1
	// patient is how long a group may take for a step.
	patient = time.Minute
)

// rate is how many payloads a second a share of what full copies can do is.
func (g *Group) rate(voters int, load float64) float64 {
	return load * Egress / float64((voters-1)*g.Size)
}

// step measures something that has a name.
func (g *Group) step(ctx context.Context, name string, measure func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := measure(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintln(g.Progress, name)
	return nil
}

// each measures every size of group with every side.
func (g *Group) each(ctx context.Context, measure func(voters int, side Side) error) error {
	for _, n := range g.Voters {
		for _, side := range g.Sides {
			if err := g.step(ctx, fmt.Sprintf("N=%d, %s", n, side.Name), func() error { return measure(n, side) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// elected starts a cluster in which node 1 leads, and shows it to watchers before anything happens.
func elected(o vnet.Options, watchers ...**vnet.Cluster) (*vnet.Cluster, error) {
	c, err := vnet.New(o)
	if err != nil {
		return nil, err
	}
	for _, w := range watchers {
		*w = c
	}
	return c, c.Elect(leader)
}

// latency is the latencies of the calls that ended within a span of time.
type latency struct {
	Calls int           `json:"calls"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

func latencyOf(calls []vnet.Call) latency {
	var times []time.Duration
	for _, c := range calls {
		times = append(times, c.Latency())
	}
	return latency{len(calls), lab.Quantile(times, 0.5), lab.Quantile(times, 0.99), lab.Quantile(times, 1)}
}

// String returns median, 99% and worst.
func (l latency) String() string { return lab.Spread(l.P50, l.P99, l.Max) }
