// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	outside "github.com/weftraft/weft/cmd/weftbench/internal/load"
	"github.com/weftraft/weft/internal/lab"
)

// bench says what to measure.
type bench struct {
	Sides           []string
	Nodes           []int
	Outside, Inside []string // loads, such as 1024x64
	Rounds          int
	Time            time.Duration

	dir      string
	progress io.Writer
}

// row is a load.
type row struct {
	Nodes, Size, Clients int
	Inside               bool // clients are in the leader's process
}

// cell is what was measured of a side under a load, by round.
type cell struct {
	Side                     string
	Row                      row
	PerSecond, P50, P99, CPU lab.Rounds // CPU: microseconds of all nodes for a call
}

// report is the outcome.
type report struct {
	bench bench
	Cells []*cell // all sides of a row, then those of the next
}

// rows returns the loads of a size of cluster, or an error that names a mistake.
func (c *bench) rows(nodes int) (all []row, err error) {
	for i, loads := range [][]string{c.Outside, c.Inside} {
		for _, l := range loads {
			size, clients, ok := strings.Cut(l, "x")
			s, err := strconv.Atoi(size)
			n, err2 := strconv.Atoi(clients)
			if !ok || errors.Join(err, err2) != nil || s < 1 || s > 4<<20 || n < 1 || n > 10_000 {
				return nil, fmt.Errorf("--%s: %q, want SIZExCLIENTS of 1 to 4194304 bytes and 1 to 10000 clients", []string{"outside", "inside"}[i], l)
			}
			all = append(all, row{nodes, s, n, i == 1})
		}
	}
	return all, nil
}

// chosen returns the sides asked for.
func (c *bench) chosen() (all []side, err error) {
	for _, name := range c.Sides {
		i := slices.IndexFunc(sides, func(s side) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--sides: %q, want some of %s", name, names())
		}
		all = append(all, sides[i])
	}
	return all, nil
}

