// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package codingbench compares coded replication with full copies on real
// processes and sockets.
package codingbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/load"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/rawnode"
)

// The sides: full copies come first, as what the other is compared with.
const (
	full  = "full"
	coded = "coded"
)

var sides = []struct {
	name string
	args []string
}{
	{full, []string{"--coding", "off"}},
	// The threshold is low, so that every size is coded: the bench looks for the size from
	// which coding pays.
	{coded, []string{"--coding", "on", "--coding-threshold", "1"}},
}

// Config says what to measure. The sides are measured in turn in each round, and
// each round begins with the other one.
type Config struct {
	Kvdemo  string // the nodes' program
	Nodes   []int
	Down    int   // followers killed before the first load
	Egress  []int // bytes a second that leave a node, 0: no bound
	Sizes   []int
	Clients []int
	Rounds  int
	Warm    time.Duration // of each side under each load, before the first round
	Time    time.Duration // of one measurement
	Noise   bool          // both sides send full copies: what differs, differs by chance

	Dir      string    // for the nodes' data
	Progress io.Writer // told of each row
}

// Cell is the measurement of a side under a load, over all rounds. Bytes are bytes
// between nodes.
type Cell struct {
	Side    string `json:"side"`
	Nodes   int    `json:"nodes"`
	Down    int    `json:"nodes_down,omitempty"`
	Egress  int    `json:"egress_bytes_per_s"`
	Size    int    `json:"size"`
	Clients int    `json:"clients"`

	// Sums of all rounds: calls and their latencies, time of processors, bytes between nodes.
	Calls       int64         `json:"calls"`
	Failed      int64         `json:"failed"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	P50         float64       `json:"p50_ms"`
	P99         float64       `json:"p99_ms"`
	LeaderCPU   time.Duration `json:"leader_cpu_ns"`
	AllCPU      time.Duration `json:"all_cpu_ns"`
	LeaderBytes uint64        `json:"leader_sent_bytes"`
	AllBytes    uint64        `json:"all_sent_bytes"`

	// PerSecond is the calls answered in a second of each round.
	PerSecond lab.Rounds `json:"calls_per_s_by_round"`

	latency lab.Histogram
}

// perCall returns CPU time for a call, in microseconds.
func (c *Cell) perCall(cpu time.Duration) float64 {
	return float64(cpu.Microseconds()) / float64(max(c.Calls, 1))
}

// perByte returns bytes for a byte of payload.
func (c *Cell) perByte(sent uint64) float64 {
	return float64(sent) / float64(max(c.Calls, 1)) / float64(c.Size)
}

// Sent is what the leader sent for a byte of payload.
func (c *Cell) Sent() float64 { return c.perByte(c.LeaderBytes) }

// Run measures everything. Cells come in pairs, the sides of one load. After an error they are those measured before it.
func Run(ctx context.Context, cfg Config) (all []*Cell, err error) {
	for _, nodes := range cfg.Nodes {
		for _, egress := range cfg.Egress {
			cells, err := runSetting(ctx, cfg, nodes, egress)
			all = append(all, cells...)
			if err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// runSetting measures all loads on clusters of one kind.
func runSetting(ctx context.Context, cfg Config, nodes, egress int) (all []*Cell, err error) {
	var clusters []*cluster.Cluster
	defer func() {
		for _, c := range clusters {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, s := range sides {
		if cfg.Noise {
			s.args = sides[0].args
		}
		name := fmt.Sprintf("%s-%d-%d", s.name, nodes, egress)
		c, err := cluster.Start(ctx, cluster.Config{
			Name: name, Nodes: nodes, Dir: filepath.Join(cfg.Dir, name),
			Serve: lab.Serve{Program: []string{cfg.Kvdemo, "serve"}, Args: append([]string{"--egress", fmt.Sprint(egress)}, s.args...)},
		})
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, c)
		if err := killFollowers(ctx, c, cfg.Down); err != nil {
			return nil, err
		}
	}
	for _, size := range cfg.Sizes {
		for _, clients := range cfg.Clients {
			row := make([]*Cell, len(sides))
			for i, s := range sides {
				row[i] = &Cell{Side: s.name, Nodes: nodes, Down: cfg.Down, Egress: egress, Size: size, Clients: clients}
			}
			for i, c := range clusters {
				if err := warmUp(ctx, c, row[i], cfg.Warm); err != nil {
					return all, err
				}
			}
			err := lab.Turns(cfg.Rounds, len(sides), func(round, i int) error {
				_, err := lab.Again(func() (_ struct{}, err error) {
					return struct{}{}, measure(ctx, cfg, clusters[i], uint64(round), row[i])
				})
				if err != nil {
					err = fmt.Errorf("%s, %d clients, %d bytes: %w", clusters[i].Name, clients, size, err)
				}
				return err
			})
			if err != nil {
				return all, err
			}
			for _, c := range row {
				c.P50, c.P99 = c.latency.Millis(0.5), c.latency.Millis(0.99)
				_, _ = fmt.Fprintln(cfg.Progress, c) // progress is a courtesy
			}
			all = append(all, row...)
		}
	}
	return all, nil
}

// String is a line of progress.
func (c *Cell) String() string {
	return fmt.Sprintf("%d nodes, %s: %8s x %2d  %-5s  %7.0f/s  p50 %7.2f ms  p99 %8.2f ms  CPU leader %6.0f us, all %6.0f us  sent leader %5.2f, all %5.2f  %d failed",
		c.Nodes, lab.Rate(8*int64(c.Egress)), lab.Bytes(c.Size), c.Clients, c.Side, c.PerSecond.Median(), c.P50, c.P99,
		c.perCall(c.LeaderCPU), c.perCall(c.AllCPU), c.perByte(c.LeaderBytes), c.perByte(c.AllBytes), c.Failed)
}

// killFollowers kills so many followers, the last ones.
func killFollowers(ctx context.Context, c *cluster.Cluster, count int) error {
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return err
	}
	for _, n := range slices.Backward(c.Nodes) {
		if n == leader || count == 0 {
			continue
		}
		count--
		err = errors.Join(err, n.Kill())
	}
	return err
}

// warmUp lets policies and connections find their pace under a load.
func warmUp(ctx context.Context, c *cluster.Cluster, cell *Cell, d time.Duration) error {
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return err
	}
	_, err = load.Run(ctx, plan(leader, cell, 0, d))
	return errors.Join(err, c.Settle(ctx, 5*time.Second))
}

// plan lets all clients call the leader, because calls passed on by followers would
// be counted as the followers' bytes.
func plan(leader *cluster.Node, c *Cell, seed uint64, d time.Duration) load.Plan {
	return load.Plan{
		Addresses: []string{leader.Client}, Clients: c.Clients, Size: c.Size, Keys: load.KeysFor(c.Size),
		Duration: d, Timeout: 30 * time.Second, Seed: seed,
	}
}

// measure adds one measurement to a cell. The measurement ends when the nodes rest,
// so that work put off by the nodes counts, too.
func measure(ctx context.Context, cfg Config, c *cluster.Cluster, seed uint64, cell *Cell) error {
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return err
	}
	before, err := read(ctx, c, leader)
	if err != nil {
		return err
	}
	r, err := load.Run(ctx, plan(leader, cell, seed, cfg.Time))
	if err != nil {
		return err
	}
	if err := c.Settle(ctx, 3*time.Second); err != nil {
		return err
	}
	after, err := read(ctx, c, leader)
	if err != nil {
		return err
	}
	if after.term != before.term {
		return fmt.Errorf("the leader changed, term %d was %d: %w", after.term, before.term, lab.ErrDisturbed)
	}
	if r.Failed > 0 {
		_, _ = fmt.Fprintf(cfg.Progress, "%s: %d calls failed, the last with: %v\n", c.Name, r.Failed, r.Err)
		if strings.Contains(r.Err.Error(), rawnode.ErrStalled.Error()) {
			return fmt.Errorf("the leader's disk was late: %w", lab.ErrDisturbed)
		}
	}
	cell.Calls += r.Calls
	cell.Failed += r.Failed
	cell.Elapsed += r.Elapsed
	cell.PerSecond = append(cell.PerSecond, r.PerSecond())
	cell.LeaderCPU += after.leader.CPU - before.leader.CPU
	cell.AllCPU += after.all.CPU - before.all.CPU
	cell.LeaderBytes += after.leaderBytes - before.leaderBytes
	cell.AllBytes += after.allBytes - before.allBytes
	cell.latency.Merge(&r.Latency)
	return nil
}

// reading is the processor time and the bytes of the nodes since their start.
type reading struct {
	term                  uint64
	leader, all           process.Usage
	leaderBytes, allBytes uint64
}

func read(ctx context.Context, c *cluster.Cluster, leader *cluster.Node) (r reading, err error) {
	err = c.Wait(ctx, "word of all nodes", func(all []*kvpb.StatusResponse) bool {
		r.leaderBytes, r.allBytes = 0, 0
		for i, s := range all {
			if s == nil && c.Nodes[i].Up() {
				return false
			}
			for _, link := range s.GetLinks() {
				r.allBytes += link.GetSentBytes()
				if c.Nodes[i] == leader {
					r.leaderBytes += link.GetSentBytes()
				}
			}
			r.term = max(r.term, s.GetTerm())
		}
		return true
	})
	if err != nil {
		return r, err
	}
	if r.leader, err = leader.Usage(); err != nil {
		return r, err
	}
	r.all, err = c.Usage()
	return r, err
}
