// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/leases"
)

// Config configures the measurements.
type Config struct {
	// Time is the duration of a cell after its warm-up, in virtual time.
	Time time.Duration
	// Clients is the number of clients near each node; Value is the bytes of a value.
	Clients, Value int
	// Keys are numbers of keys. Clients choose evenly among the keys of a cell.
	Keys []int
	// Writes are shares of writes among the clients' operations.
	Writes []float64
	Seed   uint64
	// Progress gets a line for each part.
	Progress io.Writer
}

// Quick selects fewer cells, and shorter ones.
func (cfg *Config) Quick() {
	cfg.Time, cfg.Keys, cfg.Writes = cfg.Time/3, cfg.Keys[:1], []float64{0, 0.1, 0.3}
}

// Processor time of a message and of a read. A call of a client costs a server written in Go 5 to
// 40 µs.
const (
	messageWork = 5 * time.Microsecond
	readWork    = 10 * time.Microsecond
)

// Latency is quantiles and the mean of some times.
type Latency struct {
	Mean time.Duration `json:"mean_ns"`
	P50  time.Duration `json:"p50_ns"`
	P99  time.Duration `json:"p99_ns"`
}

// latencyOf returns the latency of some calls.
func latencyOf(times []time.Duration) Latency {
	if len(times) == 0 {
		return Latency{}
	}
	sum := time.Duration(0)
	for _, d := range times {
		sum += d
	}
	return Latency{sum / time.Duration(len(times)), lab.Quantile(times, 0.5), lab.Quantile(times, 0.99)}
}

// Cell is the result of a policy under a load, as seen by the clients.
type Cell struct {
	Network string  `json:"network"`
	Policy  string  `json:"policy"`
	Keys    int     `json:"keys"`
	Mix     float64 `json:"mix"` // the share of writes
	// Responders is the number of nodes besides the leader that serve reads.
	Responders int `json:"responders"`
	// Rate is the number of finished operations a second.
	Rate float64 `json:"rate"`
	// Reads and Writes are the latencies by site. ReadMean and WriteMean are the means of the
	// sites' means: clients of a fast site make more operations, and should not count for more.
	Reads     []Latency     `json:"read"`
	Writes    []Latency     `json:"write"`
	ReadMean  time.Duration `json:"read_mean_ns"`
	WriteMean time.Duration `json:"write_mean_ns"`
	// Local is the share of reads that took at most the round trip between the client and its node,
	// and half of the shortest round trip between two nodes.
	Local float64 `json:"local"`
	// Wrong is the number of answers that were not linearizable.
	Wrong int `json:"wrong"`
	// ReadTimes and WriteTimes are the latencies of all sites.
	ReadTimes  []time.Duration `json:"-"`
	WriteTimes []time.Duration `json:"-"`
}

// tally collects the answers to clients.
type tally struct {
	g             *group
	from          time.Duration
	reads, writes [][]time.Duration // by site
	all, local    int
}

func newTally(g *group) *tally {
	return &tally{g: g, from: g.c.Now(), reads: make([][]time.Duration, len(g.nodes)), writes: make([][]time.Duration, len(g.nodes))}
}

func (t *tally) add(o *op) {
	if o.write {
		t.writes[o.node-1] = append(t.writes[o.node-1], o.latency())
		return
	}
	t.reads[o.node-1] = append(t.reads[o.node-1], o.latency())
	t.all++
	if o.latency() <= t.g.net.nearby() {
		t.local++
	}
}

// nearby is the longest duration of a read without another node: another node costs twice as much
// in addition to the client's round trip.
func (n *Network) nearby() time.Duration {
	least := n.RoundTrip(1, 2)
	for a := range n.Sites {
		for b := range a {
			least = min(least, n.RoundTrip(uint64(a)+1, uint64(b)+1))
		}
	}
	return n.Client + least/2
}

// measure fills in the figures since t began.
func (t *tally) measure(c *Cell) {
	count := t.all
	for i := range t.reads {
		count += len(t.writes[i])
		c.Reads, c.Writes = append(c.Reads, latencyOf(t.reads[i])), append(c.Writes, latencyOf(t.writes[i]))
	}
	c.ReadTimes, c.WriteTimes = slices.Concat(t.reads...), slices.Concat(t.writes...)
	c.ReadMean, c.WriteMean = MeanOf(c.Reads), MeanOf(c.Writes)
	c.Rate = float64(count) / (t.g.c.Now() - t.from).Seconds()
	c.Local = float64(t.local) / float64(max(t.all, 1))
}