func (c *bench) run(ctx context.Context) (*report, error) {
	chosen, err := c.chosen()
	if err != nil {
		return nil, err
	}
	if c.Rounds < 1 || c.Time < 100*time.Millisecond {
		return nil, fmt.Errorf("--rounds, --time: %d, %v, want 1 or more, 100ms or more", c.Rounds, c.Time)
	}
	r := &report{bench: *c}
	for _, nodes := range c.Nodes {
		if nodes < 1 || nodes > 9 {
			return nil, fmt.Errorf("--nodes: %d, want 1 to 9", nodes)
		}
		rows, err := c.rows(nodes)
		if err != nil {
			return nil, err
		}
		if err := r.measureAll(ctx, chosen, nodes, rows); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// group is the cluster of a side.
type group struct {
	*lab.Cluster
	leader  *lab.Node
	address string // of the leader's gRPC
	calls   uint64 // acknowledged, from the start
}

// program is this program as one of [lab.Cluster].
type program struct{ hostnode.Program }

func (program) Status(ctx context.Context, n *lab.Node) (lab.Status, error) {
	s, err := ask(ctx, n)
	return lab.Status{ID: s.ID, Leader: s.Leader, Term: s.Term}, err
}

func ask(ctx context.Context, n *lab.Node) (s status, err error) {
	err = lab.Ask(ctx, http.MethodGet, n, "/status", "", &s)
	return s, err
}

// measureAll puts all loads on clusters of a size.
func (r *report) measureAll(ctx context.Context, chosen []side, nodes int, rows []row) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var groups []*group
	defer func() {
		for _, g := range groups {
			err = errors.Join(err, g.Close())
		}
	}()
	for _, s := range chosen {
		name := fmt.Sprintf("%s-%d", s.name, nodes)
		p := program{hostnode.Program{Serve: lab.Serve{Program: []string{self, "serve"}, Args: []string{"--side", s.name}}}}
		c, err := lab.StartCluster(ctx, lab.ClusterConfig{Name: name, Program: p, Nodes: nodes, Dir: filepath.Join(r.bench.dir, name)})
		if err != nil {
			return err
		}
		g := &group{Cluster: c}
		groups = append(groups, g)
		if err := g.find(ctx); err != nil {
			return err
		}
	}
	warm := row{nodes, 16 << 10, 16, false}
	for _, g := range groups {
		if err := g.measure(ctx, warm, r.bench.Time, 0, &cell{}); err != nil {
			return err
		}
	}
	for _, row := range rows {
		cells := make([]*cell, len(chosen))
		for i, s := range chosen {
			cells[i] = &cell{Side: s.name, Row: row}
		}
		err := lab.Turns(r.bench.Rounds, len(groups), func(round, i int) error {
			if err := groups[i].measure(ctx, row, r.bench.Time, round+1, cells[i]); err != nil {
				return fmt.Errorf("%s, %s: %w", groups[i].Name, row, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, c := range cells {
			_, _ = fmt.Fprintf(r.bench.progress, "%-10s %s: %s calls/s, p99 %.2f ms, CPU %.0f us\n", c.Side, row, c.PerSecond.Text("%.0f"), c.P99.Median(), c.CPU.Median()) // a courtesy
		}
		r.Cells = append(r.Cells, cells...)
	}
	return nil
}

// find finds the leader, and has it listen for clients.
func (g *group) find(ctx context.Context) error {
	leader, _, err := g.Lead(ctx)
	if err != nil || leader == g.leader {
		return err
	}
	g.leader = leader
	return lab.Ask(ctx, http.MethodPost, leader, "/listen", "", &g.address)
}

// measure adds a round to a cell. It ends when the nodes rest and have applied all that was acknowledged.
func (g *group) measure(ctx context.Context, row row, d time.Duration, seed int, c *cell) error {
	if err := g.find(ctx); err != nil {
		return err
	}
	before, err := g.Usage()
	if err != nil {
		return err
	}
	var done inside
	if row.Inside {
		err = lab.Ask(ctx, http.MethodPost, g.leader, fmt.Sprintf("/load?clients=%d&size=%d&millis=%d", row.Clients, row.Size, d.Milliseconds()), "", &done)
	} else {
		done, err = g.outside(ctx, row, d, seed)
	}
	if err != nil {
		return err
	}
	g.calls += uint64(done.Calls)
	if err := g.Settle(ctx, 3*time.Second); err != nil {
		return err
	}
	after, err := g.Usage()
	if err != nil {
		return err
	}
	c.PerSecond = append(c.PerSecond, float64(done.Calls)/done.Elapsed.Seconds())
	c.P50, c.P99 = append(c.P50, done.P50), append(c.P99, done.P99)
	c.CPU = append(c.CPU, float64(after.Sub(before).CPU.Microseconds())/float64(done.Calls))
	return g.Wait(ctx, "all nodes to apply what was acknowledged", func(ctx context.Context) error {
		for _, n := range g.Nodes {
			if s, err := ask(ctx, n); err != nil || s.Applied < g.calls {
				return errors.Join(err, fmt.Errorf("node %d: %d commands applied, %d acknowledged", n.ID, s.Applied, g.calls))
			}
		}
		return nil
	})
}

// outside has clients in this process call the leader.
func (g *group) outside(ctx context.Context, row row, d time.Duration, seed int) (inside, error) {
	return insideOf(outside.Run(ctx, outside.Plan{
		Addresses: []string{g.address}, Clients: row.Clients, Size: row.Size, Keys: outside.KeysFor(row.Size), Duration: d, Timeout: callTime, Seed: uint64(seed),
	}))
}

// String names a load.
func (r row) String() string {
	where := "by gRPC"
	if r.Inside {
		where = "in the leader"
	}
	return fmt.Sprintf("%d nodes, %s x %d, %s", r.Nodes, lab.Bytes(r.Size), r.Clients, where)
}
