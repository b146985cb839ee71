// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"

	"github.com/weftraft/weft/ecraft/internal/ring"
)

// The estimator predicts the time at which a follower will have answered a message.
//
// The model is a line: base + held + cost * queued, where queued is every byte that waits in front
// of the end of the message, not the message's own size alone. So the line is a model of a queue.
// There are two queues: the leader's interface, behind which all bytes of all connections wait (see
// nic), and a connection that is slower than the interface. A message waited in the queue that took
// longer.
//
// The line goes through the base round trip that heartbeats show. A line with a free intercept
// drifts when a link is saturated: every point of the line explains the samples, and the line ends
// at "all delay, no bytes", which asks for full copies exactly where they hurt.
//
// The queued bytes are counted after the answer, from the times of answers: see served. A model of
// the queue would need the cost, and a wrong cost would confirm itself; the model is used only to
// look ahead.
//
// Times in this file are seconds, costs are seconds a byte.

const (
	alphaBase = 1.0 / 16 // of heartbeats
	alphaHeld = 1.0 / 16

	// Samples are forgotten in forget seconds, but about minSamples stay.
	forget     = 0.150
	minSamples = 32

	// A sample can show a cost of at most clip times the estimate, and clipFloor: a stall must not
	// look like a slow link.
	clip      = 3
	clipFloor = 20e-6

	// explained bounds the time of a message, as a multiple of the time of the bytes in front of
	// the message at the interface, up to which these bytes explain the time.
	explained = 2

	// telling is the weight from which a sample shows its own connection.
	telling = 0.25

	// slowLink is the cost of a byte before the first sample: 100 Mbit/s. The cost is high, so a
	// new leader begins with few bytes.
	slowLink = 1 / 12.5e6
	// firstSample is the weight of the initial cost, in bytes.
	firstSample = 1 << 10

	// farTrip is a round trip before the first answer: across the world, about. A new leader must
	// not take its first answers for late.
	farTrip = 0.050

	// window is half the number of heartbeats over which the least round trip counts, and jump the
	// share by which the base moves towards a round trip that is far off.
	window = 4
	jump   = 0.5
	// baseSlack is the time that a heartbeat may take beyond twice the least.
	baseSlack = 50e-6

	maxFlying     = 256 // messages remembered for each follower
	maxHeartbeats = 16
)

// flight is a message without an answer.
type flight struct {
	last   uint64  // index of its last entry
	sentAt float64 // seconds
	queued float64 // bytes on the connection up to its end, by the model
	bytes  float64
	pred   float64 // predicted seconds to its answer
	upTo   float64 // bytes ever sent on the connection, its own included
	all    float64 // bytes ever sent on all connections, its own included
	ahead  float64 // bytes at the interface up to its end, by the model
	work   float64 // set by the answer: the time of bytes, the message's own bytes and the bytes ahead
	late   float64 // set by the answer: the delay beyond the base
}

// ackMark is the number of bytes answered by time at, and the time since when the bytes of the last
// message were alone on their way.
type ackMark struct{ since, at, bytes float64 }

// heartbeat is the time of a heartbeat, and the time of the bytes in front of the heartbeat.
type heartbeat struct{ sentAt, wait float64 }

