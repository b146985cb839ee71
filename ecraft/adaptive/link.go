// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"

	"github.com/weftraft/weft/ecraft/internal/ring"
)

// The estimator predicts when a follower will have answered a message.
//
// The model is a line: base + held + cost * queued, where queued is every byte that
// waits in front of the end of the message, not the message's own size alone. So the
// line is a model of a queue. There are two queues: the leader's interface, behind
// which all bytes of all connections wait (see nic), and a connection that is slower
// than the interface. A message waited in the queue that took longer.
//
// The line goes through the base round trip that heartbeats show. A line with a free
// intercept drifts when a link is saturated: every point of the line explains the
// samples, and the line ends at "all delay, no bytes", which asks for full copies
// exactly where they hurt.
//
// The queued bytes are counted, once the answer is there, from the times of answers:
// see served. A model of the queue would need the cost, and a wrong cost would confirm
// itself; the model is used only to look ahead.
//
// Times in here are seconds, costs are seconds a byte.

const (
	alphaBase = 1.0 / 16 // of heartbeats
	alphaHeld = 1.0 / 16

	// Samples are forgotten in forget seconds, but about minSamples stay.
	forget     = 0.150
	minSamples = 32

	// A sample may say that bytes cost at most clip times the estimate, and clipFloor:
	// a stall must not look like a slow link.
	clip      = 3
	clipFloor = 20e-6

	// explained is how many times longer than the bytes in front of it at the interface
	// a message may take if these bytes are to explain the time.
	explained = 2

	// telling is the weight from which on a sample tells of its connection.
	telling = 0.25

	// slowLink is a cost a byte before anything was seen: of 100 Mbit/s. It is
	// high, so a new leader begins with few bytes.
	slowLink = 1 / 12.5e6
	// firstSample is the weight of that guess, in bytes.
	firstSample = 1 << 10

	// farTrip is a round trip before anything was seen: across the world, about.
	// A new leader must not take its first answers for late.
	farTrip = 0.050

	// window is half the heartbeats over which the least round trip counts, and jump
	// the share that the base takes of a round trip that is far off.
	window = 4
	jump   = 0.5
	// baseSlack is the time that a heartbeat may take beyond twice the least.
	baseSlack = 50e-6

	maxFlying     = 256 // messages remembered for each follower
	maxHeartbeats = 16
)

// flight is a message that was not answered yet.
type flight struct {
	last   uint64  // index of its last entry
	sentAt float64 // when
	queued float64 // bytes on the connection up to its end, by the model
	bytes  float64
	pred   float64 // the time its answer was expected to take
	upTo   float64 // bytes ever sent on the connection, its own included
	all    float64 // bytes ever sent on all connections, its own included
	ahead  float64 // bytes at the interface up to its end, by the model
	work   float64 // once it was answered: how long bytes took, its own and those ahead
	late   float64 // and how much later than the base
}

// ackMark says how many bytes were answered by a time, and since when those of
// the last message were on their way by themselves.
type ackMark struct{ since, at, bytes float64 }

// heartbeat is the time of a heartbeat, and how long bytes in front of it take.
type heartbeat struct{ sentAt, wait float64 }

// link is what the leader knows of one follower.
type link struct {
	id uint64

	base float64 // round trip of few bytes
	seen bool    // base is no guess any more
	held float64 // how long the follower has a message before it answers
	cost float64 // seconds a byte, in use

	// own is the cost of its bytes by its answers: sumXY / sumXX, decaying. sumXA is
	// the same with the bytes in front of them at the interface.
	own, sumXX, sumXY, sumXA float64

	sampled float64 // when these sums were last brought to now
	shows   shown   // the interface by its answers
	probed  float64 // when a sample last told of this connection alone
	verdict verdict // whether it is slow when it seems so
	private bool    // it is slower than the interface
	late    average // how much later than base it answers
	spread  average // the variance of that
	crowded float64 // how much later than base a message among many comes, by chance

	// Invariant: 0 <= queue <= flying.
	queue   float64 // bytes thought to wait on the connection
	drained float64 // at this time
	flying  float64 // bytes of all in out
	sent    float64 // bytes ever

	out        ring.Ring[flight]
	acks       ring.Ring[ackMark] // answers of late
	marked     float64            // bytes answered before the oldest of acks
	heartbeats ring.Ring[heartbeat]

	least, leastBefore float64 // round trips of this window and the one before
	inWindow           int
	heard              float64 // when anything came last
	answered           uint64  // all entries up to here

	quiet   float64 // the longest silence of late
	spoken  float64 // answers of late
	spokeAt float64 // when the last one came
}

