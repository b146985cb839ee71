// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"fmt"
	"time"

	"github.com/weftraft/weft/ecraft/papers"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Bytes counts what a leader sends, and what all nodes send, for a byte of committed payload: for
// each way of replication, number of members and number of failures.
//
// Ways of the core run in the core, over a simulated network; the bytes of other ways are worked out
// from the units that their assignment puts into each message.
type Bytes struct {
	Group
	// Sizes are those of the payloads in bytes, in place of Size.
	Sizes []int
	// Bytes is how much payload a cell commits, between MinCalls and MaxCalls
	// proposals.
	Bytes, MinCalls, MaxCalls int
	// Learners are beside the voters in each group.
	Learners int
	// Models are worked out beside the sides, of which the first sends full copies.
	Models []papers.SetPolicy
}

// cell is what one way of replication sends.
type cell struct {
	Voters int    `json:"voters"`
	Failed int    `json:"failed"`
	Size   int    `json:"size"`
	Side   string `json:"side"`
	// Model says that the figures were worked out and not run in the core.
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

// least returns the least number of bytes that a leader can send for a byte of
// payload, if all healthy members acknowledge and any f of them may then fail. With an
// even number of voters any half must suffice, so that the group can change by one.
func least(voters, failed int) float64 {
	healthy := voters - failed
	return float64(healthy-1) / float64(healthy-voters/2)
}

// Run measures all cells.
func (cfg *Bytes) Run(ctx context.Context) (*lab.Section, error) {
	cells, err := cfg.cells(ctx)
	return reportBytes(cells), err
}

func (cfg *Bytes) cells(ctx context.Context) (cells []cell, err error) {
	for _, n := range cfg.Voters {
		for failed := 0; failed <= (n-1)/2; failed++ {
			for _, size := range cfg.Sizes {
				err := cfg.step(ctx, fmt.Sprintf("N=%d, %d failed, %s", n, failed, lab.Bytes(size)), func() error {
					row, err := cfg.row(ctx, n, failed, size)
					cells = append(cells, row...)
					return err
				})
				if err != nil {
					return nil, err
				}
			}
		}
	}
	return cells, nil
}

// row measures all sides, then works out the models.
func (cfg *Bytes) row(ctx context.Context, voters, failed, size int) (cells []cell, err error) {
	for _, side := range cfg.Sides {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cell, err := cfg.measure(side, voters, failed, size)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", side.Name, err)
		}
		cells = append(cells, cell)
	}
	for _, m := range cfg.Models {
		cells = append(cells, model(m, cells[0]))
	}
	return cells, nil
}

// The times, in virtual time, of a cell.
const (
	bytesTick    = 100 * time.Millisecond
	bytesSettle  = 50 * bytesTick         // until failures are known
	bytesWarm    = 100 * time.Millisecond // under load
	bytesPatient = time.Hour
)

// measure runs one way of replication in a steady state under load. Clients are
// closed loops, so as many proposals are under way at the end as at the begin.
func (cfg *Bytes) measure(side Side, voters, failed, size int) (_ cell, err error) {
	cell := cell{Voters: voters, Failed: failed, Size: size, Side: side.Name, Least: least(voters, failed)}
	o := lan(voters, cfg.Seed)
	// Queues are longer than the ticks of the other commands.
	o.Tick = bytesTick
	addLearners(&o, cfg.Learners)
	side.Use(&o)
	c, err := elected(o)
	if err != nil {
		return cell, err
	}
	for i := range failed {
		c.Kill(uint64(voters - i))
	}
	if err := c.Run(c.Now() + bytesSettle); err != nil {
		return cell, err
	}
	load, err := c.StartLoad(vnet.LoadOptions{Clients: min(max((4<<20)/size, 8), 64), Sizes: []int{size}, Seed: cfg.Seed})
	if err != nil {
		return cell, err
	}
	if err := c.Run(c.Now() + bytesWarm); err != nil {
		return cell, err
	}
	calls := min(max(cfg.Bytes/size, cfg.MinCalls), cfg.MaxCalls)
	upTo := func(n int) error {
		done, err := c.RunUntil(c.Now()+bytesPatient, func() bool { return len(load.Calls()) >= n })
		if err == nil && !done {
			err = fmt.Errorf("%d proposals were done within %v, want %d", len(load.Calls()), bytesPatient, n)
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
