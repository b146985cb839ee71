// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math/rand/v2"
	"time"
)

// Link is what lies between the leader and one follower, and its disk.
type Link struct {
	Rate   float64       // bytes a second; 0: only the leader's interface limits
	Delay  time.Duration // one way
	Jitter time.Duration // mean of what comes on top, exponential
	// Of all messages, a share of Stall is held up for StallTime, and what is
	// behind it on the connection too.
	Stall     float64
	StallTime time.Duration
	Sync      time.Duration // until what arrived is durable; one at a time
	Disk      float64       // bytes a second; 0: no limit
}

// Network is a leader's interface and the links behind it.
type Network struct {
	Name   string
	Group  string
	Egress float64 // bytes a second
	// Together has heartbeats wait behind entries, as on one connection.
	// Otherwise they pass by them.
	Together bool
	Links    []Link
}

const (
	gbit = 1e9 / 8
	ms   = time.Millisecond
	us   = time.Microsecond
)

// Groups of networks, in the order of the report.
const (
	Symmetric  = "symmetric"
	Asymmetric = "asymmetric"
	Stalls     = "stalls"
)

// Networks returns the networks of the table, for n nodes.
func Networks(n int) []Network {
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
		{Name: "lan10g", Group: Symmetric, Egress: 10 * gbit, Links: all(Link{Delay: 50 * us})},
		{Name: "lan1g", Group: Symmetric, Egress: gbit, Links: all(lan)},
		{Name: "lan100m", Group: Symmetric, Egress: gbit / 10, Links: all(lan)},
		{Name: "reg10g", Group: Symmetric, Egress: 10 * gbit, Links: all(Link{Delay: 2500 * us, Jitter: 100 * us})},
		{Name: "reg1g", Group: Symmetric, Egress: gbit, Links: all(Link{Delay: 2500 * us, Jitter: 100 * us})},
		{Name: "wan200", Group: Symmetric, Egress: gbit / 5, Links: all(Link{Delay: 15 * ms, Jitter: 500 * us})},
		{Name: "fsync", Group: Symmetric, Egress: gbit, Links: all(Link{Delay: 100 * us, Sync: ms, Disk: 300e6})},
		{Name: "jitter", Group: Symmetric, Egress: gbit, Links: all(Link{Delay: 2500 * us, Jitter: 2500 * us})},

		{Name: "slow4", Group: Asymmetric, Egress: gbit, Links: last(all(lan), 1, func(_ int, l *Link) { l.Rate = gbit / 16 })},
		{Name: "slow20", Group: Asymmetric, Egress: gbit, Links: last(all(lan), 1, func(_ int, l *Link) { l.Rate = gbit / 80 })},
		{Name: "slowf", Group: Asymmetric, Egress: gbit, Links: last(all(lan), far, func(_ int, l *Link) { l.Rate = gbit / 40 })},
		{Name: "uneq", Group: Asymmetric, Egress: gbit, Links: last(all(lan), n-1, func(i int, l *Link) { l.Rate = gbit / float64(2+3*i) })},
		{Name: "geo", Group: Asymmetric, Egress: gbit, Links: last(all(Link{Delay: 500 * us, Jitter: 50 * us}), far,
			func(i int, l *Link) { l.Delay, l.Jitter = time.Duration(15+10*i)*ms, 500*us })},
		{Name: "far1", Group: Asymmetric, Egress: gbit, Links: last(all(lan), 1, func(_ int, l *Link) { l.Delay, l.Jitter = 10*ms, 300*us })},

		{Name: "stalls", Group: Stalls, Egress: gbit, Links: all(Link{Delay: 100 * us, Stall: 0.01, StallTime: 10 * ms})},
	}
}

// pipe is a direction of a connection in virtual time: in order, one by one.
type pipe struct {
	free    time.Duration // when its link has sent all so far
	arrived time.Duration // when what was sent last arrives
}

// transfer is how long bytes take at a rate.
func transfer(bytes int, rate float64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(bytes) / rate * float64(time.Second))
}

// late draws what a message is held up on its way.
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
