// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/readsbench"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/svg"
)

// readSides are the policies of the world of reads, and their names here.
var readSides = []struct{ policy, name string }{
	{"roster", weft}, {"roster, notes", weft + ", notes"}, {"ReadIndex", "ReadIndex"}, {"leader lease", "leader lease"}, {"quorum read", "quorum read"},
	{"Quorum Leases", "Quorum Leases"}, {"Quorum Leases, passive", "Quorum Leases, passive"}, {"Bodega, published", "Bodega, published"},
}

func (b *Bench) reads() *readsbench.Config {
	cfg := &readsbench.Config{Time: 3 * time.Second, Clients: 10, Value: 128, Seed: b.Seed, Progress: b.Progress}
	if b.Short {
		cfg.Time, cfg.Clients = 300*ms, 2
	}
	return cfg
}

const readKeys = 1000

// normal is a part of Figure 8.
func normal(network string, writes float64) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		rate := newGrid(fmt.Sprintf("%s, %s writes", network, share(writes)), "", "ops a second", true)
		at := newGrid(fmt.Sprintf("%s, %s writes, by the client's site", network, share(writes)), "op, site", "mean, ms", false)
		wrong := newGrid("answers that were not linearizable", "", "answers", false)
		var sites []string
		for _, n := range readsbench.Networks() {
			if n.Name == network {
				sites = n.Sites
			}
		}
		for _, side := range readSides {
			c, err := measured(b.reads(), side.name, readsbench.Load{Network: network, Policy: side.policy, Keys: readKeys, Writes: writes})
			if err != nil {
				return nil, err
			}
			rate.put("all sites", side.name, c.Rate)
			wrong.put("all sites", side.name, float64(c.Wrong))
			for i, site := range sites {
				at.put("read, "+site, side.name, millis(c.Reads[i].Mean))
			}
			if writes > 0 {
				at.put("write", side.name, millis(c.WriteMean))
			}
		}
		return result(rate).show(at).show(wrong), nil
	}
}

// measured refuses wrong answers of a safe side.
func measured(cfg *readsbench.Config, side string, l readsbench.Load) (readsbench.Cell, error) {
	c, err := cfg.Measure(l)
	if err == nil && c.Wrong > 0 && !isWeaker(side) {
		err = fmt.Errorf("%s: %d answers were not linearizable", side, c.Wrong)
	}
	return c, err
}

func share(x float64) string { return fmt.Sprintf("%g%%", 100*x) }

// distribution is a part of Figure 9.
func distribution(writes float64, ofWrites bool) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		what := "reads"
		if ofWrites {
			what = "writes"
		}
		title := fmt.Sprintf("latency of %s, wan, %s writes", what, share(writes))
		g, chart := newGrid(title, "quantile", "ms", false), svg.Chart{Title: title, X: "ms", Y: "share of ops"}
		for _, side := range readSides {
			c, err := measured(b.reads(), side.name, readsbench.Load{Network: "wan", Policy: side.policy, Keys: readKeys, Writes: writes})
			if err != nil {
				return nil, err
			}
			times := c.ReadTimes
			if ofWrites {
				times = c.WriteTimes
			}
			slices.Sort(times)
			line := svg.Series{Name: side.name}
			for i := 0; i <= 100 && len(times) > 0; i++ {
				line.X, line.Y = append(line.X, millis(times[min(i*len(times)/100, len(times)-1)])), append(line.Y, float64(i)/100)
			}
			chart.Series = append(chart.Series, line)
			for _, q := range []float64{0.5, 0.8, 0.9, 0.99} {
				g.put(share(q), side.name, millis(lab.Quantile(times, q)))
			}
		}
		// Clients near fast sites do more, so quantiles of all ops are not compared.
		return &Result{Tables: []lab.Table{g.table()}, Charts: []svg.Chart{chart}}, nil
	}
}

// withResponders are the sides with local reads.
func withResponders() (names []string) {
	for _, s := range readSides {
		if s.policy != "ReadIndex" && s.policy != "leader lease" && s.policy != "quorum read" {
			names = append(names, s.policy)
		}
	}
	return names
}

// held is how a write delays reads of its key.
func held(network string) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		rows, err := b.reads().HoldsIn(network, withResponders())
		if err != nil {
			return nil, err
		}
		g := newGrid("reads of a key that is written, "+network, "", "ms", false)
		trips := newGrid("reads of a key that is written, "+network, "", "round trips of the write", false)
		for _, h := range rows {
			name := nameOf(h.Policy)
			for _, q := range []struct {
				what string
				d    time.Duration
			}{{"delay, median", h.Delay.P50}, {"delay, 99%", h.Delay.P99}, {"reads are late for", h.Window}} {
				g.put(q.what, name, millis(q.d))
				trips.put(q.what, name, float64(q.d)/float64(h.Trip))
			}
		}
		return result(g).show(trips), nil
	}
}

