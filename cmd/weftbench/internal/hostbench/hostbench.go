// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostbench runs several implementations of a replicated store side by
// side, each as a cluster of real processes, and compares what they cost.
package hostbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/weftbench/internal/load"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/process"
)

// Side is one implementation.
type Side struct {
	Name  string
	About string
	Serve []string // command line of a node
	Args  []string
	// Responders and Dialer are those of [cluster.Config].
	Responders bool
	Dialer     func(io.Reader) (int, error)
}

// Config says what to measure. All sides are measured in turn in each round,
// and each round begins with another one.
type Config struct {
	Sides   []Side
	Clients []int
	Sizes   []int
	Rounds  int           // of the rows that matter most; the others have half as many
	Time    time.Duration // of one measurement
	Rate    float64       // of the open-loop rows, calls a second; 0: none
	Reads   bool          // also measure linearizable reads
	Kills   int           // leaders killed for each side

	DiskBytes int // payload written to measure disk bytes; 0: none
	DiskSize  int // of a value then

	// The nodes' clocks: ElectionTicks times Tick is the election timeout.
	Tick           time.Duration
	HeartbeatTicks int
	ElectionTicks  int

	Dir      string    // for the nodes' data
	Progress io.Writer // told of each row
}

// row is one load, the same for all sides.
type row struct {
	Clients int     `json:"clients"`
	Size    int     `json:"size"`
	Reads   int     `json:"reads_percent,omitempty"`
	Rate    float64 `json:"rate,omitempty"` // 0: closed-loop
}

// cell is what was measured of a side in a row, all rounds together.
type cell struct {
	Side       string        `json:"side"`
	Row        row           `json:"row"`
	Calls      int64         `json:"calls"`
	Failed     int64         `json:"failed"`
	Elapsed    time.Duration `json:"elapsed_ns"`
	CPU        time.Duration `json:"cpu_ns"`        // of all nodes
	ClientCPU  time.Duration `json:"client_cpu_ns"` // of this process
	WriteBytes uint64        `json:"write_bytes"`
	P50        float64       `json:"p50_ms"`
	P99        float64       `json:"p99_ms"`
	PerCall    lab.Rounds    `json:"cpu_us_per_call_by_round"`
	latency    lab.Histogram
	err        error
}

// CPUPerCall returns the CPU time of all nodes for one call, in microseconds.
func (c *cell) CPUPerCall() float64 {
	return float64(c.CPU.Microseconds()) / float64(max(1, c.Calls))
}

// PerSecond returns the calls answered in a second.
func (c *cell) PerSecond() float64 { return float64(c.Calls) / c.Elapsed.Seconds() }

// report is the outcome.
type report struct {
	Config Config    `json:"-"`
	Start  time.Time `json:"-"`
	Cells  []*cell   `json:"cells"`
	Gaps   []*gaps   `json:"gaps"`
	Disks  []*disk   `json:"disks"`
}

// bench is a run under way.
type bench struct {
	cfg      Config
	clusters []*cluster.Cluster
	report   *report
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.cfg.Progress, format+"\n", args...)
}

// Run measures everything.
func Run(ctx context.Context, cfg Config) (_ *lab.Section, err error) {
	b := &bench{cfg: cfg, report: &report{Config: cfg, Start: time.Now()}}
	defer func() {
		for _, c := range b.clusters {
			err = errors.Join(err, c.Close())
		}
	}()
	for i := range cfg.Sides {
		c, err := b.start(ctx, i, "")
		if err != nil {
			return nil, err
		}
		b.clusters = append(b.clusters, c)
	}
	if err := b.warmUp(ctx); err != nil {
		return nil, err
	}
	rows := b.rows()
	for i, row := range rows {
		b.say("[%v] row %d of %d: %v, %d rounds", b.elapsed(), i+1, len(rows), row, cfg.rounds(row))
		if err := b.row(ctx, row); err != nil {
			return nil, err
		}
	}
	b.say("[%v] rows done; %d kills for each side, then bytes on disk", b.elapsed(), cfg.Kills)
	if err := b.gaps(ctx); err != nil {
		return nil, err
	}
	for i, c := range b.clusters {
		if err := c.Stop(); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.Sides[i].Name, err)
		}
	}
	if err := b.disks(ctx); err != nil {
		return nil, err
	}
	return b.report.Section(), nil
}

func (b *bench) elapsed() time.Duration { return time.Since(b.report.Start).Round(time.Second) }

// rounds returns how often a row is measured. The rows of 1 KB and 64 KB, for which
// there are bounds, are measured about twice as often as the others.
func (c Config) rounds(row row) int {
	if bounded := row.Size == 1<<10 || row.Size == 64<<10; bounded && row.Rate == 0 && row.Reads == 0 {
		return c.Rounds
	}
	return (c.Rounds + 1) / 2
}

// Publishable returns an error if the report is to go into a document, and rests on too little.
func (c Config) Publishable(path string) error { return lab.Publishable(path, c.leastRounds()) }