// link is the leader's knowledge about a follower.
type link struct {
	id uint64
	// learner says that the link is for the pace of catching up alone. A learner is sent headers, and
	// its answers, for which nothing waits, tell nothing of the interface.
	learner bool

	base float64 // round trip of few bytes
	seen bool    // base is measured, not the initial value
	held float64 // time for which the follower has a message before the answer
	// delay is by how much longer than base and held answers take without the time of bytes.
	delay     float64
	delayedAt float64 // time of the last answer that showed it
	cost      float64 // seconds a byte, in use

	// own is the connection's cost of a byte by the answers: sumXY / sumXX, decaying. sumXA is like
	// sumXX, with the bytes in front of the messages at the interface.
	own, sumXX, sumXY, sumXA float64

	sampled float64 // time to which the sums refer
	shows   shown   // the interface by the follower's answers
	probed  float64 // time of the last sample that showed this connection alone
	verdict verdict // whether a connection that seems slow is slow
	private bool    // the connection is slower than the interface
	late    average // delay of the answers beyond the base
	spread  average // variance of late
	crowded float64 // random delay beyond base of a message among many

	// Invariant: 0 <= queue <= flying.
	queue   float64 // bytes that wait on the connection, by the model
	drained float64 // time to which queue refers
	flying  float64 // bytes of all in out
	sent    float64 // bytes of all time

	out        ring.Ring[flight]
	acks       ring.Ring[ackMark] // recent answers
	marked     float64            // bytes answered before the oldest of acks
	heartbeats ring.Ring[heartbeat]

	least, leastBefore float64 // least round trip of this window and of the window before
	inWindow           int
	heard              float64 // time of the last message from the follower
	answered           uint64  // all entries up to this index are answered

	busy    float64 // share of time for which the follower's processors are busy
	quiet   float64 // the longest recent silence of a follower whose answer was due
	spoken  float64 // number of recent answers
	spokeAt float64 // time of the last answer
}

func (l *link) init(id uint64, followers int, now float64) {
	cost := float64(followers) * slowLink
	*l = link{id: id, base: farTrip, cost: cost, own: cost, sumXX: firstSample * firstSample, sumXY: cost * firstSample * firstSample,
		sumXA:   float64(followers) * firstSample * firstSample,
		shows:   shown{cost: slowLink, answers: 1, bytes: firstSample, at: now},
		sampled: now, probed: now, drained: now, heard: now - 2*silence, // gone, if the host calls the follower unhealthy
		least: math.Inf(1), leastBefore: math.Inf(1)}
	l.out.Init(maxFlying)
	l.acks.Init(2 * maxFlying)
	l.heartbeats.Init(maxHeartbeats)
}

// fresh reports whether no sample has shown the cost yet.
func (l *link) fresh() bool { return l.sumXX == firstSample*firstSample }

// forgetFlights drops the messages on their way, after a new term or a new connection.
func (l *link) forgetFlights(now float64) {
	l.out.Clear()
	l.acks.Clear()
	l.heartbeats.Clear()
	l.queue, l.flying, l.marked, l.drained, l.heard = 0, 0, l.sent, now, now-2*silence
	l.answered = 0
}

// drain advances the model of the queue to now.
func (l *link) drain(now float64) {
	if now > l.drained {
		l.queue -= (now - l.drained) / l.cost
		l.drained = now
	}
	l.queue = max(0, min(l.queue, l.flying))
}

// send notes a message handed to the interface.
func (l *link) send(last uint64, bytes, now float64, n *nic) {
	l.drain(now)
	// A resend: the messages from this entry on are sent again, or were lost.
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
		// Too many messages to tell apart: the newest two become one.
		b := l.out.Back()
		m.bytes += b.bytes
		*b = m
	}
}

