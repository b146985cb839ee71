// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wefttest

import (
	"math/rand/v2"
	"time"
)

// Faults says what [Cluster.Chaos] does. The zero value does everything.
type Faults struct {
	NoCrashes    bool // nodes that go down, with power and without, and start again
	NoPartitions bool // nodes that are cut off from others
	NoLoss       bool // links that lose, or delay, or mix up the order of messages
	// Every is the mean time between two faults; 0 means 5 ticks.
	Every time.Duration
}

// Chaos has faults happen, drawn from the seed, for a time from now on, and then ends all
// of them: every node runs, and all links are as at first. It returns at once; the faults
// happen while the test lets time pass.
func (c *Cluster) Chaos(d time.Duration, f Faults) {
	if f.Every == 0 {
		f.Every = 5 * c.opts.TickInterval
	}
	x := &chaos{c: c, f: f, end: c.now + d, rng: rand.New(rand.NewPCG(c.opts.Seed, 1<<32+uint64(c.now)))}
	x.next()
	c.at(x.end, func() {
		c.Heal()
		for _, n := range c.nodes {
			if !n.up {
				n.start()
			}
		}
	})
}

type chaos struct {
	c   *Cluster
	f   Faults
	end time.Duration
	rng *rand.Rand
}

// next plans the next fault.
func (x *chaos) next() {
	x.c.after(time.Duration(x.rng.Int64N(2*int64(x.f.Every))+1), func() {
		if x.c.now < x.end && x.c.broken == nil {
			x.act()
			x.next()
		}
	})
}

func (x *chaos) node() *node { return x.c.nodes[x.rng.IntN(len(x.c.nodes))] }

// act does one thing, if it is one of those that are wished for.
func (x *chaos) act() {
	c := x.c
	switch x.rng.IntN(4) {
	case 0:
		if n := x.node(); !x.f.NoCrashes && n.up {
			n.crash(x.rng.IntN(2) == 0)
			c.at(min(c.now+time.Duration(x.rng.Int64N(int64(3*x.f.Every))), x.end), func() {
				if !n.up {
					n.start()
				}
			})
		}
	case 1:
		if !x.f.NoPartitions {
			var sides [2][]uint64
			for _, n := range c.nodes {
				side := x.rng.IntN(2)
				sides[side] = append(sides[side], n.id)
			}
			c.Partition(sides[0], sides[1])
		}
	case 2:
		if !x.f.NoLoss {
			l := Link{Delay: c.opts.Link.Delay, Jitter: time.Duration(x.rng.Int64N(int64(c.opts.TickInterval))), Loss: x.rng.Float64() / 3}
			c.SetLink(x.node().id, x.node().id, l)
		}
	case 3:
		c.Heal()
	}
}
