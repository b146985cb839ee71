// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"math"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/adaptive"
	"github.com/weftraft/weft/ecraft"
	published "github.com/weftraft/weft/ecraft/papers"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/svg"
)

// flexraftSides are the sides of FlexRaft's figures.
func flexraftSides() []adaptive.Side {
	return []adaptive.Side{
		adaptive.Weft(), adaptive.FullCopies(), adaptive.Of("CRaft", published.CRaft{}),
		adaptive.Of("HRaft", published.HRaft{}), adaptive.Of("FlexRaft", published.FlexRaft{}),
	}
}

// degraded is the scenario of FlexRaft's figures: one client that puts, at n servers of which some have failed.
func (b *Bench) degraded(n, failed, bytes int) adaptive.Setting {
	s := adaptive.Setting{
		Network: adaptive.Uniform(n, gbit, 100*us, 20*us), Sizes: []int{bytes}, Clients: 1, Failed: failed,
		Warm: 300 * ms, Time: 2 * time.Second, Seed: b.Seed,
	}
	for i := range s.Network.Links {
		s.Network.Links[i].Sync = 130 * us // 7800 writes a second
	}
	if b.Short {
		s.Time = 300 * ms
	}
	return s
}

var flexraftSizes = []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20}

// latencies runs the degraded scenario by size.
func latencies(n, failed int, sizes ...int) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		g := newGrid(fmt.Sprintf("write latency, N = %d, %d failed", n, failed), "value", "ms", false)
		var x []float64
		for _, bytes := range sizes {
			x = append(x, float64(bytes))
			if err := b.commits(g, lab.Bytes(bytes), b.degraded(n, failed, bytes)); err != nil {
				return nil, err
			}
		}
		res := result(g)
		res.Charts = []svg.Chart{g.lines(x, true, true)}
		return res, nil
	}
}

// commits adds the mean time of puts of all sides.
func (b *Bench) commits(g *grid, group string, s adaptive.Setting) error {
	for _, side := range flexraftSides() {
		out, err := b.play(s, side, false)
		if err != nil {
			return err
		}
		g.put(group, side.Name, stuck(out, millis(out.Put)))
	}
	return nil
}

func stuck(out adaptive.Outcome, v float64) float64 {
	if out.Stuck {
		return math.NaN()
	}
	return v
}

// byFailures runs puts of 2 MB by the number of failures.
func byFailures(nodes ...int) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		var grids []*grid
		for _, n := range nodes {
			g := newGrid(fmt.Sprintf("commit latency of 2 MB, N = %d", n), "failed", "ms", false)
			for failed := 0; failed <= n/2; failed++ {
				if err := b.commits(g, fmt.Sprint(failed), b.degraded(n, failed, 2<<20)); err != nil {
					return nil, err
				}
			}
			grids = append(grids, g)
		}
		return result(grids...), nil
	}
}

// ycsb runs the mixes of YCSB with four clients.
func ycsb(failed int) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		g := newGrid(fmt.Sprintf("YCSB, N = 7, %d failed", failed), "workload", "ops a second", true)
		for _, w := range []struct {
			name string
			gets float64
		}{{"A", 0.5}, {"B", 0.95}, {"C", 1}, {"D", 0.95}, {"F", 2. / 3}} {
			s := b.degraded(7, failed, 2<<20)
			s.Clients, s.Gets, s.Time = 4, w.gets, 2*s.Time
			if err := b.rates(g, flexraftSides(), w.name, s); err != nil {
				return nil, err
			}
		}
		return result(g), nil
	}
}

// costs is what a leader sends, and all have stored when an entry commits, for a byte of payload: what was sent, and
// the leader's copy. Heartbeats count.
func costs(n int) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		network := newGrid(fmt.Sprintf("network cost, N = %d", n), "failed", "bytes sent for a byte", false)
		storage := newGrid(fmt.Sprintf("storage cost, N = %d", n), "failed", "bytes stored for a byte, with the leader's copy", false)
		for failed := 0; failed <= n/2; failed++ {
			s := b.degraded(n, failed, 1<<20)
			group := fmt.Sprint(failed)
			for _, side := range flexraftSides() {
				out, err := b.play(s, side, false)
				if err != nil {
					return nil, err
				}
				network.put(group, side.Name, out.Sent)
				storage.put(group, side.Name, out.Sent+1)
			}
			network.put(group, "FlexRaft+", float64(n-failed-1)/float64(n-failed-n/2))
			storage.put(group, "FlexRaft+", float64(n-failed-1)/float64(n-failed-n/2)+1)
		}
		return result(network, storage), nil
	}
}