// MeanOf returns the mean of the means of the sites with a mean.
func MeanOf(sites []Latency) time.Duration {
	sum, n := time.Duration(0), time.Duration(0)
	for _, l := range sites {
		if l.Mean > 0 {
			sum, n = sum+l.Mean, n+1
		}
	}
	return sum / max(n, 1)
}

// run runs a cell.
func (cfg *Config) run(s setup, writes float64) (Cell, error) {
	s.seed, s.value, s.work, s.read = cfg.Seed, cfg.Value, messageWork, readWork
	cell := Cell{Network: s.net.Name, Policy: s.policy.Name, Keys: s.keys, Mix: writes}
	g, err := newGroup(s)
	if err != nil {
		return cell, err
	}
	if s.policy.responders {
		cell.Responders = len(g.wanted[0].Nodes)
	}
	begin := g.c.Now() + cfg.warm(s.net)
	end := begin + cfg.time(s.net)
	g.load(cfg.Clients, func() bool { return g.c.Now() >= end }, func(uint64) (int, bool) {
		return g.rng.IntN(s.keys), g.rng.Float64() < writes
	})
	if err := g.c.Run(begin); err != nil {
		return cell, err
	}
	t := newTally(g)
	g.onDone(t.add)
	if err := g.c.Run(end); err != nil {
		return cell, err
	}
	t.measure(&cell)
	if err := g.drain(); err != nil {
		return cell, err
	}
	cell.Wrong = g.check.wrong()
	return cell, nil
}

// time is the duration of a cell: on a network of short links, a short time has many operations.
func (cfg *Config) time(n Network) time.Duration {
	if n.farthest() < 5*time.Millisecond {
		return cfg.Time / 10
	}
	return cfg.Time
}

// warm is the time for which clients ask before the measurement.
func (cfg *Config) warm(n Network) time.Duration {
	return min(cfg.time(n)/3, 4*n.RoundTrip(1, uint64(len(n.Sites)))+100*time.Millisecond)
}

// onDone adds a function that is called for each finished op.
func (g *group) onDone(f func(*op)) {
	before := g.done
	g.done = func(o *op) {
		f(o)
		if before != nil {
			before(o)
		}
	}
}

// drain waits until all ops of clients are done, and applied at every node.
func (g *group) drain() error {
	done, err := g.c.RunUntil(g.c.Now()+time.Minute, func() bool { return len(g.open) == 0 })
	if err == nil && !done {
		err = fmt.Errorf("%s in %s: %d ops of clients are not done after a minute", g.policy.Name, g.net.Name, len(g.open))
	}
	if err != nil {
		return err
	}
	return g.c.Run(g.c.Now() + time.Second)
}

// Cells measures all policies in all networks.
func (cfg *Config) Cells(ctx context.Context) ([]Cell, error) {
	var cells []Cell
	for _, n := range Networks() {
		for _, keys := range cfg.Keys {
			for _, w := range cfg.Writes {
				for _, p := range policies() {
					if err := ctx.Err(); err != nil {
						return nil, err
					}
					cell, err := cfg.run(setup{net: n, policy: p, keys: keys}, w)
					if err != nil {
						return nil, err
					}
					cells = append(cells, cell)
				}
			}
			fmt.Fprintf(cfg.Progress, "%s with %d keys\n", n.Name, keys)
		}
	}
	return cells, nil
}

// respondersWrites is the share of writes where numbers of responders are compared.
const respondersWrites = 0.1

// Responders measures the effect of the number of responders, nearest first.
func (cfg *Config) Responders(ctx context.Context) ([]Cell, error) {
	var cells []Cell
	for _, n := range Networks()[1:] {
		order := n.nearest()
		for count := range len(order) + 1 {
			for _, p := range policies() {
				if !p.Ours {
					continue
				}
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				n.Responders = slices.Sorted(slices.Values(order[:count]))
				s := setup{net: n, policy: p, keys: cfg.Keys[0]}
				s.wanted = []leases.Want{{Nodes: n.Responders}}
				cell, err := cfg.run(s, respondersWrites)
				if err != nil {
					return nil, err
				}
				cells = append(cells, cell)
			}
		}
	}
	fmt.Fprintln(cfg.Progress, "numbers of responders")
	return cells, nil
}

// nearest returns the nodes besides the leader, the nearest to the leader first.
func (n *Network) nearest() []leases.NodeID {
	var ids []leases.NodeID
	for i := range n.Sites {
		if id := uint64(i) + 1; id != n.Leader {
			ids = append(ids, leases.NodeID(id))
		}
	}
	slices.SortStableFunc(ids, func(a, b leases.NodeID) int {
		return int(n.RoundTrip(n.Leader, uint64(a)) - n.RoundTrip(n.Leader, uint64(b)))
	})
	return ids
}
