// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weftraft/weft/ecraft"
)

// mix is a distribution of the sizes of payloads.
type mix struct {
	Name  string
	Sizes []int
	Share []float64 // of the entries, adding up to 1
}

// one is a mix with a single size.
func one(name string, size int) mix { return mix{name, []int{size}, []float64{1}} }

// mixes are the payloads of the table.
var mixes = []mix{
	one("8B", 8), one("256B", 256), one("1KB", 1<<10), one("4KB", 4<<10), one("16KB", 16<<10), one("64KB", 64<<10),
	one("256KB", 256<<10), one("1MB", 1<<20), one("4MB", 4<<20),
	{"small-mix", []int{128, 2 << 10, 32 << 10}, []float64{0.5, 0.4, 0.1}},
	{"large-mix", []int{1 << 10, 64 << 10, 1 << 20}, []float64{0.6, 0.3, 0.1}},
}

func (m *mix) draw(rng *rand.Rand) int {
	x := rng.Float64()
	for i, s := range m.Share {
		if x < s || i == len(m.Share)-1 {
			return m.Sizes[i]
		}
		x -= s
	}
	return m.Sizes[0]
}

func (m *mix) mean() float64 {
	var sum float64
	for i, s := range m.Sizes {
		sum += float64(s) * m.Share[i]
	}
	return sum
}

// load is a way to propose: Clients clients, each when its last entry has committed; or random
// arrivals at a share of the capacity of the best level.
type load struct {
	Name    string
	Clients int
	Share   float64
}

// loads are the loads of the table.
var loads = []load{
	{Name: "5 clients", Clients: 5}, {Name: "50 clients", Clients: 50},
	{Name: "30%", Share: 0.30}, {Name: "70%", Share: 0.70}, {Name: "95%", Share: 0.95},
}

// capacity is the number of entries a second that a level can carry.
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
	slowest := each[level+n/2-2] // the last link that the level needs
	return 1 / max(slowest, float64(n-1)*bytes/net.Egress, net.Processor.holds(n, size, bytes, level > 1 && size >= threshold).Seconds())
}

// best is the capacity of the best level.
func best(net *Network, size float64) float64 {
	rate := 0.0
	for level := 1; level <= ecraft.Levels(len(net.Links)+1); level++ {
		rate = max(rate, capacity(net, size, level))
	}
	return rate
}

// scale is the length of runs.
type scale struct {
	Time     time.Duration // of each run, unless the run has too many or too few entries
	Min, Max int           // entries
}

// trial is the plan of a run: the proposals, and the events during the run.
type trial struct {
	mix     mix
	clients int     // number of clients in a closed loop; 0: an open loop
	rate    float64 // of the open loop, entries a second
	entries int
	skip    int // entries at the beginning that are not counted
	seed    uint64
	limit   time.Duration // time at which the run is given up
	during  func(c Cluster)
}

// run is the result of a run, measured on the entries that are counted.
type run struct {
	perSecond float64
	mean, p99 time.Duration
	longest   time.Duration // between two commits, while entries waited
	took      []timing      // by entry
	usage     Usage
}

// timing is the time at which an entry was proposed, and the time until its commit.
type timing struct{ at, took time.Duration }

// processorTime is the length of runs in which processors take time.
const processorTime = 8 * time.Second

// roundTrips is the least length of a run. A quarter of most runs is not counted.
const roundTrips = 4

