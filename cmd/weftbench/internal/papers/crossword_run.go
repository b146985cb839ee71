// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/adaptive"
	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/ecraft"
	published "github.com/weftraft/weft/ecraft/papers"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/svg"
)

const (
	gbit = 1e9 / 8
	ms   = time.Millisecond
	us   = time.Microsecond
)

// place is a network of the paper.
type place struct {
	name          string
	egress        float64
	delay, jitter time.Duration
}

var (
	regional = place{"regional", gbit, 4 * ms, 200 * us}
	wide     = place{"wide", gbit / 5, 30 * ms, ms}
)

// crosswordSides are the sides of Crossword's figures, Weft first.
func crosswordSides() []adaptive.Side {
	return []adaptive.Side{
		adaptive.Weft(), adaptive.FullCopies(), adaptive.Of("RSPaxos", published.RSPaxos{}),
		adaptive.Of("CRaft", published.CRaft{}), adaptive.Published(),
	}
}

// setting is the load of Crossword's figures: 15 clients, half of the ops are gets.
func (b *Bench) setting(p place, nodes int, sizes ...int) adaptive.Setting {
	s := adaptive.Setting{
		Network: adaptive.Uniform(nodes, p.egress, p.delay, p.jitter), Sizes: sizes, Spread: 0.1, Gets: 0.5,
		Clients: 15, Trip: 2 * p.delay, Warm: 3 * time.Second, Time: 10 * time.Second, Seed: b.Seed,
	}
	if b.Short {
		s.Warm, s.Time = 500*ms, time.Second
	}
	return s
}

// critical runs one part of Figure 6.
func critical(p place, sizes ...int) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		var names []string
		for _, n := range sizes {
			names = append(names, lab.Bytes(n))
		}
		group := strings.Join(names, " and ")
		rate := newGrid("throughput, "+p.name, "put", "ops a second", true)
		mean := newGrid("latency, "+p.name, "put", "mean and 95%, ms", false)
		s := b.setting(p, 5, sizes...)
		put := func(name string, side adaptive.Side, cores bool) error {
			out, err := b.play(s, side, cores)
			rate.put(group, name, out.PerSecond)
			mean.put("mean", name, millis(out.Mean))
			mean.put("95%", name, millis(out.P95))
			return err
		}
		for _, side := range crosswordSides() {
			if err := put(side.Name, side, false); err != nil {
				return nil, err
			}
		}
		if err := put("Weft, real cores", adaptive.Weft(), true); err != nil {
			return nil, err
		}
		return result(rate).show(mean), nil
	}
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }

// rates runs all sides at some settings, and returns ops a second by group.
func (b *Bench) rates(g *grid, sides []adaptive.Side, group string, s adaptive.Setting) error {
	for _, side := range sides {
		out, err := b.play(s, side, false)
		if err != nil {
			return err
		}
		g.put(group, side.Name, out.PerSecond)
	}
	return nil
}

// bySize is Figure 7a.
func bySize(b *Bench) (*Result, error) {
	g := newGrid("throughput by size, regional", "put", "ops a second", true)
	var x []float64
	for _, n := range []int{8, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10} {
		x = append(x, float64(n))
		if err := b.rates(g, crosswordSides(), lab.Bytes(n), b.setting(regional, 5, n)); err != nil {
			return nil, err
		}
	}
	res := result(g)
	res.Charts = []svg.Chart{g.lines(x, true, false)}
	return res, nil
}

// byNodes is Figure 7b.
func byNodes(b *Bench) (*Result, error) {
	g := newGrid("throughput by servers, regional", "N", "ops a second", true)
	for _, n := range []int{3, 5, 7, 9} {
		if err := b.rates(g, crosswordSides(), fmt.Sprint(n), b.setting(regional, n, 8, 128<<10)); err != nil {
			return nil, err
		}
	}
	return result(g), nil
}

// byPuts is Figure 7c.
func byPuts(b *Bench) (*Result, error) {
	g := newGrid("throughput by puts, regional", "puts", "ops a second", true)
	for _, puts := range []float64{0.1, 0.5, 1} {
		s := b.setting(regional, 5, 8, 128<<10)
		s.Gets = 1 - puts
		if err := b.rates(g, crosswordSides(), fmt.Sprintf("%.0f%%", 100*puts), s); err != nil {
			return nil, err
		}
	}
	return result(g), nil
}

// breakdown is the part of Figure 7 on a put of 64 KB.
func breakdown(b *Bench) (*Result, error) {
	put := newGrid("a put of 64 KB, regional", "from the append", "ms to the commit", false)
	sent := newGrid("bytes of a put of 64 KB", "leader", "bytes sent for a byte", false)
	s := b.setting(regional, 5, 64<<10)
	for _, side := range crosswordSides() {
		out, err := b.play(s, side, false)
		if err != nil {
			return nil, err
		}
		put.put("mean", side.Name, millis(out.Put))
		sent.put("to followers", side.Name, out.Sent)
	}
	return result(put, sent), nil
}

// phase is a part of the trace: what clients put, and over which links.
type phase struct {
	name string
	size int
	rate float64 // of a node's card
	// laggard, unless 0, is the rate of the links of the last two followers, whose delay is ten times the others'.
	laggard float64
}