func (l *link) init(id uint64, followers int, now float64) {
	cost := float64(followers) * slowLink
	*l = link{id: id, base: farTrip, cost: cost, own: cost, sumXX: firstSample * firstSample, sumXY: cost * firstSample * firstSample,
		sumXA:   float64(followers) * firstSample * firstSample,
		shows:   shown{cost: slowLink, answers: 1, bytes: firstSample, at: now},
		sampled: now, probed: now, drained: now, heard: now - 2*silence, // gone, if the host says so
		least: math.Inf(1), leastBefore: math.Inf(1)}
	l.out.Init(maxFlying)
	l.acks.Init(2 * maxFlying)
	l.heartbeats.Init(maxHeartbeats)
}

// fresh reports whether nothing was learnt of the cost yet.
func (l *link) fresh() bool { return l.sumXX == firstSample*firstSample }

// forgetFlights drops what was on its way: a new term, a new connection.
func (l *link) forgetFlights(now float64) {
	l.out.Clear()
	l.acks.Clear()
	l.heartbeats.Clear()
	l.queue, l.flying, l.marked, l.drained, l.heard = 0, 0, l.sent, now, now-2*silence
	l.answered = 0
}

// drain lets the queue's model run up to now.
func (l *link) drain(now float64) {
	if now > l.drained {
		l.queue -= (now - l.drained) / l.cost
		l.drained = now
	}
	l.queue = max(0, min(l.queue, l.flying))
}

// send notes a message that was handed to the interface.
func (l *link) send(last uint64, bytes, now float64, n *nic) {
	l.drain(now)
	// A resend: what was sent from there on is on its way once more, or lost.
	for l.out.Len() > 0 && l.out.Back().last >= last {
		b := l.out.PopBack()
		l.flying -= b.bytes
		l.sent -= b.bytes
		l.queue = max(0, l.queue-b.bytes)
	}
	l.queue += bytes
	l.flying += bytes
	l.sent += bytes
	m := flight{last: last, sentAt: now, queued: l.queue, bytes: bytes, upTo: l.sent, all: n.sent, ahead: n.queue,
		pred: l.base + l.held + max(n.queue*n.cost, l.alone()*l.queue)}
	if !l.out.Push(m) {
		// Too many to tell apart: the newest become one message.
		b := l.out.Back()
		m.bytes += b.bytes
		*b = m
	}
}

// acked takes an answer; peers is how many share the leader's interface, n. ok
// is false if it answers nothing that was in flight.
func (l *link) acked(index uint64, held, now, peers float64, n *nic) (m flight, ok bool) {
	l.heard, l.answered = now, max(l.answered, index)
	oldest := now
	if l.out.Len() > 0 {
		oldest = l.out.Front().sentAt
	}
	for l.out.Len() > 0 && l.out.Front().last <= index {
		m, ok = l.out.PopFront(), true
		l.flying -= m.bytes
	}
	if l.out.Len() == 0 {
		l.flying = 0 // no rounding error stays
	}
	if !ok {
		return m, false
	}
	l.spoke(oldest, now)
	l.held += (held - l.held) * alphaHeld
	t, first := max(0, now-m.sentAt-held), !l.seen
	l.dropLost(m.sentAt, t)
	switch {
	case first:
		l.base, l.seen = t, true // and tells nothing of bytes
	case t < l.base/2:
		l.base += (t - l.base) * jump // it came nearer
	}
	m.queued = l.served(m, now)
	// What is known to have left is news of some messages only, and the model
	// forgets what it should not: what is ahead is the lesser.
	left := max(m.all-n.leftBy(m.sentAt), m.bytes)
	all := max(min(left, m.ahead), m.bytes)
	if !first {
		l.learn(t, m, now, peers, all, n.cost)
	}
	if at := now - held - l.base; n.left(at, m.all) && !first {
		// What is known to have left comes as late as answers do. So what stands
		// beside a time of which a crowd is taken off is all that is not known.
		if l.crowded == 0 {
			left = all
		}
		l.tell(t, left, now, n)
		n.adjust(at-l.crowded, m.all, now)
	}
	m.late = t - l.base
	m.work = max(all*n.cost, l.alone()*m.queued)
	// The model of the queue is put right downwards: a cost that was thought
	// too high leaves a queue that is not there.
	l.drain(now)
	l.queue = max(0, min(l.queue, m.queued+l.sent-m.upTo-(now-m.sentAt)/l.cost))
	return m, true
}

// dropLost forgets heartbeats that were sent a whole round trip before a message
// that is answered by now: they are lost. Their places would make the next ones
// look late for good, so what was learnt from them is not believed either.
func (l *link) dropLost(sentAt, trip float64) {
	for l.heartbeats.Len() > 0 && l.heartbeats.Front().sentAt < sentAt-trip {
		l.heartbeats.PopFront()
		l.base = min(l.base, trip)
		l.least, l.leastBefore, l.inWindow = math.Inf(1), math.Inf(1), 0
	}
}

