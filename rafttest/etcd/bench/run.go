// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Cell holds the measurements of a side under a load.
type Cell struct {
	Side    string   `json:"side"`
	Samples []Sample `json:"samples"` // one a round
	// Failed counts puts that failed, Restless measurements that were dropped because the leader
	// changed, and Disturbed measurements that were dropped because the machine was busy.
	Failed    int `json:"failed"`
	Restless  int `json:"restless"`
	Disturbed int `json:"disturbed"`
}

// median returns the median of a figure over all rounds.
func (c *Cell) median(of func(Sample) float64) float64 {
	return lab.RoundsOf(c.Samples, of).Median()
}

// Row is the cells of all sides under a load.
type Row struct {
	Load
	Cells []*Cell `json:"cells"`
}

// Run measures the loads that wanted selects. The rows of a size are passed to done together, as
// soon as all of them are complete. After until, unless until is zero, Run begins no further rows.
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

// runSetting measures all loads over a single network.
func runSetting(ctx context.Context, cfg Config, members int, link int64, wanted func(Load) bool, done func([]*Row) error, until time.Time) (err error) {
	var net *lab.Network
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
			if net, err = lab.NewNetwork(lab.NetworkConfig{Hosts: members, Rate: link, Kind: cfg.Network}); err != nil {
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

// runSize measures all sides, in turns, under loads of the same size.
func runSize(ctx context.Context, cfg Config, net *lab.Network, rows []*Row) error {
	err := lab.Turns(cfg.Rounds, len(cfg.Sides), func(round, i int) error {
		if err := runSide(ctx, cfg, net, rows, i, uint64(round)); err != nil {
			return fmt.Errorf("%s, side %s: %w", rows[0].Load, cfg.Sides[i].Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		for _, c := range r.Cells {
			cfg.Progress(fmt.Sprintf("%s: %-5s %s; %d failed", r.Load, c.Side, c.describe(), c.Failed))
		}
	}
	return nil
}

// runSide starts a cluster and puts a round's load of each row on the cluster.
func runSide(ctx context.Context, cfg Config, net *lab.Network, rows []*Row, side int, seed uint64) error {
	dir := filepath.Join(cfg.Dir, cfg.Sides[side].Name)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	c, err := start(ctx, cfg.Sides[side], net, dir)
	if err != nil {
		return err
	}
	for i, r := range rows {
		if err = runRow(ctx, cfg, c, r, r.Cells[side], fmt.Sprintf("bench%d", i), seed); err != nil {
			break
		}
	}
	if err = errors.Join(err, c.stop()); err != nil {
		return err
	}
	if err := c.checkLogs(rows[0].Size >= cfg.Coded); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// runRow puts a row's load on a cluster: first for a time that does not count, so that connections and policies find their pace.
func runRow(ctx context.Context, cfg Config, c *cluster, r *Row, cell *Cell, prefix string, seed uint64) error {
	leader, _, err := c.leader(ctx)
	if err != nil {
		return err
	}
	warm := &load{prefix: prefix + ".warm", size: r.Size}
	if err := errors.Join(warm.run(ctx, leader, r.Clients, cfg.Warm), c.Settle(ctx, settleLimit)); err != nil {
		return err
	}
	return cell.measure(cfg.Others, func(attempt int) (Sample, bool, error) {
		l := &load{prefix: fmt.Sprintf("%s.%d", prefix, attempt), size: r.Size, seed: seed}
		s, restless, err := sample(ctx, c, l, r.Clients, cfg.Time)
		if l.result != nil {
			cell.Failed += int(l.result.Failed)
		}
		return s, restless, err
	})
}