var phases = []phase{
	{"64 KB", 64 << 10, gbit, 0},
	{"4 KB", 4 << 10, gbit, 0},
	{"100 Mbit/s", 4 << 10, gbit / 10, 0},
	{"1 Gbit/s", 4 << 10, gbit, 0},
	{"two lag", 4 << 10, gbit, gbit / 10},
}

// begin has a simulated cluster be in a phase.
func (p phase) begin(s *adaptive.Setting, c adaptive.Cluster) {
	s.Sizes = []int{p.size}
	c.Change(func(n *adaptive.Network) {
		n.Egress = p.rate
		for i := range n.Links[2:] {
			if l := &n.Links[2+i]; p.laggard > 0 {
				l.Delay, l.Rate = 10*l.Delay, p.laggard
			}
		}
	})
}

// through has a setting go through phases of so many seconds.
func through(phases []phase, s *adaptive.Setting, seconds int) {
	s.Sizes, s.Time = []int{phases[0].size}, time.Duration(len(phases)*seconds+1)*time.Second
	for i, p := range phases[1:] {
		s.At = append(s.At, adaptive.Change{At: time.Duration((i+1)*seconds) * time.Second, Do: p.begin})
	}
}

// settledIn is the mean of the last two thirds of a phase of a trace.
func settledIn(trace []float64, i, seconds int) float64 {
	return average(trace[i*seconds+seconds/3 : (i+1)*seconds])
}

// line draws a trace.
func line(side string, trace []float64) svg.Series {
	s := svg.Series{Name: side, Y: trace}
	for i := range trace {
		s.X = append(s.X, float64(i))
	}
	return s
}

// adapt is the trace of a changing load and network.
func adapt(b *Bench) (*Result, error) {
	s, seconds := b.setting(regional, 5, phases[0].size), 15
	if b.Short {
		seconds = 2
	}
	s.Gets, s.Warm = 0, 0
	through(phases, &s, seconds)
	g := newGrid("throughput as load and network change", "phase", "ops a second, the last two thirds", true)
	chart := svg.Chart{Title: "throughput as load and network change", X: "seconds", Y: "ops a second"}
	for _, side := range crosswordSides() {
		out, err := b.play(s, side, false)
		if err != nil {
			return nil, err
		}
		chart.Series = append(chart.Series, line(side.Name, out.Trace))
		for i, p := range phases {
			g.put(p.name, side.Name, settledIn(out.Trace, i, seconds))
		}
	}
	res := result(g)
	res.Charts = []svg.Chart{chart}
	return res, nil
}

func average(list []float64) (sum float64) {
	for _, v := range list {
		sum += v
	}
	return sum / float64(max(len(list), 1))
}

// unbalanced is the setting with links of unlike rates.
func unbalanced(b *Bench) (*Result, error) {
	g := newGrid("links of 1, 1, 0.4 and 0.1 Gbit/s", "put", "ops a second", true)
	s := b.setting(regional, 5, 64<<10)
	s.Gets = 0
	for i, rate := range []float64{gbit, gbit, 0.4 * gbit, 0.1 * gbit} {
		s.Network.Links[i].Rate = rate
	}
	if err := b.rates(g, crosswordSides(), "64 KB", s); err != nil {
		return nil, err
	}
	return result(g), nil
}

// levels is the plane of shards and quorums: what each follower gets, by the answers that commit.
func levels(*Bench) (*Result, error) {
	res := &Result{}
	for _, n := range []int{3, 5, 7, 9} {
		g := newGrid(fmt.Sprintf("N = %d: bytes to a follower by quorum", n), "quorum", "share of the payload", false)
		l := ecraft.NewLayout(n, n-1)
		m := n/2 + 1
		for level := 1; level <= ecraft.Levels(n); level++ {
			quorum := fmt.Sprint(n/2 + level)
			g.put(quorum, weft, float64(l.UnitsAt(level))/float64(l.D))
			g.put(quorum, "Crossword", float64(m+1-level)/float64(m))
		}
		res.show(g).compare(g)
	}
	return res, nil
}

// staleness and traffic are tables of the real cores.
func staleness(b *Bench) (*Result, error) {
	cfg := virtual.Gossip{Group: b.group(virtual.GossipSides()), Loads: []float64{0, 0.3, 0.7, 0.95}, Time: time.Second}
	s, err := cfg.Run(b.Ctx)
	return section(s, "without a gap Weft's followers have an entry when they learn of its commit, as those of full copies have; a gap of 400 KB costs some ms", err)
}

func traffic(b *Bench) (*Result, error) {
	cfg := virtual.Bytes{Group: b.group(virtual.Sides()[:2]), Sizes: []int{64 << 10}, Bytes: 16 << 20, MinCalls: 100, MaxCalls: 300, Models: virtual.Papers()}
	s, err := cfg.Run(b.Ctx)
	return section(s, "Weft's leader sends the least there can be, and all nodes together as much as with full copies: each healthy follower gets each payload once", err)
}

func (b *Bench) group(sides []virtual.Side) virtual.Group {
	return virtual.Group{Voters: []int{5}, Size: 64 << 10, Load: 0.5, Delay: regional.delay, Sides: sides, Seed: b.Seed, Progress: b.Progress}
}

// section takes the tables of another bench.
func section(s *lab.Section, says string, err error) (*Result, error) {
	if err != nil {
		return nil, err
	}
	res := &Result{Says: says}
	for _, t := range s.Tables {
		if len(t.Rows) > 0 {
			res.Tables = append(res.Tables, t)
		}
	}
	return res, nil
}
