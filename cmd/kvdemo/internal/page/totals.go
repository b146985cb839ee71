// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"maps"
	"time"
)

// totals are the counters of a node, added up over its processes.
type totals struct {
	sent           map[uint64]uint64 // bytes by peer
	writes, reads  Counts
	delayed, delay uint64
	joined, pushed uint64
}

func totalsOf(n *Node) totals {
	t := totals{sent: make(map[uint64]uint64, len(n.Links)), writes: n.Writes, reads: n.Reads}
	for _, l := range n.Links {
		t.sent[l.Peer] = l.Sent
	}
	if c := n.Coding; c != nil {
		t.delayed, t.delay, t.joined, t.pushed = c.Delayed, c.DelayUs, c.Joined, c.Pushed
	}
	return t
}

// since returns what was counted after before.
func (t totals) since(before totals) totals {
	d := totals{
		sent: make(map[uint64]uint64, len(t.sent)), writes: t.writes.since(before.writes), reads: t.reads.since(before.reads),
		delayed: growth(before.delayed, t.delayed), delay: growth(before.delay, t.delay),
		joined: growth(before.joined, t.joined), pushed: growth(before.pushed, t.pushed),
	}
	for peer, n := range t.sent {
		d.sent[peer] = growth(before.sent[peer], n)
	}
	return d
}

// plus returns the sum.
func (t totals) plus(d totals) totals {
	sum := t
	sum.sent = maps.Clone(t.sent)
	if sum.sent == nil {
		sum.sent = map[uint64]uint64{}
	}
	for peer, n := range d.sent {
		sum.sent[peer] += n
	}
	sum.writes.add(d.writes)
	sum.reads.add(d.reads)
	sum.delayed += d.delayed
	sum.delay += d.delay
	sum.joined += d.joined
	sum.pushed += d.pushed
	return sum
}

// ledger adds counters up, and remembers the sums of the last seconds.
type ledger struct {
	last map[uint64]*Node // of the present process of a node
	sums map[uint64]totals
	past []point // oldest first

	history []Sample
	sampled point // the end of the last Sample
}

// point is the sums at a time. Maps in it are not changed afterwards.
type point struct {
	at   time.Time
	sums map[uint64]totals
}

func newLedger() *ledger { return &ledger{last: map[uint64]*Node{}, sums: map[uint64]totals{}} }

// note takes in the reports of one moment. Counters begin again in a new process.
func (l *ledger) note(at time.Time, nodes map[uint64]*Node) {
	for id, n := range nodes {
		now, before := totalsOf(n), l.last[id]
		switch {
		case before == nil || before.PID != n.PID:
			l.sums[id] = l.sums[id].plus(now)
		default:
			l.sums[id] = l.sums[id].plus(now.since(totalsOf(before)))
		}
		l.last[id] = n
	}
	l.past = append(l.past, point{at, maps.Clone(l.sums)})
	for len(l.past) > 2 && !l.past[1].at.After(at.Add(-latencyWindow)) {
		l.past = l.past[1:]
	}
	l.sample()
}

// A history has a sample for each sampleTime, or a little more.
const (
	sampleTime = 900 * time.Millisecond
	maxSamples = 120
)

// sample adds to the history what was counted since the last sample.
func (l *ledger) sample() {
	now := l.past[len(l.past)-1]
	took := now.at.Sub(l.sampled.at)
	if l.sampled.sums != nil && took < sampleTime {
		return
	}
	if l.sampled.sums != nil {
		n := uint64(0)
		for _, t := range now.since(l.sampled) {
			n += t.writes.sum()
		}
		l.history = append(l.history, Sample{AtMs: now.at.UnixMilli(), Writes: per(n, took.Seconds())})
		l.history = l.history[max(0, len(l.history)-maxSamples):]
	}
	l.sampled = now
}

// since returns the counts after an earlier point. A node that was unknown at that point
// counts from the first known point on.
func (p point) since(base point) map[uint64]totals {
	counted := make(map[uint64]totals, len(p.sums))
	for id, t := range p.sums {
		before, ok := base.sums[id]
		if !ok {
			before = t
		}
		counted[id] = t.since(before)
	}
	return counted
}

// window returns what was counted in the last d, or a little more, and in how many
// seconds.
func (l *ledger) window(d time.Duration) (counted map[uint64]totals, seconds float64) {
	if len(l.past) == 0 {
		return nil, 0
	}
	now := l.past[len(l.past)-1]
	base := l.past[0]
	for _, p := range l.past {
		if p.at.After(now.at.Add(-d)) {
			break
		}
		base = p
	}
	return now.since(base), now.at.Sub(base.at).Seconds()
}

// per returns a rate; 0 without a time.
func per(n uint64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}