// drive runs a cell's load.
func drive(c Cluster, net *Network, mix mix, load load, s scale, seed uint64) run {
	rate := best(net, mix.mean())
	t := trial{mix: mix, clients: load.Clients, rate: rate * load.Share, seed: seed}
	t.entries = int(min(max(rate*s.Time.Seconds(), float64(s.Min)), float64(s.Max)))
	// A run lasts at least some round trips of the farthest link, because a leader knows nothing
	// about followers that have not answered yet.
	for _, l := range net.Links {
		t.entries = max(t.entries, int(rate*roundTrips*2*l.Delay.Seconds()))
	}
	if load.Clients > 0 {
		t.entries = max(s.Min, t.entries/2) + load.Clients
	}
	if load.Share < 0.9 {
		t.skip = t.entries / 4
	}
	if net.Processor != nil {
		// How busy processors are, a host knows after some looks only.
		t.entries = int(min(max(rate*processorTime.Seconds(), 5*float64(s.Min)), 5*float64(s.Max)))
		if t.skip > 0 || load.Clients > 0 {
			t.skip = t.entries / 2
		}
	}
	t.limit = max(100*time.Duration(float64(t.entries)/rate*float64(time.Second)), 100*s.Time)
	return t.run(c)
}

// bench is the state of a running trial.
type bench struct {
	trial
	c        Cluster
	rng      *rand.Rand
	proposed int
	done     int
	number   map[uint64]int // by index: riders take indexes as well
	from, to time.Duration  // of the commits that are counted
	lastAt   time.Duration
	out      run
}

func (t trial) run(c Cluster) run {
	b := &bench{trial: t, c: c, rng: rand.New(rand.NewPCG(t.seed, 99)), number: map[uint64]int{}}
	b.out.took = make([]timing, t.entries)
	c.OnCommit(b.committed)
	if t.during != nil {
		t.during(c)
	}
	if t.clients == 0 {
		c.Schedule(c.Now(), b.arrive)
	}
	for range t.clients {
		c.Schedule(c.Now(), b.propose)
	}
	for b.done < t.entries && c.Now() < t.limit && c.Step() {
	}
	return b.result()
}

func (b *bench) propose() {
	if b.proposed == b.entries {
		return
	}
	if b.proposed == b.done {
		b.lastAt = b.c.Now() // no entry waited
	}
	size := b.mix.draw(b.rng)
	index := b.c.Propose(size)
	b.out.took[b.proposed].at = b.c.Now()
	b.number[index] = b.proposed
	b.proposed++
}

func (b *bench) arrive() {
	b.propose()
	if b.proposed < b.entries {
		b.c.Schedule(b.c.Now()+time.Duration(b.rng.ExpFloat64()/b.rate*float64(time.Second)), b.arrive)
	}
}

func (b *bench) committed(index uint64, now time.Duration) {
	i, ok := b.number[index]
	if !ok {
		return
	}
	delete(b.number, index)
	b.done++
	b.out.took[i].took = now - b.out.took[i].at
	if i == b.skip {
		b.from = now
	}
	if i >= b.skip {
		b.to = now
		b.out.longest = max(b.out.longest, now-b.lastAt)
	}
	b.lastAt = now
	if b.clients > 0 {
		b.c.Schedule(now, b.propose)
	}
}

func (b *bench) result() run {
	r := b.out
	if b.done < b.entries {
		b.to = b.c.Now() // given up
	}
	r.usage = b.c.Usage()
	for _, i := range b.number { // an entry that never committed was late by at least this time
		r.took[i].took = b.c.Now() - r.took[i].at
	}
	r.took = r.took[:b.proposed]
	counted := make([]time.Duration, 0, len(r.took))
	var sum time.Duration
	for _, t := range r.took[min(b.skip, len(r.took)):] {
		counted = append(counted, t.took)
		sum += t.took
	}
	r.perSecond = float64(max(b.done-b.skip-1, 1)) / max(b.to-b.from, us).Seconds()
	if len(counted) > 0 {
		slices.Sort(counted)
		r.mean, r.p99 = sum/time.Duration(len(counted)), counted[len(counted)*99/100]
	}
	return r
}

// between returns the mean time of the entries proposed in a span; 0: none.
func (r *run) between(from, to time.Duration) time.Duration {
	var sum time.Duration
	n := 0
	for _, t := range r.took {
		if t.at >= from && t.at < to {
			sum += t.took
			n++
		}
	}
	return sum / time.Duration(max(n, 1))
}