// acked takes an answer; peers is the number of followers that share the leader's interface, n. ok
// is false if no message in flight is answered.
func (l *link) acked(index uint64, held, now, peers float64, n *nic) (m flight, ok bool) {
	l.heard, l.answered = now, max(l.answered, index)
	due := now
	if l.out.Len() > 0 {
		due = l.out.Front().due()
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
	l.spoke(due, now)
	l.held += (held - l.held) * alphaHeld
	t, first := max(0, now-m.sentAt-held), !l.seen
	l.dropLost(m.sentAt, t)
	switch {
	case first:
		l.base, l.seen = t, true // the first sample does not show the cost of bytes
	case t < l.base/2:
		l.base += (t - l.base) * jump // the follower came nearer
	}
	m.queued = l.served(m, now)
	// The marks of bytes that left are fresh after some messages only, and the model of the queue
	// forgets bytes too early: the smaller of the two counts is the number of bytes ahead.
	left := max(m.all-n.leftBy(m.sentAt), m.bytes)
	all := max(min(left, m.ahead), m.bytes)
	if !first {
		l.learn(t, m, now, peers, all, n.cost)
	}
	if at := now - held - l.base; !l.learner && n.left(at, m.all) && !first {
		// Marks of bytes that left are as late as answers. So together with a time from which a
		// crowd's delay is taken off, all bytes without a mark count.
		if l.crowded == 0 {
			left = all
		}
		l.tell(t, left, now, n)
		n.adjust(at-l.crowded, m.all, now)
	}
	m.late = t - l.base
	m.work = max(all*n.cost, l.alone()*m.queued)
	// The model of the queue is corrected downwards: too high a cost leaves bytes in the model that
	// have left the queue.
	l.drain(now)
	l.queue = max(0, min(l.queue, m.queued+l.sent-m.upTo-(now-m.sentAt)/l.cost))
	return m, true
}

// dropLost forgets heartbeats that were sent a whole round trip before a message with an answer:
// these heartbeats are lost. With their places in the list, the next heartbeats would always look
// late, and so the round trips learnt from them are forgotten, too.
func (l *link) dropLost(sentAt, trip float64) {
	for l.heartbeats.Len() > 0 && l.heartbeats.Front().sentAt < sentAt-trip {
		l.heartbeats.PopFront()
		l.base = min(l.base, trip)
		l.least, l.leastBefore, l.inWindow = math.Inf(1), math.Inf(1), 0
	}
}

// served is the number of bytes that were queued on the connection when m was sent, m's own bytes
// included: the bytes that were answered later than from an empty queue. Of a message under way at
// that time, only the rest counts.
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

// fade is the share of older sums that stays when a sample is added.
func fade(now, late float64) float64 {
	return max(math.Exp(-(now-late)/forget), 1-1.0/minSamples)
}

// alone is the cost of a byte on a connection that is slower than the interface, and 0 on other
// connections.
func (l *link) alone() float64 {
	if l.private {
		return l.own
	}
	return 0
}

// line is the part of a time t that bytes may have taken, for a predicted time thought of the
// bytes.
func (l *link) line(t, thought float64) float64 {
	return min(max(t-l.base-l.crowded/2, -l.base/2), clip*thought+l.base/2+clipFloor)
}

// learn takes the time t of message m, without the follower's own time. all is the number of bytes
// in front of m at the interface, on whatever connection, and egress the cost of a byte at the
// interface.
func (l *link) learn(t float64, m flight, now, peers, all, egress float64) {
	decay := fade(now, l.sampled)
	l.sampled = now
	// A message with less than an equal part of the bytes in front of m on its own connection shows
	// little of the connection, if all bytes explain the time of the message.
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
		decay = min(decay, 0.5) // a slow link is sent few messages, so each of its samples counts
	}
	if weight > telling && l.seemsSlow(egress) && !l.fresh() && x*l.own > l.base {
		l.judge(t-l.base-l.crowded/2, x, now)
	}
	l.sumXX = l.sumXX*decay + weight*x*x
	l.sumXY = l.sumXY*decay + weight*x*y
	l.sumXA = l.sumXA*decay + weight*x*all
	l.own = max(0, l.sumXY) / l.sumXX
}

// heartbeatSent notes a heartbeat, and the time of the bytes in front of the heartbeat.
func (l *link) heartbeatSent(now float64, n *nic) {
	l.drain(now)
	n.drain(now)
	if l.heartbeats.Len() == maxHeartbeats {
		l.heartbeats.PopFront()
	}
	l.heartbeats.Push(heartbeat{now, max(n.queue*n.cost, l.alone()*l.queue)})
}

// heartbeatAnswered learns the base. Whether heartbeats wait behind entries or pass them, the
// possible time of the queue is taken off, but the rest is at least the recent least round trip. So
// heartbeats show nothing of the cost: if a host sends heartbeats on a connection of their own,
// bytes would look free.
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
	case !l.seen, l.inWindow == 1 && math.IsInf(l.leastBefore, 1): // the first heartbeat, or the first after dropLost
		gain, l.seen = 1, true
	case seen > 2*l.base || seen < l.base/2:
		gain = jump
	}
	l.base += (seen - l.base) * gain
}

// overdue is the least time by which the oldest message is later than expected.
func (l *link) overdue(now float64) float64 {
	if l.out.Len() == 0 {
		return 0
	}
	m := l.out.Front()
	return now - max(m.sentAt, l.heard) - 1.25*m.pred
}