// moment is the put that is under way when a follower fails.
func moment(b *Bench) (*Result, error) {
	took := newGrid("a put of 2 MB, N = 7", "failed", "ms", false)
	extra := newGrid("extra bytes at the moment of a failure", "failed", "for a byte of the put", false)
	for failed := range 2 {
		s := b.degraded(7, failed, 2<<20)
		s.Time = 4 * time.Second
		if b.Short {
			s.Time = 2 * time.Second
		}
		s.At = []adaptive.Change{{At: time.Second, Do: func(s *adaptive.Setting, c adaptive.Cluster) { c.Kill(5 - s.Failed) }}}
		for _, side := range []adaptive.Side{adaptive.Weft(), adaptive.FullCopies(), adaptive.Of("CRaft", published.CRaft{})} {
			calm := s
			calm.At = nil
			before, err := b.play(calm, side, false)
			if err != nil {
				return nil, err
			}
			at, err := b.play(s, side, false)
			if err != nil {
				return nil, err
			}
			took.put(fmt.Sprint(failed), side.Name, millis(before.Put))
			took.put(fmt.Sprintf("%d to %d", failed, failed+1), side.Name, millis(at.Worst))
			extra.put(fmt.Sprintf("%d to %d", failed, failed+1), side.Name, float64(at.Extra)/(2<<20))
		}
	}
	// The first failure, as the paper works it out.
	for _, c := range []struct {
		side string
		cost float64
	}{{"HRaft", 3. / 4}, {"FlexRaft", 5. / 3}, {"FlexRaft+", 5. / 12}} {
		extra.put("0 to 1", c.side, c.cost)
	}
	res := result(took).show(extra)
	normal, struck, bytes := took.value[weft]["0"], took.value[weft]["0 to 1"], extra.value[weft]["0 to 1"]
	res.Tables[0].Notes = []string{fmt.Sprintf("At the first failure Weft's put takes %.0f%% longer than without, and the time of its extra bytes alone, at 1 Gbit/s, is %.0f%%. "+
		"FlexRaft+ as published takes about 49%% longer, which follows from its figures beside HRaft and FlexRaft, without the time until the failure is known.",
		100*(struck/normal-1), 100*bytes*millis(time.Second)*(2<<20)/gbit/normal)}
	return res, nil
}

// stored is what followers hold of a byte, after one of those that failed came back.
func stored(n int) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		g := newGrid(fmt.Sprintf("log of all followers, N = %d, one came back", n), "failed", "bytes for a byte", false)
		f := n / 2
		for failed := 1; failed <= f; failed++ {
			s, group := b.degraded(n, failed, 1<<20), fmt.Sprint(failed)
			for _, side := range flexraftSides() {
				out, err := b.play(s, side, false)
				if err != nil {
					return nil, err
				}
				// What the follower that came back is sent: a unit of the entry's coding.
				back := out.Sent / float64(n-1-failed)
				if side.Name == "HRaft" {
					back = 1 / float64(f+1)
				}
				g.put(group, side.Name, out.Sent+back)
			}
			// The chunks of all but the servers still away, and a subchunk of each of theirs at each.
			k, left := float64(f+1), float64(failed-1)
			g.put(group, "FlexRaft+", float64(n-failed)/k+left*float64(n-1-failed)/(k*(k-float64(failed))))
		}
		return result(g), nil
	}
}

// overhead is the bytes that coding adds to an append.
func overhead(*Bench) (*Result, error) {
	g := newGrid("bytes of an append to one of 6 followers beside its share of the payload", "value", "bytes", false)
	for _, n := range flexraftSizes {
		h := &ecraft.Header{Kind: ecraft.Coded, PayloadLen: n, PayloadCRC: 1 << 30, Encoder: 1, Layout: ecraft.NewLayout(7, 6), Units: make([]uint8, 6), Members: []uint64{2, 3, 4, 5, 6, 7}}
		units := make([]int, 6)
		h.Spread(ecraft.Levels(7), 0, units)
		h.Layout = h.Reduce(units)
		for i, u := range units {
			h.Units[i] = uint8(u)
		}
		share := float64(n) * float64(units[0]) / float64(h.D)
		g.put(lab.Bytes(n), weft, math.Round(float64(ecraft.SealedLen(h, 2, 0, nil))-share))
	}
	res := result(g)
	res.Says = fmt.Sprintf("Weft adds %s bytes to an append", figure(g.at(lab.Bytes(4<<10), weft)))
	return res, nil
}
