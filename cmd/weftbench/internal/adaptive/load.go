// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weftraft/weft/ecraft"
)

// Mix is how large payloads are.
type Mix struct {
	Name  string
	Sizes []int
	Share []float64 // of the entries, adding up to 1
}

// one is a mix of one size.
func one(name string, size int) Mix { return Mix{name, []int{size}, []float64{1}} }

// Mixes are the payloads of the table.
var Mixes = []Mix{
	one("8B", 8), one("256B", 256), one("1KB", 1<<10), one("4KB", 4<<10), one("16KB", 16<<10), one("64KB", 64<<10),
	one("256KB", 256<<10), one("1MB", 1<<20), one("4MB", 4<<20),
	{"small-mix", []int{128, 2 << 10, 32 << 10}, []float64{0.5, 0.4, 0.1}},
	{"large-mix", []int{1 << 10, 64 << 10, 1 << 20}, []float64{0.6, 0.3, 0.1}},
}

func (m *Mix) draw(rng *rand.Rand) int {
	x := rng.Float64()
	for i, s := range m.Share {
		if x < s || i == len(m.Share)-1 {
			return m.Sizes[i]
		}
		x -= s
	}
	return m.Sizes[0]
}

func (m *Mix) mean() float64 {
	var sum float64
	for i, s := range m.Sizes {
		sum += float64(s) * m.Share[i]
	}
	return sum
}

// Load is how clients propose: Clients of them, each when its last entry has
// committed; or, at random, a share of what the best level can carry.
type Load struct {
	Name    string
	Clients int
	Share   float64
}

// Loads are those of the table.
var Loads = []Load{
	{Name: "5 clients", Clients: 5}, {Name: "50 clients", Clients: 50},
	{Name: "30%", Share: 0.30}, {Name: "70%", Share: 0.70}, {Name: "95%", Share: 0.95},
}

// capacity is how many entries a second a level can carry.
func capacity(net *Network, size float64, level int) float64 {
	n := len(net.Links) + 1
	l := ecraft.NewLayout(n, n-1)
	bytes := size + messageBytes
	if level > 1 && size >= threshold {
		bytes = float64(l.UnitsAt(level))*(size/float64(l.D)+unitBytes) + messageBytes
	}
	var each []float64
	for _, k := range net.Links {
		t := 0.0
		if k.Rate > 0 {
			t = bytes / k.Rate
		}
		if k.Disk > 0 {
			t = max(t, bytes/k.Disk)
		}
		each = append(each, t)
	}
	slices.Sort(each)
	slowest := each[level+n/2-2] // the last of those needed
	return 1 / max(slowest, float64(n-1)*bytes/net.Egress)
}

// best is the capacity of the best level.
func best(net *Network, size float64) float64 {
	rate := 0.0
	for level := 1; level <= ecraft.Levels(len(net.Links)+1); level++ {
		rate = max(rate, capacity(net, size, level))
	}
	return rate
}

// Scale is how long runs are.
type Scale struct {
	Time     time.Duration // of each, unless it has too many or too few entries
	Min, Max int           // entries
}

// run is what one run of a cell measured. Times are of entries that committed
// after the first part of the run, unless the first part is what matters.
type run struct {
	perSecond float64 // entries
	mean, p99 time.Duration
	usage     Usage
	levels    [8]int // how often each was chosen
}

// drive proposes by load until the run is over.
func drive(c Cluster, net *Network, mix Mix, load Load, s Scale, seed uint64) run {
	rng := rand.New(rand.NewPCG(seed, 99))
	rate := best(net, mix.mean())
	entries := int(min(max(rate*s.Time.Seconds(), float64(s.Min)), float64(s.Max)))
	if load.Clients > 0 {
		entries = max(s.Min, entries/2) + load.Clients
	}
	took := make([]time.Duration, 0, entries)
	starts := make([]time.Duration, entries+1)
	proposed, done := 0, 0
	// Riders take indexes too, so what was proposed is found by index.
	number := make(map[uint64]int, 64)
	propose := func() {
		if proposed == entries {
			return
		}
		starts[proposed] = c.Now()
		size := mix.draw(rng)
		proposed++
		number[c.Propose(size)] = proposed - 1
	}
	var from, to time.Duration
	skip := entries / 4
	if load.Share > 0.9 {
		skip = 0
	}
	c.OnCommit(func(index uint64, now time.Duration) {
		i, ok := number[index]
		if !ok {
			return
		}
		delete(number, index)
		done++
		switch {
		case i == skip:
			from = now
		case i > skip:
			to = now
		}
		if i >= skip {
			took = append(took, now-starts[i])
		}
		if load.Clients > 0 {
			c.Schedule(now, propose)
		}
	})
	if load.Clients > 0 {
		for range load.Clients {
			c.Schedule(c.Now(), propose)
		}
	} else {
		var next func()
		next = func() {
			propose()
			if proposed < entries {
				c.Schedule(c.Now()+time.Duration(rng.ExpFloat64()/(rate*load.Share)*float64(time.Second)), next)
			}
		}
		c.Schedule(c.Now(), next)
	}
	limit := 100 * time.Duration(float64(entries)/rate*float64(time.Second))
	limit = max(limit, 100*s.Time)
	for done < entries && c.Now() < limit && c.Step() {
	}
	r := run{usage: c.Usage(), perSecond: float64(len(took)-1) / max(1e-9, (to-from).Seconds())}
	for _, i := range number { // what never committed was late by so much at least
		took = append(took, c.Now()-starts[i])
	}
	slices.Sort(took)
	var sum time.Duration
	for _, t := range took {
		sum += t
	}
	r.mean, r.p99 = sum/time.Duration(len(took)), took[len(took)*99/100]
	return r
}
