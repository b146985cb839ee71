// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/netlab"
)

// Cell is what was measured of a side under a load, by rounds.
type Cell struct {
	Side string `json:"side"`
	// PutsPerS are answered calls a second, P50 and P99 their latencies in
	// milliseconds.
	PutsPerS []float64 `json:"puts_per_s"`
	P50      []float64 `json:"p50_ms"`
	P99      []float64 `json:"p99_ms"`
	// CPU is the processor time of all members for a put, in milliseconds, and
	// Disk what all members gave to their disks for a byte of value, until they
	// rested.
	CPU  []float64 `json:"cpu_ms_per_put"`
	Disk []float64 `json:"disk_bytes_per_byte"`
	// LeaderSent and AllSent are what the leader and all members sent to members for
	// a byte of value, with what it is wrapped in.
	LeaderSent []float64 `json:"leader_sent_bytes_per_byte"`
	AllSent    []float64 `json:"all_sent_bytes_per_byte"`

	// Others is the share of the machine's processors, 0 to 1, that was used by
	// others than members and clients.
	Others []float64 `json:"others_cpu_share"`

	Puts   int `json:"puts"`
	Failed int `json:"failed"`
	// Restless counts measurements that were thrown away as the leader changed.
	Restless int `json:"restless"`
}

// Row is all sides under a load.
type Row struct {
	Load
	Cells []*Cell `json:"cells"`
}

// Run measures the loads that are wanted. It hands rows to done as soon as they are
// complete, those of one size together, and begins no more of them after until, unless that is zero.
func Run(ctx context.Context, cfg Config, wanted func(Load) bool, done func([]*Row) error, until time.Time) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	for _, members := range cfg.Members {
		for _, link := range cfg.Links {
			if err := runSetting(ctx, cfg, members, link, wanted, done, until); err != nil {
				return err
			}
		}
	}
	return nil
}

// ErrStopped is returned when there was no time for all rows.
var ErrStopped = errors.New("the time is over, and rows are missing")

// runSetting measures all loads over one network.
func runSetting(ctx context.Context, cfg Config, members int, link int64, wanted func(Load) bool, done func([]*Row) error, until time.Time) (err error) {
	var net *netlab.Network
	defer func() {
		if net != nil {
			err = errors.Join(err, net.Close())
		}
	}()
	for _, size := range cfg.Sizes {
		var rows []*Row
		for _, clients := range cfg.Clients {
			if l := (Load{members, link, size, clients}); wanted(l) {
				rows = append(rows, newRow(cfg, l))
			}
		}
		if len(rows) == 0 {
			continue
		}
		if !until.IsZero() && time.Now().After(until) {
			return ErrStopped
		}
		if net == nil {
			if net, err = netlab.New(netlab.Config{Hosts: members, Rate: link, Kind: cfg.Network}); err != nil {
				return err
			}
		}
		if err := runSize(ctx, cfg, net, rows); err != nil {
			return err
		}
		if err := done(rows); err != nil {
			return err
		}
	}
	return nil
}

func newRow(cfg Config, l Load) *Row {
	r := &Row{Load: l}
	for _, s := range cfg.Sides {
		r.Cells = append(r.Cells, &Cell{Side: s.Name})
	}
	return r
}

// runSize measures all sides, in turns, under loads of one size.
func runSize(ctx context.Context, cfg Config, net *netlab.Network, rows []*Row) error {
	for round := range cfg.Rounds {
		for i := range cfg.Sides {
			i = (i + round) % len(cfg.Sides)
			if err := runSide(ctx, cfg, net, rows, i, uint64(round)); err != nil {
				return fmt.Errorf("%s, side %s: %w", rows[0].Load, cfg.Sides[i].Name, err)
			}
		}
	}
	for _, r := range rows {
		for _, c := range r.Cells {
			cfg.Progress(fmt.Sprintf("%s: %-5s %8.1f puts/s  p50 %8.2f ms  p99 %8.2f ms  CPU %7.3f ms/put  disk %5.2f, sent %5.2f by the leader, %5.2f by all  %d failed",
				r.Load, c.Side, median(c.PutsPerS), median(c.P50), median(c.P99), median(c.CPU), median(c.Disk), median(c.LeaderSent), median(c.AllSent), c.Failed))
		}
	}
	return nil
}

// runSide starts a cluster and puts one round's load of each row on it.
func runSide(ctx context.Context, cfg Config, net *netlab.Network, rows []*Row, side int, seed uint64) error {
	dir := filepath.Join(cfg.Dir, cfg.Sides[side].Name)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	c, err := start(ctx, cfg.Sides[side], net, dir)
	if err != nil {
		return err
	}
	size := rows[0].Size
	err = warmUp(ctx, c, size)
	for i, r := range rows {
		if err == nil {
			l := &load{prefix: fmt.Sprintf("bench%d", i), size: size, seed: seed}
			err = measure(ctx, cfg, c, l, r.Cells[side], r.Clients)
		}
	}
	if err = errors.Join(err, c.stop()); err != nil {
		return err
	}
	if err := c.checkLogs(size >= cfg.Coded); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// warmUp lets connections find their pace, and members learn of each other.
func warmUp(ctx context.Context, c *cluster, size int) error {
	leader, _, err := c.leader(ctx)
	if err != nil {
		return err
	}
	l := &load{prefix: "warm", size: size}
	return errors.Join(l.run(ctx, leader, 1, 300*time.Millisecond), c.settle(ctx))
}

// attempts is how often a measurement is made, at most, because the leader changed
// in the middle.
const attempts = 5

var errRestless = errors.New("the leader changed in each attempt")

// measure adds one measurement to a cell, and reads all of it back.
func measure(ctx context.Context, cfg Config, c *cluster, l *load, cell *Cell, clients int) error {
	for attempt := range attempts {
		l := &load{prefix: fmt.Sprintf("%s.%d", l.prefix, attempt), size: l.size, seed: l.seed}
		leader, term, err := c.leader(ctx)
		if err != nil {
			return err
		}
		before, err := c.read(leader)
		if err != nil {
			return err
		}
		if err := l.run(ctx, leader, clients, cfg.Time); err != nil {
			return err
		}
		if err := c.settle(ctx); err != nil {
			return err
		}
		after, err := c.read(leader)
		if err != nil {
			return err
		}
		if err := l.verify(ctx, c); err != nil {
			return err
		}
		_, now, err := c.leader(ctx)
		if err != nil {
			return err
		}
		if len(l.latency) == 0 {
			return fmt.Errorf("no call of %d was answered: %w", l.failed, l.err)
		}
		cell.Failed += l.failed
		if now != term {
			cell.Restless++
			continue
		}
		used, puts := after.Sub(before.Usage), float64(len(l.latency))
		perByte := func(bytes uint64) float64 { return float64(bytes) / puts / float64(l.size) }
		cell.Puts += len(l.latency)
		cell.PutsPerS = append(cell.PutsPerS, puts/l.elapsed.Seconds())
		cell.P50 = append(cell.P50, milliseconds(l.quantile(50)))
		cell.P99 = append(cell.P99, milliseconds(l.quantile(99)))
		cell.CPU = append(cell.CPU, milliseconds(used.CPU)/puts)
		cell.Disk = append(cell.Disk, perByte(used.WriteBytes))
		cell.LeaderSent = append(cell.LeaderSent, perByte(after.leaderSent-before.leaderSent))
		cell.AllSent = append(cell.AllSent, perByte(after.allSent-before.allSent))
		cell.Others = append(cell.Others, after.machine.others(before.machine, used.CPU))
		return nil
	}
	return errRestless
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median returns the middle of some figures, of two the mean.
func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}
