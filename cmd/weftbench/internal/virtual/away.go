// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"fmt"
	"time"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Away measures the latencies of a group's clients while a follower is lost, stays away under load,
// comes back and catches up.
type Away struct {
	Group
	Away time.Duration // how long the follower is away
}

// awayRow is the measurement of one size of group and one way of replication.
type awayRow struct {
	Voters int    `json:"voters"`
	Side   string `json:"side"`
	// Before, Lost and Back are latencies of proposals: with all members, in the
	// first moments without the follower, and while it catches up and shortly
	// after, when what queued up then is done.
	Before latency `json:"before"`
	Lost   latency `json:"lost"`
	Back   latency `json:"back"`
	// Caught is the time until the follower had applied as much as other followers;
	// Missed is the number of payload bytes that the follower lacked; Sent is the number
	// of bytes that the leader sent meanwhile, for each byte of payload committed meanwhile.
	Caught time.Duration `json:"caught_ns"`
	Missed int           `json:"missed"`
	Sent   float64       `json:"sent"`
	// Link is the rate, in bytes a second, from the member that sent the follower most
	// while the follower caught up.
	Link float64 `json:"link_bytes_per_second"`
}

// Run measures all rows.
func (cfg *Away) Run(ctx context.Context) (*lab.Section, error) {
	rows, err := cfg.rows(ctx)
	return cfg.report(rows), err
}

func (cfg *Away) rows(ctx context.Context) (rows []awayRow, err error) {
	err = cfg.each(ctx, func(voters int, side Side) error {
		row, err := cfg.measure(side, voters)
		rows = append(rows, row)
		return err
	})
	return rows, err
}

const (
	awaySettle = time.Second
	awayPhase  = 500 * time.Millisecond
	present    = 2 // a follower that is not away

	// The bytes that may be under way to a follower.
	windowMessages = 256
	windowBytes    = 8 << 20
)

func (cfg *Away) measure(side Side, voters int) (awayRow, error) {
	row := awayRow{Voters: voters, Side: side.Name}
	o := network(voters, cfg.Seed, cfg.Delay)
	rate := cfg.rate(voters, cfg.Load)
	// Logs keep what the follower misses, or it would get a snapshot.
	missed := int(rate * cfg.Away.Seconds())
	o.Keep, o.KeepBytes = 2*missed+1000, 2*(missed+1000)*cfg.Size
	o.Configure = func(_ uint64, c *raft.Config) {
		c.MaxInflightMsgs, c.MaxInflightBytes = windowMessages, windowBytes
		side.Configure(c)
	}
	c, err := elected(o)
	if err != nil {
		return row, err
	}
	if err := c.Run(c.Now() + awaySettle); err != nil {
		return row, err
	}
	load, err := c.StartLoad(vnet.LoadOptions{Rate: rate, Sizes: []int{cfg.Size}, Seed: cfg.Seed})
	if err != nil {
		return row, err
	}
	seen := 0
	during := func(run func() error) (latency, error) {
		err := run()
		calls := load.Calls()[seen:]
		seen += len(calls)
		return latencyOf(calls), err
	}
	pass := func(d time.Duration) func() error { return func() error { return c.Run(c.Now() + d) } }
	if row.Before, err = during(pass(awayPhase)); err != nil {
		return row, err
	}
	away := uint64(voters)
	c.Kill(away)
	if row.Lost, err = during(pass(awayPhase)); err != nil {
		return row, err
	}
	if _, err = during(pass(cfg.Away - awayPhase)); err != nil {
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
		return c.Run(c.Now() + awayPhase)
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
