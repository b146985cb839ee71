// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"cmp"
	"slices"
	"time"

	"github.com/weftraft/weft/ecraft"
)

// Outage is the effect on clients of a follower that stops in the middle of runs of 64 KB entries
// at 70% load: the medians of all runs, and the worst run.
type Outage struct {
	Network string        `json:"network"`
	What    string        `json:"what"` // died, or paused for how long
	Side    string        `json:"side"`
	Runs    int           `json:"runs"`
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	Max     time.Duration `json:"max_ns"`
	Stall   time.Duration `json:"longest_without_commit_ns"`
	Extra   float64       `json:"rider_bytes_per_payload_byte"`
	Riders  int           `json:"carriers"`

	// WorstStall and WorstExtra are the worst of all runs.
	WorstStall time.Duration `json:"worst_longest_without_commit_ns"`
	WorstExtra float64       `json:"worst_rider_bytes_per_payload_byte"`
}

const outageAt = 1500 * ms

var outageNetworks = []string{"lan1g", "reg1g", "jitter"}

// outageRuns is how many runs an outage has, each with its own seed.
func (o *Options) outageRuns() int {
	switch {
	case o.Cores:
		return 3
	case o.Quick:
		return 10
	}
	return 20
}

// outages stops the last follower of a group of five.
func (o *Options) outages() (list []Outage, err error) {
	const n, size = 5, 64 << 10
	for _, name := range outageNetworks {
		net := named(n, name)
		for _, pause := range []time.Duration{0, 300 * ms} {
			for _, side := range []Side{ours(), published(), fixedLevel(ecraft.Levels(n))} {
				if o.Cores && side.general() {
					continue
				}
				out, err := o.outage(net, size, pause, side)
				if err != nil {
					return nil, err
				}
				list = append(list, out)
			}
		}
	}
	return list, nil
}

// outage stops a follower for good, or for a while, in several runs.
func (o *Options) outage(net Network, size int, pause time.Duration, side Side) (Outage, error) {
	var runs []Outage
	for i := range o.outageRuns() {
		again := *o
		again.Seed += uint64(i)
		one, err := again.outageOnce(net, size, pause, side)
		if err != nil {
			return one, err
		}
		runs = append(runs, one)
	}
	out := runs[0]
	out.Runs = len(runs)
	out.P50, _ = middle(runs, func(x Outage) time.Duration { return x.P50 })
	out.P99, _ = middle(runs, func(x Outage) time.Duration { return x.P99 })
	out.Max, _ = middle(runs, func(x Outage) time.Duration { return x.Max })
	out.Riders, _ = middle(runs, func(x Outage) int { return x.Riders })
	out.Stall, out.WorstStall = middle(runs, func(x Outage) time.Duration { return x.Stall })
	out.Extra, out.WorstExtra = middle(runs, func(x Outage) float64 { return x.Extra })
	return out, nil
}

// middle returns the median of a figure of several runs, and the largest.
func middle[T cmp.Ordered](runs []Outage, of func(Outage) T) (median, most T) {
	list := make([]T, len(runs))
	for i, r := range runs {
		list[i] = of(r)
	}
	slices.Sort(list)
	return list[len(list)/2], list[len(list)-1]
}

// outageOnce stops a follower in a single run.
func (o *Options) outageOnce(net Network, size int, pause time.Duration, side Side) (Outage, error) {
	rate := 0.7 * best(&net, float64(size))
	last := len(net.Links) - 1
	t := trial{mix: one("", size), rate: rate, entries: int(rate * 4.5), seed: o.Seed, limit: time.Minute}
	t.during = func(c Cluster) {
		c.Schedule(outageAt, func() {
			if pause == 0 {
				c.Kill(last)
			} else {
				c.Pause(last, outageAt+pause)
			}
		})
	}
	c, err := o.cluster(net, side)
	if err != nil {
		return Outage{}, err
	}
	r := t.run(c)
	out := Outage{Network: net.Name, What: "dead", Side: side.Name, Stall: r.longest, Riders: r.usage.Hedges,
		Extra: float64(r.usage.Hedged) / float64(r.usage.Payload)}
	if pause > 0 {
		out.What = "paused " + pause.String()
	}
	took := make([]time.Duration, 0, len(r.took))
	for _, e := range r.took {
		took = append(took, e.took)
	}
	slices.Sort(took)
	out.P50, out.P99, out.Max = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	return out, c.Err()
}

