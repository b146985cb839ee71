// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Link is the link between the leader and a follower, and the follower's disk.
type Link struct {
	Rate   float64       // bytes a second; 0: only the leader's interface limits
	Delay  time.Duration // in each direction
	Jitter time.Duration // mean of the additional delay, exponential
	// A share Stall of all messages is held up for StallTime, and so are the messages behind on the
	// connection.
	Stall     float64
	StallTime time.Duration
	Sync      time.Duration // until arrived entries are durable; one sync at a time
	Disk      float64       // bytes a second; 0: no limit
}

// Network is a leader's interface and the links to the followers.
type Network struct {
	Name   string
	Group  string
	Egress float64 // bytes a second
	Links  []Link
	// Processor is what a machine's processor takes for work; nil: no time.
	Processor *Processor
}

const (
	gbit = 1e9 / 8
	ms   = time.Millisecond
	us   = time.Microsecond
)

// Groups of networks, in the order of the report.
const (
	symmetric  = "symmetric"
	asymmetric = "asymmetric"
	stalls     = "stalls"
	processors = "processors"
)

// networks returns the networks of the table, for n nodes.
func networks(n int) []Network {
	all := func(l Link) []Link {
		links := make([]Link, n-1)
		for i := range links {
			links[i] = l
		}
		return links
	}
	// last changes the last k links.
	last := func(links []Link, k int, change func(i int, l *Link)) []Link {
		for i := range k {
			change(i, &links[len(links)-1-i])
		}
		return links
	}
	lan := Link{Delay: 100 * us}
	far := (n - 1) / 2 // as many as may fail
	return []Network{
		{Name: "lan10g", Group: symmetric, Egress: 10 * gbit, Links: all(Link{Delay: 50 * us})},
		{Name: "lan1g", Group: symmetric, Egress: gbit, Links: all(lan)},
		{Name: "lan100m", Group: symmetric, Egress: gbit / 10, Links: all(lan)},
		{Name: "reg10g", Group: symmetric, Egress: 10 * gbit, Links: all(Link{Delay: 2500 * us, Jitter: 100 * us})},
		{Name: "reg1g", Group: symmetric, Egress: gbit, Links: all(Link{Delay: 2500 * us, Jitter: 100 * us})},
		{Name: "wan200", Group: symmetric, Egress: gbit / 5, Links: all(Link{Delay: 15 * ms, Jitter: 500 * us})},
		{Name: "fsync", Group: symmetric, Egress: gbit, Links: all(Link{Delay: 100 * us, Sync: ms, Disk: 300e6})},
		{Name: "jitter", Group: symmetric, Egress: gbit, Links: all(Link{Delay: 2500 * us, Jitter: 2500 * us})},

		{Name: "slow4", Group: asymmetric, Egress: gbit, Links: last(all(lan), 1, func(_ int, l *Link) { l.Rate = gbit / 16 })},
		{Name: "slow20", Group: asymmetric, Egress: gbit, Links: last(all(lan), 1, func(_ int, l *Link) { l.Rate = gbit / 80 })},
		{Name: "slowf", Group: asymmetric, Egress: gbit, Links: last(all(lan), far, func(_ int, l *Link) { l.Rate = gbit / 40 })},
		{Name: "uneq", Group: asymmetric, Egress: gbit, Links: last(all(lan), n-1, func(i int, l *Link) { l.Rate = gbit / float64(2+3*i) })},
		{Name: "geo", Group: asymmetric, Egress: gbit, Links: last(all(Link{Delay: 500 * us, Jitter: 50 * us}), far,
			func(i int, l *Link) { l.Delay, l.Jitter = time.Duration(15+10*i)*ms, 500*us })},
		{Name: "far1", Group: asymmetric, Egress: gbit, Links: last(all(lan), 1, func(_ int, l *Link) { l.Delay, l.Jitter = 10*ms, 300*us })},

		{Name: "one-machine", Group: processors, Egress: 40 * gbit, Links: all(Link{Delay: 20 * us, Sync: ms}), Processor: measured(true)},
		{Name: "machines", Group: processors, Egress: 40 * gbit, Links: all(Link{Delay: 50 * us}), Processor: measured(false)},
		{Name: "machines-10g", Group: processors, Egress: 10 * gbit, Links: all(Link{Delay: 50 * us, Sync: ms}), Processor: measured(false)},
		{Name: "one-machine-100m", Group: processors, Egress: gbit / 10, Links: all(Link{Delay: 50 * us, Sync: ms}), Processor: measured(true)},

		{Name: "stalls", Group: stalls, Egress: gbit, Links: all(Link{Delay: 100 * us, Stall: 0.01, StallTime: 10 * ms})},
	}
}

// OneMachine is the network of n processes of one machine, with the processor that was measured, whose
// leaders send so many bytes a second.
func OneMachine(n int, egress float64) Network {
	net := named(n, "one-machine")
	net.Egress = egress
	return net
}

// named returns the network of a name, for n nodes.
func named(n int, name string) Network {
	all := networks(n)
	return all[slices.IndexFunc(all, func(net Network) bool { return net.Name == name })]
}

// pipe is a direction of a connection in virtual time: messages arrive in order, one by one.
type pipe struct {
	free    time.Duration // when its link has sent all so far
	arrived time.Duration // when the last sent message arrives
}

// transfer is the time that bytes take at a rate.
func transfer(bytes int, rate float64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(bytes) / rate * float64(time.Second))
}

// late draws the delay of a message on its way.
func (l *Link) late(rng *rand.Rand) time.Duration {
	d := l.Delay
	if l.Jitter > 0 {
		d += time.Duration(rng.ExpFloat64() * float64(l.Jitter))
	}
	if l.Stall > 0 && rng.Float64() < l.Stall {
		d += l.StallTime
	}
	return d
}