// served is how many bytes were queued on the connection when m was sent, its own
// included: the bytes that were answered later than from an empty queue. Of a message
// that was just being sent the rest counts.
func (l *link) served(m flight, now float64) float64 {
	empty := m.sentAt + l.base + l.held
	since := empty
	for l.acks.Len() > 0 && (l.acks.Front().at <= empty || l.acks.Full()) {
		l.marked = l.acks.PopFront().bytes
	}
	done := l.marked
	if l.acks.Len() > 0 {
		f := l.acks.Front()
		if empty > f.since {
			done += (f.bytes - done) * (empty - f.since) / (f.at - f.since)
		}
		since = l.acks.Back().at
	}
	l.acks.Push(ackMark{since, now, m.upTo})
	return max(m.upTo-done, m.bytes)
}

// fade is the share of older sums that is left when a sample is added.
func fade(now, late float64) float64 {
	return max(math.Exp(-(now-late)/forget), 1-1.0/minSamples)
}

// alone is the cost of a byte on a connection that is slower than the interface.
func (l *link) alone() float64 {
	if l.private {
		return l.own
	}
	return 0
}

// line is the part of a time t that bytes may have taken, given the time predicted for
// them.
func (l *link) line(t, thought float64) float64 {
	return min(max(t-l.base-l.crowded/2, -l.base/2), clip*thought+l.base/2+clipFloor)
}

// learn takes the time t that m took, the follower's own left out. all is how
// many bytes were in front of it at the interface, on whatever connection, and
// egress what each of them costs.
func (l *link) learn(t float64, m flight, now, peers, all, egress float64) {
	decay := fade(now, l.sampled)
	l.sampled = now
	// A message that had less than an equal part of the bytes in front of it on its own
	// connection tells little of the connection, if all bytes explain the time of the
	// message.
	x, weight := m.queued, 1.0
	y := l.line(t, max(x*l.alone(), all*egress))
	if equal := all / peers; x < equal && y < explained*all*egress {
		weight = (x / equal) * (x / equal)
		decay = 1 - weight*(1-decay)
	}
	if weight > telling {
		l.probed = now
	}
	if l.private && weight > telling && x*l.own > l.base && y < x*l.own/2 {
		decay = min(decay, 0.5) // a slow link is not sent much, so what it shows counts
	}
	if weight > telling && l.seemsSlow(egress) && !l.fresh() && x*l.own > l.base {
		l.judge(t-l.base-l.crowded/2, x, now)
	}
	l.sumXX = l.sumXX*decay + weight*x*x
	l.sumXY = l.sumXY*decay + weight*x*y
	l.sumXA = l.sumXA*decay + weight*x*all
	l.own = max(0, l.sumXY) / l.sumXX
}

// heartbeatSent notes a heartbeat, and how long the bytes in front of it will take.
func (l *link) heartbeatSent(now float64, n *nic) {
	l.drain(now)
	n.drain(now)
	if l.heartbeats.Len() == maxHeartbeats {
		l.heartbeats.PopFront()
	}
	l.heartbeats.Push(heartbeat{now, max(n.queue*n.cost, l.alone()*l.queue)})
}

// heartbeatAnswered learns the base. Whether heartbeats wait behind entries or pass
// them by, the queue's possible time is taken off, but no more than leaves the recent
// least. So heartbeats say nothing of the cost: a host that sends heartbeats on a
// connection of their own would make bytes look free.
func (l *link) heartbeatAnswered(now float64) {
	l.heard = now
	if l.heartbeats.Len() == 0 {
		return
	}
	h := l.heartbeats.PopFront()
	t := now - h.sentAt
	if l.inWindow++; l.inWindow > window {
		l.least, l.leastBefore, l.inWindow = math.Inf(1), l.least, 1
	}
	l.least = min(l.least, t)
	least := min(l.least, l.leastBefore)
	seen := min(max(t-h.wait, least), 2*least+baseSlack)
	gain := alphaBase
	switch {
	case !l.seen, l.inWindow == 1 && math.IsInf(l.leastBefore, 1): // the first, or the first again
		gain, l.seen = 1, true
	case seen > 2*l.base || seen < l.base/2:
		gain = jump
	}
	l.base += (seen - l.base) * gain
}

// overdue is by how much the oldest message is later than expected, at least.
func (l *link) overdue(now float64) float64 {
	if l.out.Len() == 0 {
		return 0
	}
	m := l.out.Front()
	return now - max(m.sentAt, l.heard) - 1.25*m.pred
}
