// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import "math"

// The estimator predicts when a follower will have answered a message.
//
// Its model is a line: base + held + cost * queued, where queued is every byte
// that waits on the connection up to the end of the message, not the message's
// own size alone. So the line is a model of a queue. It goes through the base
// round trip that heartbeats show. A line with a free intercept drifts when a
// link is saturated: every point on it explains the samples, and it ends at
// "all delay, no bytes", which asks for full copies exactly where they hurt.
//
// Times in here are seconds, rates are seconds per byte.

const (
	alphaBase = 1.0 / 16
	alphaHeld = 1.0 / 16

	// Samples are forgotten in forget seconds, but about minSamples stay.
	forget     = 0.150
	minSamples = 32

	// slowLink is a cost a byte before anything was seen: of 100 Mbit/s.
	slowLink = 1 / 12.5e6
	// firstSample is the weight of that guess, in bytes.
	firstSample = 1 << 10

	// window is the half of the time over which the least round trip counts.
	window = 5.0

	maxFlying     = 256 // messages remembered for each follower
	maxHeartbeats = 16
)

// flight is a message that was not answered yet.
type flight struct {
	last   uint64  // index of its last entry
	sentAt float64 // when
	queued float64 // bytes on the connection up to its end
	bytes  float64
	pred   float64 // the time its answer was expected to take
}

// link is what the leader knows of one follower.
type link struct {
	id uint64

	base float64 // round trip of few bytes
	held float64 // how long the follower has a message before it answers
	cost float64 // seconds a byte, in use

	// own is the cost of this connection alone: sumXY / sumXX, decaying.
	own, sumXX, sumXY float64
	sampled           float64 // when the sums were last brought to now
	private           bool    // own is in use, not the pool's

	// Invariant: 0 <= queue <= flying.
	queue   float64 // bytes thought to wait on the connection
	drained float64 // when that was so
	flying  float64 // bytes of all in out

	out        ring[flight]
	heartbeats ring[flight] // last is unused

	least, leastBefore float64 // round trips of this window and the one before
	windowFrom         float64
	heard              float64 // when anything came last
}

func (l *link) init(id uint64, followers int, now float64) {
	l.id = id
	l.cost = float64(followers) * slowLink
	l.own = l.cost
	l.sumXX = firstSample * firstSample
	l.sumXY = l.cost * l.sumXX
	l.sampled, l.drained, l.heard, l.windowFrom = now, now, now, now
	l.least, l.leastBefore = math.Inf(1), math.Inf(1)
	l.out.init(maxFlying)
	l.heartbeats.init(maxHeartbeats)
}

// forgetFlights drops what was on its way: a new term, a new connection.
func (l *link) forgetFlights(now float64) {
	l.out.clear()
	l.heartbeats.clear()
	l.queue, l.flying, l.drained, l.heard = 0, 0, now, now
}

// drain lets the queue's model run up to now.
func (l *link) drain(now float64) {
	if now > l.drained {
		l.queue -= (now - l.drained) / l.cost
		l.drained = now
	}
	l.queue = max(0, min(l.queue, l.flying))
}

func (l *link) sent(last uint64, bytes, now float64) {
	// A resend: what was sent from there on is on its way once more, or lost.
	for l.out.n > 0 && l.out.back().last >= last {
		l.flying -= l.out.popBack().bytes
	}
	l.drain(now)
	l.queue += bytes
	l.flying += bytes
	m := flight{last, now, l.queue, bytes, l.base + l.held + l.queue*l.cost}
	if !l.out.push(m) {
		// Too many to tell apart: the newest become one message.
		b := l.out.back()
		m.bytes += b.bytes
		*b = m
	}
}

// acked takes an answer. ok is false if it answers nothing that was in flight.
func (l *link) acked(index uint64, held, now float64) (m flight, ok bool) {
	l.heard = now
	for l.out.n > 0 && l.out.front().last <= index {
		m, ok = l.out.popFront(), true
		l.flying -= m.bytes
	}
	if l.out.n == 0 {
		l.flying = 0 // no rounding error stays
	}
	if !ok {
		return m, false
	}
	t := max(0, now-m.sentAt-held)
	l.held += (held - l.held) * alphaHeld
	l.learn(t, m.queued, now)
	return m, true
}

func (l *link) heartbeatSent(now float64) {
	l.drain(now)
	if l.heartbeats.n == maxHeartbeats {
		l.heartbeats.popFront()
	}
	l.heartbeats.push(flight{sentAt: now, queued: l.queue})
}

func (l *link) heartbeatAnswered(now float64) {
	l.heard = now
	if l.heartbeats.n == 0 {
		return
	}
	h := l.heartbeats.popFront()
	t := now - h.sentAt
	l.lowest(t, now)
	least := min(l.least, l.leastBefore)
	seen := min(max(t-h.queued*l.cost, least), 2*least+50e-6)
	if l.base == 0 {
		l.base = seen
	}
	l.base += (seen - l.base) * alphaBase
	if h.queued > 0 {
		l.learn(t, h.queued, now)
	}
}

// lowest keeps the least round trip of the last 5 to 10 seconds.
func (l *link) lowest(t, now float64) {
	if now-l.windowFrom >= window {
		l.least, l.leastBefore, l.windowFrom = math.Inf(1), l.least, now
	}
	l.least = min(l.least, t)
}

// learn takes the time t that x queued bytes took, the follower's own left out.
func (l *link) learn(t, x, now float64) {
	w := max(math.Exp(-(now-l.sampled)/forget), 1-1.0/minSamples)
	// A stall must not look like a slow link.
	y := min(max(t-l.base, -l.base/2), 3*x*l.cost+l.base/2+20e-6)
	l.sumXX = l.sumXX*w + x*x
	l.sumXY = l.sumXY*w + x*y
	l.own = max(0, l.sumXY) / l.sumXX
	l.sampled = now
}

// overdue is by how much the oldest message is later than expected, at least.
func (l *link) overdue(now float64) float64 {
	if l.out.n == 0 {
		return 0
	}
	m := l.out.front()
	return now - max(m.sentAt, l.heard) - 1.25*m.pred
}

// ring is a queue of a fixed size that allocates once.
type ring[T any] struct {
	buf     []T
	head, n int
}

func (r *ring[T]) init(size int) { r.buf = make([]T, size) }
func (r *ring[T]) clear()        { r.head, r.n = 0, 0 }
func (r *ring[T]) front() *T     { return &r.buf[r.head] }
func (r *ring[T]) back() *T      { return &r.buf[(r.head+r.n-1)%len(r.buf)] }

func (r *ring[T]) push(v T) bool {
	if r.n == len(r.buf) {
		return false
	}
	r.n++
	*r.back() = v
	return true
}

func (r *ring[T]) popFront() T {
	v := *r.front()
	r.head, r.n = (r.head+1)%len(r.buf), r.n-1
	return v
}

func (r *ring[T]) popBack() T {
	v := *r.back()
	r.n--
	return v
}
