// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package awaybench measures what a group's clients see of a follower that is
// lost, stays away under load, and comes back to all that it missed.
package awaybench

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Config says what to measure.
type Config struct {
	// Voters are the sizes of the groups, Size that of a payload in bytes.
	Voters []int
	Size   int
	// Load is the share of what full copies can do that clients ask for.
	Load float64
	// Away is how long the follower is away, Delay what a message takes in one
	// direction.
	Away, Delay time.Duration
	// Sides run in the core.
	Sides []virtual.Side
	Seed  uint64
	// Progress hears of each row.
	Progress io.Writer
}

// Row is what happened with one size of group and one way of replication.
type Row struct {
	Voters int    `json:"voters"`
	Side   string `json:"side"`
	// Before, Lost and Back are latencies of proposals: with all members, in the
	// first moments without the follower, and while it catches up and shortly
	// after, when what queued up then is done.
	Before Latency `json:"before"`
	Lost   Latency `json:"lost"`
	Back   Latency `json:"back"`
	// Caught is how long it took to have applied what other followers have; Missed
	// is how many payload bytes that were, Sent what the leader sent meanwhile,
	// for a byte of payload that was committed meanwhile.
	Caught time.Duration `json:"caught_ns"`
	Missed int           `json:"missed"`
	Sent   float64       `json:"sent"`
	// Link is what came to the follower meanwhile, in bytes a second, from the
	// member that sent it most.
	Link float64 `json:"link_bytes_per_second"`
}

// Latency is of proposals that were done within a time.
type Latency struct {
	Calls int           `json:"calls"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// Run measures all rows.
func Run(ctx context.Context, cfg Config) ([]Row, error) {
	var rows []Row
	for _, n := range cfg.Voters {
		for _, side := range cfg.Sides {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			row, err := cfg.measure(side, n)
			if err != nil {
				return nil, fmt.Errorf("%d voters, %s: %w", n, side.Name, err)
			}
			rows = append(rows, row)
			fmt.Fprintf(cfg.Progress, "N=%d, %s\n", n, side.Name)
		}
	}
	return rows, nil
}

const (
	settle  = time.Second
	phase   = 500 * time.Millisecond
	patient = time.Minute
	leader  = 1
	present = 2 // a follower that is not away

	// What may be on its way to a follower.
	windowMessages = 256
	windowBytes    = 8 << 20
)

func (cfg *Config) measure(side virtual.Side, voters int) (Row, error) {
	row := Row{Voters: voters, Side: side.Name}
	o := virtual.Network(voters, cfg.Seed, cfg.Delay)
	rate := cfg.Load * virtual.Egress / float64((voters-1)*cfg.Size)
	// Logs keep what the follower misses, or it would get a snapshot.
	missed := int(rate * cfg.Away.Seconds())
	o.Keep, o.KeepBytes = 2*missed+1000, 2*(missed+1000)*cfg.Size
	o.Configure = func(_ uint64, c *raft.Config) {
		c.MaxInflightMsgs, c.MaxInflightBytes = windowMessages, windowBytes
		side.Configure(c)
	}
	c, err := vnet.New(o)
	if err != nil {
		return row, err
	}
	if err := c.Elect(leader); err != nil {
		return row, err
	}
	if err := c.Run(c.Now() + settle); err != nil {
		return row, err
	}
	load, err := c.StartLoad(vnet.LoadOptions{Rate: rate, Sizes: []int{cfg.Size}, Seed: cfg.Seed})
	if err != nil {
		return row, err
	}
	seen := 0
	during := func(run func() error) (Latency, error) {
		err := run()
		calls := load.Calls()[seen:]
		seen += len(calls)
		return latency(calls), err
	}
	pass := func(d time.Duration) func() error { return func() error { return c.Run(c.Now() + d) } }
	if row.Before, err = during(pass(phase)); err != nil {
		return row, err
	}
	away := uint64(voters)
	c.Kill(away)
	if row.Lost, err = during(pass(phase)); err != nil {
		return row, err
	}
	if _, err = during(pass(cfg.Away - phase)); err != nil {
		return row, err
	}
	back, egress, applied := c.Now(), c.SentBy(leader), c.Applied(away)
	received := sentTo(c, away)
	row.Missed = int(c.Applied(leader)-applied) * cfg.Size
	if err := c.Restart(away); err != nil {
		return row, err
	}
	row.Back, err = during(func() error {
		level, err := c.RunUntil(back+patient, func() bool { return c.Applied(away)+3 >= c.Applied(present) })
		if err == nil && !level {
			err = fmt.Errorf("the follower has applied %d of %d within %v", c.Applied(away), c.Applied(present), patient)
		}
		row.Caught = c.Now() - back
		if err != nil {
			return err
		}
		for from, bytes := range sentTo(c, away) {
			row.Link = max(row.Link, float64(bytes-received[from])/row.Caught.Seconds())
		}
		return c.Run(c.Now() + phase)
	})
	if err != nil {
		return row, err
	}
	if c.Leader() != leader {
		return row, fmt.Errorf("node %d leads at the end, not node %d", c.Leader(), leader)
	}
	row.Sent = float64(c.SentBy(leader).Minus(egress).Total()) / float64(max(row.Back.Calls, 1)*cfg.Size)
	return row, nil
}

// sentTo returns the bytes that each member has sent another.
func sentTo(c *vnet.Cluster, to uint64) map[uint64]uint64 {
	bytes := map[uint64]uint64{}
	for i := range c.Nodes() {
		if from := uint64(i) + 1; from != to {
			bytes[from] = c.Sent(from, to).Total()
		}
	}
	return bytes
}

func latency(calls []vnet.Call) Latency {
	var times []time.Duration
	for _, c := range calls {
		times = append(times, c.Latency())
	}
	return Latency{len(calls), lab.Quantile(times, 0.5), lab.Quantile(times, 0.99), lab.Quantile(times, 1)}
}
