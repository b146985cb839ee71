// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Options select the runs. Zero values mean the defaults of the command.
type Options struct {
	Nodes []int  // sizes of groups; default 3, 5, 7, 9
	Cores bool   // real cores instead of the small model; without the published chooser
	Quick bool   // fewer cells, shorter runs
	Seed  uint64 // of networks and clients

	only []Side // if set, the sides to run
}

// cell is a network, payloads and a load; all sides run each cell.
type cell struct {
	net  Network
	mix  mix
	load load
	runs []run // by side
}

func (c *cell) name() string { return c.net.Name + "/" + c.mix.Name + "/" + c.load.Name }

// scale returns the length of the runs.
func (o *Options) scale() scale {
	switch {
	case o.Quick || o.Cores:
		return scale{Time: time.Second, Min: 300, Max: 1200}
	default:
		return scale{Time: 2 * time.Second, Min: 600, Max: 3000}
	}
}

// cells lists all cells for a group of n.
func (o *Options) cells(n int) []*cell {
	few := []string{"4KB", "64KB", "1MB", "small-mix", "large-mix"}
	var list []*cell
	for _, net := range networks(n) {
		for _, mix := range mixes {
			if (o.Quick || o.Cores) && !slices.Contains(few, mix.Name) {
				continue
			}
			for _, load := range loads {
				if (o.Quick || o.Cores) && load.Clients == 5 {
					continue
				}
				list = append(list, &cell{net: net, mix: mix, load: load})
			}
		}
	}
	return list
}

// cluster returns a fresh cluster for a side.
func (o *Options) cluster(net Network, side Side) (Cluster, error) {
	if o.Cores {
		return newCore(net, side, o.Seed)
	}
	return newModel(net, side, o.Seed), nil
}

// sides returns the sides that the cluster can run.
func (o *Options) sides(n int) []Side {
	if o.only != nil {
		return o.only
	}
	sides := sides(n)
	if o.Cores {
		sides = slices.DeleteFunc(sides, func(s Side) bool { return s.general() || s.hints })
	}
	return sides
}

// sweep runs all cells, on as many goroutines as there are processors. The results do not depend on
// this number.
func (o *Options) sweep(ctx context.Context, n int) ([]*cell, error) {
	cells, sides := o.cells(n), o.sides(n)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan *cell)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for c := range work {
				for _, s := range sides {
					cl, err := o.cluster(c.net, s)
					if err != nil {
						cancel(fmt.Errorf("%s, %s: %w", c.name(), s.Name, err))
						continue
					}
					r := drive(cl, &c.net, c.mix, c.load, o.scale(), o.Seed)
					r.took = nil
					if err := cl.Err(); err != nil {
						cancel(fmt.Errorf("%s, %s: %w", c.name(), s.Name, err))
					}
					c.runs = append(c.runs, r)
				}
			}
		})
	}
	for _, c := range cells {
		if ctx.Err() != nil {
			break
		}
		work <- c
	}
	close(work)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return cells, nil
}

// metric is a figure of a run, where less is better, and a function that selects the cells with
// this figure.
type metric struct {
	name string
	of   func(r *run) float64
	in   func(l load) bool
}

var metrics = []metric{
	{"throughput, closed loops", func(r *run) float64 { return 1 / r.perSecond }, func(l load) bool { return l.Clients > 0 }},
	{"mean at 30% and 70%", func(r *run) float64 { return r.mean.Seconds() }, func(l load) bool { return l.Share > 0 && l.Share < 0.9 }},
	{"p99 at 30% and 70%", func(r *run) float64 { return r.p99.Seconds() }, func(l load) bool { return l.Share > 0 && l.Share < 0.9 }},
	{"mean at 95%, from the start", func(r *run) float64 { return r.mean.Seconds() }, func(l load) bool { return l.Share > 0.9 }},
}

// Row is a line of the table: a side against the best fixed level in hindsight,
// cell by cell. 1 is as good, 2 twice as slow.
type Row struct {
	Nodes     int     `json:"nodes"`
	Group     string  `json:"group"`
	Metric    string  `json:"metric"`
	Side      string  `json:"side"`
	Cells     int     `json:"cells"`
	Mean      float64 `json:"geometric_mean"`
	Worst     float64 `json:"worst"`
	WorstCell string  `json:"worst_cell"`
	Within    float64 `json:"share_within_3_percent"`
}

// rows sums up the cells.
func rows(n int, cells []*cell, sides []Side) (out []Row) {
	for _, group := range []string{symmetric, asymmetric, stalls, processors} {
		for _, m := range metrics {
			for i, side := range sides {
				r := Row{Nodes: n, Group: group, Metric: m.name, Side: side.Name}
				var ratios []float64
				within := 0.0
				for _, c := range cells {
					if c.net.Group != group || !m.in(c.load) {
						continue
					}
					x := m.of(&c.runs[i]) / c.oracle(m, sides)
					ratios = append(ratios, x)
					if x <= 1.03 {
						within++
					}
					if x > r.Worst {
						r.Worst, r.WorstCell = x, c.name()
					}
				}
				if r.Cells = len(ratios); r.Cells > 0 {
					r.Mean, r.Within = lab.GeometricMean(ratios), within/float64(r.Cells)
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// oracle is the best of the fixed levels.
func (c *cell) oracle(m metric, sides []Side) float64 {
	best := math.Inf(1)
	for i, s := range sides {
		if s.level > 0 {
			best = min(best, m.of(&c.runs[i]))
		}
	}
	return best
}
