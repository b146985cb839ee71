// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import "time"

// Traits is what a link does to frames. The zero value delivers at once, in order.
type Traits struct {
	// Least is the time of a frame under way. With Most above 0 the time is drawn
	// evenly, up to Most. Tail is the mean of an addition, drawn exponentially.
	Least, Most, Tail time.Duration
	// Rate is in bytes a second; 0: no bound. A frame is lost if it would wait longer
	// than Queue for earlier frames, or with Frames frames under way; 0: no bound.
	Rate   float64
	Queue  time.Duration
	Frames int
	// What happens to a frame by chance: the frame is lost; arrives twice; is overtaken
	// by later frames, by up to 20 times Most; comes up to two seconds late; comes again
	// within a second, though the link be cut; or waits for Stall more, as after a lost
	// packet.
	Loss, Duplicate, Reorder, Late, Echo, StallChance float64
	Stall                                             time.Duration
	// Slower is how many times as long a frame takes while the link is slow, and
	// SlowRate the link's rate then, if above 0.
	Slower   int
	SlowRate float64
}

// Frame is something to carry over a link.
type Frame struct {
	Bytes int
	// Lane is the connection: frames of a lane arrive in order if Ordered is set.
	Lane    int
	Ordered bool
	// Sure frames are lost only with their connection, and come once and in order.
	Sure bool
	// Once frames do not come twice.
	Once bool
	// Arrive is called when the frame arrives; again says that the network has made
	// a copy.
	Arrive func(again bool)
	// Lost, unless nil, is called when the frame turns out not to arrive.
	Lost func()
}

// lane is a connection over a link.
type lane struct {
	// last is when the last ordered frame arrives.
	last time.Duration
	// held is until when nothing gets through; nothing is lost either.
	held time.Duration
	// breaks counts broken connections: a break loses the frames under way.
	breaks int
}

const lanes = 4

// Link is a direction between two machines.
type Link struct {
	// Draws decides what happens to frames.
	Draws Draws
	// Sent is the bytes of all frames given to the link.
	Sent int

	net    *Network
	traits *Traits
	// cuts is the number of faults that block the link.
	cuts int
	// free is when the link will have sent all its frames.
	free  time.Duration
	slow  time.Duration // until when the link is slow
	under int           // frames under way
	lanes [lanes]lane
}

// Send carries a frame. The result is false if the frame was lost at once.
func (l *Link) Send(f Frame) bool {
	n, t, now := l.net, l.traits, l.net.agenda.Now()
	l.Sent += f.Bytes
	switch {
	case l.cuts > 0:
		return n.lose(&n.Blocked, f)
	case t.Frames > 0 && l.under >= t.Frames && !n.calm:
		return n.lose(&n.QueuesFull, f)
	case !f.Sure && !n.calm && l.Draws.Chance(t.Loss):
		return n.lose(&n.Lost, f)
	}
	start, rate := max(now, l.free), t.Rate
	if now < l.slow && t.SlowRate > 0 {
		rate = t.SlowRate
	}
	if rate > 0 {
		if t.Queue > 0 && start-now > t.Queue {
			return n.lose(&n.Lost, f)
		}
		start += time.Duration(float64(f.Bytes) / rate * float64(time.Second))
		l.free = start
	}
	l.deliver(f, start, false)
	n.echo(l, f)
	if !f.Sure && !f.Once && !n.calm && l.Draws.Chance(t.Duplicate) {
		n.Duplicated++
		f.Lost = nil
		l.deliver(f, start, true)
	}
	return true
}

// deliver plans the arrival of a frame that leaves at an instant.
func (l *Link) deliver(f Frame, start time.Duration, again bool) {
	n := l.net
	at := start + l.way(f)
	more, inStep, passed := n.hold()
	at += more
	lane := &l.lanes[f.Lane]
	at = max(at, lane.held)
	if f.Ordered || f.Sure || n.calm || inStep {
		if at = max(at, lane.last); more == 0 || !passed {
			lane.last = at
		}
	}
	n.Latest = max(n.Latest, at)
	breaks := lane.breaks
	l.under++
	n.agenda.At(at, func() {
		l.under--
		if l.cuts > 0 || lane.breaks != breaks {
			n.lose(&n.Blocked, f)
			return
		}
		f.Arrive(again)
	})
}

// way draws the time of a frame under way.
func (l *Link) way(f Frame) time.Duration {
	t, d, n := l.traits, l.Draws, l.net
	way := t.Least
	if t.Most > 0 {
		way = d.Within(t.Least, t.Most)
	}
	if t.Tail > 0 {
		way += d.Wait(t.Tail)
	}
	if n.agenda.Now() < l.slow {
		way *= time.Duration(t.Slower)
	}
	if d.Chance(t.StallChance) {
		way += t.Stall
	}
	if n.calm || f.Sure {
		return way
	}
	if d.Chance(t.Reorder) {
		n.Reordered++
		way += d.Within(0, 20*t.Most)
	}
	if d.Chance(t.Late) {
		n.Late++
		way += d.Span(100*time.Millisecond, 2*time.Second)
	}
	return way
}

// Shape gives the link traits and draws of its own.
func (l *Link) Shape(t Traits, d Draws) { l.traits, l.Draws = &t, d }

// Traits returns what the link does.
func (l *Link) Traits() Traits { return *l.traits }

// Block cuts the link until Block(false), or ends all cuts.
func (l *Link) Block(cut bool) {
	l.cuts = 0
	if cut {
		l.cuts = 1
	}
}

// Slow makes the link slow for a time.
func (l *Link) Slow(lasting time.Duration) { l.slow = max(l.slow, l.net.agenda.Now()+lasting) }

// Hold lets a lane get nothing through for a time.
func (l *Link) Hold(lane int, lasting time.Duration) {
	l.lanes[lane].held = max(l.lanes[lane].held, l.net.agenda.Now()+lasting)
	l.net.HeldLinks++
}

// Break loses the frames under way in a lane.
func (l *Link) Break(lane int) { l.lanes[lane].breaks++ }

// Last returns when the last ordered frame of a lane arrives.
func (l *Link) Last(lane int) time.Duration { return l.lanes[lane].last }

// IsCut reports whether the link is cut.
func (l *Link) IsCut() bool { return l.cuts > 0 }