// leastRounds returns the least number of measurements of a figure.
func (c Config) leastRounds() int {
	if c.Kills > 0 {
		return min(c.rounds(row{}), c.Kills)
	}
	return c.rounds(row{})
}

// start starts a cluster of a side, in a directory that is named by what.
func (b *bench) start(ctx context.Context, side int, what string) (*cluster.Cluster, error) {
	s, cfg := b.cfg.Sides[side], b.cfg
	args := append([]string{"--tick", cfg.Tick.String(), "--heartbeat-ticks", fmt.Sprint(cfg.HeartbeatTicks), "--election-ticks", fmt.Sprint(cfg.ElectionTicks)}, s.Args...)
	return cluster.Start(ctx, cluster.Config{
		Name: s.Name, Serve: lab.Serve{Program: s.Serve, Args: args}, Nodes: 3, Dir: filepath.Join(cfg.Dir, s.Name+what), Responders: s.Responders,
	})
}

func (b *bench) rows() (rows []row) {
	for _, size := range b.cfg.Sizes {
		for _, clients := range b.cfg.Clients {
			rows = append(rows, row{Clients: clients, Size: size})
		}
	}
	if b.cfg.Rate > 0 {
		rows = append(rows, row{Clients: 64, Size: 1 << 10, Rate: b.cfg.Rate})
	}
	if b.cfg.Reads {
		rows = append(rows, row{Clients: 16, Size: 1 << 10, Reads: 100})
	}
	return rows
}

func (b *bench) warmUp(ctx context.Context) error {
	for i, c := range b.clusters {
		if _, err := load.Run(ctx, b.plan(c.Clients(), row{Clients: 16, Size: 16 << 10}, 0, min(b.cfg.Time, 500*time.Millisecond))); err != nil {
			return fmt.Errorf("%s: %w", b.cfg.Sides[i].Name, err)
		}
		if err := c.Settle(ctx, 5*time.Second); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) plan(addresses []string, row row, round int, d time.Duration) load.Plan {
	return load.Plan{
		Addresses: addresses, Clients: row.Clients, Size: row.Size, Reads: row.Reads, Rate: row.Rate,
		Keys: load.KeysFor(row.Size), Duration: d, Timeout: 30 * time.Second, Seed: uint64(round),
	}
}

// row measures one row for all sides, round by round.
func (b *bench) row(ctx context.Context, row row) error {
	var cells []*cell
	for _, s := range b.cfg.Sides {
		cells = append(cells, &cell{Side: s.Name, Row: row})
	}
	err := lab.Turns(b.cfg.rounds(row), len(cells), func(round, side int) error {
		if err := b.measure(ctx, side, round, cells[side]); err != nil {
			return fmt.Errorf("%s, %d clients, %d bytes: %w", cells[side].Side, row.Clients, row.Size, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range cells {
		c.P50, c.P99 = c.latency.Millis(0.5), c.latency.Millis(0.99)
		b.say("%8d B  %3d clients  %-9s %8.0f/s  p50 %7.2f ms  p99 %8.2f ms  %8.0f us CPU a call (clients %5.0f)  %d failed",
			row.Size, row.Clients, c.Side, c.PerSecond(), c.P50, c.P99, c.CPUPerCall(), float64(c.ClientCPU.Microseconds())/float64(c.Calls), c.Failed)
	}
	b.report.Cells = append(b.report.Cells, cells...)
	return nil
}

// fromLeader returns the nodes' addresses, the leader's first. What a call costs
// depends on where it enters: so in each round the first client of each side asks
// the same node, counted from the leader, and the next one in the next round.
func fromLeader(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return nil, err
	}
	at, all := slices.Index(c.Nodes, leader), c.Clients()
	return slices.Concat(all[at:], all[:at]), nil
}

// measure adds one measurement to a cell. The measurement ends when the nodes rest,
// so that work put off by the nodes counts, too.
func (b *bench) measure(ctx context.Context, side, round int, cell *cell) error {
	c := b.clusters[side]
	addresses, err := fromLeader(ctx, c)
	if err != nil {
		return err
	}
	before, err := c.Usage()
	if err != nil {
		return err
	}
	ownBefore := process.OwnCPU()
	r, err := load.Run(ctx, b.plan(addresses, cell.Row, round, b.cfg.Time))
	if err != nil {
		return err
	}
	own := process.OwnCPU() - ownBefore
	if err := c.Settle(ctx, 3*time.Second); err != nil {
		return err
	}
	after, err := c.Usage()
	if err != nil {
		return err
	}
	used := after.Sub(before)
	cell.Calls += r.Calls
	cell.Failed += r.Failed
	cell.Elapsed += r.Elapsed
	cell.CPU += used.CPU
	cell.ClientCPU += own
	cell.WriteBytes += used.WriteBytes
	cell.PerCall = append(cell.PerCall, float64(used.CPU.Microseconds())/float64(r.Calls))
	cell.latency.Merge(&r.Latency)
	if r.Err != nil {
		cell.err = r.Err
	}
	return nil
}