func nameOf(policy string) string {
	for _, s := range readSides {
		if s.policy == policy {
			return s.name
		}
	}
	return policy
}

// sweep measures ops a second by a figure of the load.
func sweep[T any](title, by string, values []T, words func(T) string, load func(*readsbench.Config, *readsbench.Load, T)) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		g := newGrid(title, by, "ops a second", true)
		for _, v := range values {
			for _, side := range readSides {
				cfg, l := b.reads(), readsbench.Load{Network: "wan", Policy: side.policy, Keys: readKeys}
				load(cfg, &l, v)
				c, err := measured(cfg, side.name, l)
				if err != nil {
					return nil, err
				}
				g.put(words(v), side.name, c.Rate)
			}
		}
		return result(g), nil
	}
}

var (
	byWrites = sweep("throughput by share of writes, wan", "writes", []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5}, share,
		func(_ *readsbench.Config, l *readsbench.Load, v float64) { l.Writes = v })
	byValue = sweep("throughput by size of values, wan, 5% writes", "value", []int{16, 128, 1 << 10, 8 << 10, 64 << 10}, lab.Bytes,
		func(cfg *readsbench.Config, l *readsbench.Load, v int) { cfg.Value, l.Writes = v, 0.05 })
	byYCSB = sweep("YCSB, uniform keys, all sites are responders, wan", "workload", []string{"A", "B", "C", "D", "F"}, func(s string) string { return s },
		func(_ *readsbench.Config, l *readsbench.Load, v string) {
			l.Writes, l.Responders = map[string]float64{"A": 0.5, "B": 0.05, "C": 0, "D": 0.05, "F": 0.25}[v], 4
			l.Keys = 10_000
		})
)

// byResponders is Figure 14, byCoverage is Figure 15.
func byResponders(b *Bench) (*Result, error) {
	return b.latency("latency by responders, wan, 10% writes", "responders beside the leader", []string{"0", "1", "2", "3", "4"}, func(l *readsbench.Load, i int) {
		l.Responders, l.None = i, i == 0
	})
}

func byCoverage(b *Bench) (*Result, error) {
	return b.latency("latency by keys with responders, wan, 10% writes", "keys", []string{"0%", "25%", "50%", "75%", "100%"}, func(l *readsbench.Load, i int) {
		l.Covered, l.None = float64(i)/4, i == 0
	})
}

func (b *Bench) latency(title, by string, groups []string, load func(l *readsbench.Load, i int)) (*Result, error) {
	g := newGrid(title, by, "ms", false)
	for i, group := range groups {
		for _, side := range readSides[:2] {
			l := readsbench.Load{Network: "wan", Policy: side.policy, Keys: readKeys, Writes: 0.1}
			load(&l, i)
			c, err := measured(b.reads(), side.name, l)
			if err != nil {
				return nil, err
			}
			g.put(group, side.name+": reads", millis(c.ReadMean))
			g.put(group, side.name+": writes", millis(c.WriteMean))
		}
	}
	first, last := groups[0], groups[len(groups)-1]
	res := (&Result{}).show(g)
	res.Says = fmt.Sprintf("Weft's reads take %s ms at %s and %s ms at %s, writes %s and %s ms", figure(g.at(first, weft+": reads")), first,
		figure(g.at(last, weft+": reads")), last, figure(g.at(first, weft+": writes")), figure(g.at(last, weft+": writes")))
	return res, nil
}

// rosterChanges is Figure 13.
func rosterChanges(b *Bench) (*Result, error) {
	got, err := b.reads().ChangeRoster("roster")
	if err != nil {
		return nil, err
	}
	if got.Wrong > 0 {
		return nil, fmt.Errorf("%d answers were not linearizable", got.Wrong)
	}
	chart := svg.Chart{Title: "a responder fails at 0.8 s, the roster is changed at 7.2 s", X: "seconds", Y: "latency, ms"}
	reads, writes := svg.Series{Name: "reads"}, svg.Series{Name: "writes"}
	for i, o := range got.Ops {
		to := &reads
		if o.Write {
			to = &writes
		}
		if o.Write || i%8 == 0 {
			to.X, to.Y = append(to.X, (o.Begun+o.Took).Seconds()), append(to.Y, millis(o.Took))
		}
	}
	chart.Series = []svg.Series{reads, writes}
	g := newGrid("writes are held up", "", "ms at most", false)
	g.put("a responder fails", weft, millis(got.FailedHeld))
	g.put("the roster is changed by a call", weft, millis(got.CalledHeld))
	g.put("reads that are late, of "+fmt.Sprint(got.Reads), weft, float64(got.LateReads))
	return &Result{Tables: []lab.Table{g.table()}, Charts: []svg.Chart{chart}, Says: fmt.Sprintf("with Weft a responder that fails holds writes up for %s ms at most, a change by a call for %s ms; %d of %d reads are late",
		figure(millis(got.FailedHeld)), figure(millis(got.CalledHeld)), got.LateReads, got.Reads)}, nil
}