// Shift tells how soon a side adapted after a change of the network.
type Shift struct {
	What string `json:"what"`
	// Settled is the time that the side took to learn: the end, after the change, of the last span
	// in which entries were more than a quarter slower than at the level that is best from then on.
	Settled time.Duration `json:"settled_ns"`
	// Before and After are mean times divided by the mean times of the best fixed level of each
	// phase.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// change is a shift of the network.
type change struct {
	name string
	size int
	do   func(net *Network)
}

var changes = []change{
	{"the interface has a tenth left", 64 << 10, func(net *Network) { net.Egress = gbit / 10 }},
	{"one link has a twentieth left", 64 << 10, func(net *Network) { net.Links[len(net.Links)-1].Rate = gbit / 80 }},
	{"a half of the links has a tenth left", 64 << 10, func(net *Network) {
		for i := range net.Links[:len(net.Links)/2] {
			net.Links[i].Rate = gbit / 40
		}
	}},
	{"delays of 100 us become 5 ms", 16 << 10, func(net *Network) {
		for i := range net.Links {
			net.Links[i].Delay = 5 * ms
		}
	}},
	{"one follower moves 10 ms away", 4 << 10, func(net *Network) { net.Links[0].Delay = 10 * ms }},
}

const (
	shiftAt   = 1500 * ms
	shiftSpan = 50 * ms
	shiftEnd  = 3500 * ms
)

// eachChange visits all changes of a network of five, and the ways back.
func eachChange(visit func(name string, from, to Network, size int) error) error {
	from := named(5, "lan1g")
	for _, ch := range changes {
		to := from
		to.Links = slices.Clone(from.Links)
		ch.do(&to)
		if err := visit(ch.name, from, to, ch.size); err != nil {
			return err
		}
		if err := visit(ch.name+": and back", to, from, ch.size); err != nil {
			return err
		}
	}
	return nil
}

// shifts changes a network of five, and changes the network back.
func (o *Options) shifts() (list []Shift, err error) {
	err = eachChange(func(name string, from, to Network, size int) error {
		s, err := o.shift(name, from, to, size)
		list = append(list, s)
		return err
	})
	return list, err
}

// shift runs all sides through a change, at half of the capacity of the slower network.
func (o *Options) shift(name string, a, b Network, size int) (Shift, error) {
	var runs []run
	for _, side := range append([]Side{ours()}, fixedLevels(5)...) {
		r, err := o.throughChange(a, b, size, side)
		if err != nil {
			return Shift{}, err
		}
		runs = append(runs, r)
	}
	s := Shift{What: name}
	_, s.Before = fixed(runs, 500*ms, shiftAt)
	best, after := fixed(runs, shiftEnd-time.Second, shiftEnd)
	s.After = after
	for at := shiftAt; at < shiftEnd-shiftSpan; at += shiftSpan {
		ours, theirs := runs[0].between(at, at+shiftSpan), best.between(at, at+shiftSpan)
		if float64(ours) > 1.25*float64(theirs)+float64(200*us) {
			s.Settled = at + shiftSpan - shiftAt
		}
	}
	return s, nil
}

// throughChange runs a side through the change.
func (o *Options) throughChange(a, b Network, size int, side Side) (run, error) {
	rate := 0.5 * min(best(&a, float64(size)), best(&b, float64(size)))
	t := trial{mix: one("", size), rate: rate, seed: o.Seed, limit: time.Minute}
	t.entries = int(rate * shiftEnd.Seconds())
	t.during = func(c Cluster) {
		c.Schedule(shiftAt, func() {
			c.Change(func(net *Network) { net.Egress, net.Links = b.Egress, append(net.Links[:0], b.Links...) })
		})
	}
	c, err := o.cluster(a, side)
	if err != nil {
		return run{}, err
	}
	return t.run(c), c.Err()
}

// fixed returns the best of all runs but the first in a span, and the first run's time divided by
// its time.
func fixed(runs []run, from, to time.Duration) (*run, float64) {
	best := &runs[1]
	for i := range runs[1:] {
		if r := &runs[i+1]; r.between(from, to) < best.between(from, to) {
			best = r
		}
	}
	return best, float64(runs[0].between(from, to)) / float64(best.between(from, to))
}
