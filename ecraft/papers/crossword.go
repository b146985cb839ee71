// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"cmp"
	"slices"
	"time"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/internal/ring"
)

// Crossword cuts a payload into m units, codes them into N, and gives server i the C units from i
// on, cyclically (Hu et al., 2025). An entry commits with N+1-C answers: any f of the servers may
// fail then. C = m is full copies.
//
// Weaker: neighbours' units overlap, so a follower is sent more units than f failures require: at N
// = 5 and C = 2 two thirds of a payload where one half would do. And a later leader may store the
// same entry with a smaller C in the place of a larger C, so that two leaders that fail in turn can
// lose the entry.
type Crossword struct {
	C int // 1..m; 0: m, full copies
}

// Name implements SetPolicy.
func (Crossword) Name() string { return "crossword-fixed" }

// AssignSets implements SetPolicy. If C needs more healthy servers than there are, AssignSets uses
// the C that they allow.
func (c Crossword) AssignSets(r *ecraft.Round, sets []ecraft.Set) SetPlan {
	n, f, healthy := servers(r)
	m := n - f
	count := c.C
	if count < 1 || count > m {
		count = m
	}
	count = min(max(count, n+1-healthy), m)
	for i := range sets {
		sets[i] = ecraft.Set{}
		for u := range count {
			sets[i].Add((i + 1 + u) % n)
		}
	}
	return SetPlan{Plan: ecraft.Plan{Level: m + 1 - count}, D: m, Quorum: n + 1 - count, Survives: f}
}

const (
	regressionSpan  = 2 * time.Second
	regressionEvery = 200 * time.Millisecond
	regressionMax   = 2048 // samples a follower
)

// CrosswordAdaptive picks C for each entry as published: for each follower a least-squares line
// from message size to response time, over the last two seconds, computed every 200 ms, without the
// slowest 5% of samples; the C whose last needed answer comes first by these lines. Before the
// first line, CrosswordAdaptive sends full copies.
type CrosswordAdaptive struct {
	links   map[uint64]*regression
	fits    []float64
	lastFit time.Duration
}

// regression is the samples of a follower and the line through the samples.
type regression struct {
	samples    ring.Ring[sample]
	flying     ring.Ring[flightSample]
	heartbeats ring.Ring[time.Duration]
	delay      float64 // seconds
	slope      float64 // seconds a byte
	known      bool
	sorted     []sample
}

type sample struct {
	at    time.Duration
	bytes float64
	took  float64
}

type flightSample struct {
	last  uint64
	at    time.Duration
	bytes float64
}

// NewCrosswordAdaptive returns the policy.
func NewCrosswordAdaptive() *CrosswordAdaptive {
	return &CrosswordAdaptive{links: map[uint64]*regression{}}
}

// Name implements SetPolicy.
func (*CrosswordAdaptive) Name() string { return "crossword" }

// AssignSets implements SetPolicy.
func (c *CrosswordAdaptive) AssignSets(r *ecraft.Round, sets []ecraft.Set) SetPlan {
	if r.Now-c.lastFit >= regressionEvery {
		c.lastFit = r.Now
		for _, l := range c.links {
			l.fit(r.Now)
		}
	}
	n, f, healthy := servers(r)
	m := n - f
	best, least := m, -1.0
	for count := m; count >= max(1, n+1-healthy); count-- {
		t, ok := c.predict(r, float64(count*((r.Size+m-1)/m)), n-count)
		if ok && (least < 0 || t < least) {
			best, least = count, t
		}
	}
	p := Crossword{C: best}.AssignSets(r, sets)
	p.Predicted = time.Duration(min(max(least, 0), 3600) * float64(time.Second))
	return p
}

// predict returns the time of the k-th answer to messages of this size.
func (c *CrosswordAdaptive) predict(r *ecraft.Round, bytes float64, k int) (float64, bool) {
	c.fits = c.fits[:0]
	for _, m := range r.Followers {
		if l := c.links[m.ID]; l != nil && l.known && m.Healthy {
			c.fits = append(c.fits, l.delay+l.slope*bytes)
		}
	}
	if len(c.fits) < k {
		return 0, false
	}
	slices.Sort(c.fits)
	return c.fits[k-1], true
}

// Reset implements Observer.
func (c *CrosswordAdaptive) Reset(time.Duration) {
	for _, l := range c.links {
		l.flying.Clear()
		l.heartbeats.Clear()
	}
}

// Joined implements Observer.
func (c *CrosswordAdaptive) Joined(member uint64, _ bool, _ time.Duration) {
	l := new(regression)
	l.samples.Init(regressionMax)
	l.flying.Init(regressionMax)
	l.heartbeats.Init(16)
	c.links[member] = l
}

// Left implements Observer.
func (c *CrosswordAdaptive) Left(member uint64) { delete(c.links, member) }

// Proposed implements Observer and has no effect.
func (*CrosswordAdaptive) Proposed(uint64, int, time.Duration) {}

// Committed implements Observer and has no effect.
func (*CrosswordAdaptive) Committed(uint64) {}

// QueueHint implements Observer and has no effect.
func (*CrosswordAdaptive) QueueHint(uint64, int, float64, time.Duration) {}

// Sent implements Observer.
func (c *CrosswordAdaptive) Sent(to, last uint64, bytes int, now time.Duration) {
	if l := c.links[to]; l != nil {
		l.flying.Push(flightSample{last, now, float64(bytes)})
	}
}

// Acked implements Observer. The time of a sample includes the time held at the follower, as in the
// paper's lines.
func (c *CrosswordAdaptive) Acked(from, index uint64, _, now time.Duration) {
	l := c.links[from]
	if l == nil {
		return
	}
	for l.flying.Len() > 0 && l.flying.Front().last <= index {
		s := l.flying.PopFront()
		l.add(sample{now, s.bytes, (now - s.at).Seconds()})
	}
}

// HeartbeatSent implements Observer.
func (c *CrosswordAdaptive) HeartbeatSent(to uint64, now time.Duration) {
	if l := c.links[to]; l != nil {
		l.heartbeats.Push(now)
	}
}

// HeartbeatAnswered implements Observer.
func (c *CrosswordAdaptive) HeartbeatAnswered(from uint64, now time.Duration) {
	if l := c.links[from]; l != nil && l.heartbeats.Len() > 0 {
		l.add(sample{now, 0, (now - l.heartbeats.PopFront()).Seconds()})
	}
}

func (l *regression) add(s sample) {
	if !l.samples.Push(s) {
		l.samples.PopFront()
		l.samples.Push(s)
	}
}

// fit draws the line through the samples of the window. Without samples the line stays.
func (l *regression) fit(now time.Duration) {
	for l.samples.Len() > 0 && now-l.samples.Front().at > regressionSpan {
		l.samples.PopFront()
	}
	l.sorted = l.sorted[:0]
	for i := range l.samples.Len() {
		l.sorted = append(l.sorted, *l.samples.At(i))
	}
	slices.SortFunc(l.sorted, func(a, b sample) int { return cmp.Compare(a.took, b.took) })
	kept := l.sorted[:len(l.sorted)-len(l.sorted)/20]
	if len(kept) == 0 {
		return
	}
	var x, y, xx, xy float64
	for _, s := range kept {
		x += s.bytes
		y += s.took
		xx += s.bytes * s.bytes
		xy += s.bytes * s.took
	}
	n := float64(len(kept))
	slope := 0.0
	if d := n*xx - x*x; d > 0 {
		slope = max(0, (n*xy-x*y)/d)
	}
	l.slope, l.delay, l.known = slope, max(0, (y-slope*x)/n), true
}
