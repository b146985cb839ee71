// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"math/rand/v2"
	"time"
)

// Faults selects the faults of [Cluster.Chaos]. The zero value selects all.
type Faults struct {
	NoCrashes    bool // no node goes down, with power or without
	NoPartitions bool // no node is cut off from others
	NoLoss       bool // no link loses, delays or reorders messages
	NoSlowDisks  bool // no disk hangs, or is ten times slower
	// Every is the mean time between two faults; 0 means 5 ticks.
	Every time.Duration
}

// Chaos plans faults, drawn from the seed, for the time d from now on; at the end all nodes run,
// and all links have their first shape. Chaos returns at once; the faults happen while the test
// lets time pass.
func (c *Cluster) Chaos(d time.Duration, f Faults) {
	if f.Every == 0 {
		f.Every = 5 * c.opts.TickInterval
	}
	x := &chaos{c: c, f: f, end: c.Now() + d, rng: rand.New(rand.NewPCG(c.opts.Seed, 1<<32+uint64(c.Now())))}
	x.next()
	c.agenda.At(x.end, func() {
		c.Heal()
		for _, n := range c.nodes {
			n.disk.Mend()
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
	x.c.agenda.After(time.Duration(x.rng.Int64N(2*int64(x.f.Every))+1), func() {
		if x.c.Now() < x.end && x.c.broken == nil {
			x.act()
			x.next()
		}
	})
}

func (x *chaos) node() *node { return x.c.nodes[x.rng.IntN(len(x.c.nodes))] }

// act lets a fault happen, if the drawn fault is among the selected faults.
func (x *chaos) act() {
	c := x.c
	switch x.rng.IntN(5) {
	case 0:
		if n := x.node(); !x.f.NoCrashes && n.up {
			n.crash(x.rng.IntN(2) == 0)
			c.agenda.At(min(c.Now()+time.Duration(x.rng.Int64N(int64(3*x.f.Every))), x.end), func() {
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
	case 4:
		if !x.f.NoSlowDisks {
			x.slow(x.node().id, time.Duration(x.rng.Int64N(int64(3*x.f.Every))))
		}
	}
}

// slow makes a disk hang, or makes the disk slow.
func (x *chaos) slow(node uint64, lasting time.Duration) {
	if x.rng.IntN(2) == 0 {
		x.c.HangDisk(node, lasting)
	} else {
		x.c.SlowDisk(node, 10, lasting)
	}
}
