// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package bytesbench counts what a leader sends, and what all nodes send, for a
// byte of committed payload: for each way of replication, number of members and
// number of failures.
//
// Ways that the core knows run in it, over a simulated network; the others are
// worked out from what their assignment puts into each message.
package bytesbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/ecraft/papers"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Config says what to measure.
type Config struct {
	// Voters are the sizes of the groups, Sizes those of the payloads in bytes.
	Voters, Sizes []int
	// Bytes is how much payload a cell commits, between MinCalls and MaxCalls
	// proposals.
	Bytes, MinCalls, MaxCalls int
	// Sides run in the core. The first sends full copies.
	Sides []virtual.Side
	// Models are worked out beside them.
	Models []papers.SetPolicy
	// Seed feeds the runs.
	Seed uint64
	// Progress hears of each row.
	Progress io.Writer
}

// Cell is what one way of replication sends.
type Cell struct {
	Voters int    `json:"voters"`
	Failed int    `json:"failed"`
	Size   int    `json:"size"`
	Side   string `json:"side"`
	// Model says that it was worked out and not run in the core.
	Model bool `json:"model"`
	// Leader and Network are bytes sent by the leader and by all nodes, for a
	// byte of payload; Least is the least a leader can send if the entry is to
	// survive the failures of f nodes.
	Leader  float64 `json:"leader"`
	Network float64 `json:"network"`
	Least   float64 `json:"least"`
	// Kinds is Network by the kind of bytes.
	Kinds map[string]float64 `json:"kinds,omitempty"`
	Calls int                `json:"calls,omitempty"`
	// Stuck says that nothing commits with so many failures.
	Stuck bool `json:"stuck,omitempty"`

	// control is what of Leader is for control messages.
	control float64
}

// Least returns the least bytes that a leader can send for a byte of payload:
// all that are healthy acknowledge, and f of them may then fail. Where the number
// of voters is even, any half must do, so that the group can change by one.
func Least(voters, failed int) float64 {
	healthy := voters - failed
	return float64(healthy-1) / float64(healthy-voters/2)
}

// Run measures all cells.
func Run(ctx context.Context, cfg Config) ([]Cell, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	var cells []Cell
	for _, n := range cfg.Voters {
		for failed := 0; failed <= (n-1)/2; failed++ {
			for _, size := range cfg.Sizes {
				row, err := cfg.row(ctx, n, failed, size)
				if err != nil {
					return nil, err
				}
				cells = append(cells, row...)
				fmt.Fprintf(cfg.Progress, "N=%d, %d failed, %s\n", n, failed, lab.Bytes(size))
			}
		}
	}
	return cells, nil
}

// row measures all sides, then works out the models.
func (cfg *Config) row(ctx context.Context, voters, failed, size int) (cells []Cell, err error) {
	for _, side := range cfg.Sides {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cell, err := cfg.measure(side, voters, failed, size)
		if err != nil {
			return nil, fmt.Errorf("%d voters, %d failed, %s, %s: %w", voters, failed, lab.Bytes(size), side.Name, err)
		}
		cells = append(cells, cell)
	}
	full := cells[0]
	for _, m := range cfg.Models {
		cells = append(cells, model(m, full))
	}
	return cells, nil
}

func (cfg *Config) validate() error {
	var errs []error
	for _, n := range cfg.Voters {
		if n < 3 || n > 15 {
			errs = append(errs, fmt.Errorf("--voters: %d, want 3 to 15", n))
		}
	}
	for _, s := range cfg.Sizes {
		if s < 8 || s > 64<<20 {
			errs = append(errs, fmt.Errorf("--sizes: %d bytes, want 8 to %d", s, 64<<20))
		}
	}
	if cfg.Bytes < 0 {
		errs = append(errs, fmt.Errorf("--bytes: %d, want 0 or more", cfg.Bytes))
	}
	if cfg.MinCalls < 1 || cfg.MaxCalls < 1 {
		errs = append(errs, fmt.Errorf("--min: %d, --max: %d, want 1 or more", cfg.MinCalls, cfg.MaxCalls))
	}
	return errors.Join(errs...)
}

// The times, in virtual time, of a cell.
const (
	tick    = 100 * time.Millisecond
	settle  = 50 * tick              // until failures are known
	warm    = 100 * time.Millisecond // under load
	patient = time.Hour
)

// measure runs one way of replication in a steady state under load. Clients are
// closed loops, so as many proposals are under way at the end as at the begin.
func (cfg *Config) measure(side virtual.Side, voters, failed, size int) (Cell, error) {
	cell := Cell{Voters: voters, Failed: failed, Size: size, Side: side.Name, Least: Least(voters, failed)}
	o := virtual.LAN(voters, cfg.Seed)
	// Queues are longer than the ticks of the other commands.
	o.Tick = tick
	side.Use(&o)
	c, err := vnet.New(o)
	if err != nil {
		return cell, err
	}
	if err := c.Elect(1); err != nil {
		return cell, err
	}
	for i := range failed {
		c.Kill(uint64(voters - i))
	}
	if err := c.Run(c.Now() + settle); err != nil {
		return cell, err
	}
	load, err := c.StartLoad(vnet.LoadOptions{Clients: min(max((4<<20)/size, 8), 64), Sizes: []int{size}, Seed: cfg.Seed})
	if err != nil {
		return cell, err
	}
	if err := c.Run(c.Now() + warm); err != nil {
		return cell, err
	}
	calls := min(max(cfg.Bytes/size, cfg.MinCalls), cfg.MaxCalls)
	upTo := func(n int) error {
		done, err := c.RunUntil(c.Now()+patient, func() bool { return len(load.Calls()) >= n })
		if err == nil && !done {
			err = fmt.Errorf("%d proposals were done within %v, want %d", len(load.Calls()), patient, n)
		}
		return err
	}
	if err := upTo(len(load.Calls()) + calls/4); err != nil {
		return cell, err
	}
	leader, network, begun := c.SentBy(1), c.SentByAll(), len(load.Calls())
	if err := upTo(begun + calls); err != nil {
		return cell, err
	}
	if c.Leader() != 1 {
		return cell, fmt.Errorf("node %d leads at the end, not node 1", c.Leader())
	}
	cell.Calls = len(load.Calls()) - begun
	payload := float64(cell.Calls * size)
	leader, network = c.SentBy(1).Minus(leader), c.SentByAll().Minus(network)
	cell.Leader, cell.Network = float64(leader.Total())/payload, float64(network.Total())/payload
	cell.control = float64(leader.Bytes[vnet.Control]) / payload
	cell.Kinds = map[string]float64{}
	for k, b := range network.Bytes {
		cell.Kinds[vnet.Kind(k).String()] = float64(b) / payload
	}
	return cell, nil
}
