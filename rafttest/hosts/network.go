// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import "time"

// frame is what goes over a link at once.
type frame struct {
	lane lane
	data []byte
}

// lane is a kind of frame.
type lane byte

const (
	laneMessage   lane = iota // an encoded message
	laneAppend                // part of a stream of appends
	laneHeartbeat             // several heartbeats, merged
	laneAdmitted              // a report of admitted entries
	laneProposal              // a command for the leader
	laneSnapshot              // an encoded message with a snapshot
)

// link is a direction between two machines.
type link struct {
	cuts int
	// delay is added to the time of every frame.
	delay time.Duration
	// last is when the last frame arrives, once it is calm.
	last time.Duration
	// bytes is the number of bytes sent.
	bytes int
	// waiting is the number of frames on their way.
	waiting int
	// stream is the stream of appends: in order, nothing lost, until a break.
	// At a break all frames on their way are lost, and both ends begin anew.
	stream struct {
		breaks  int
		out, in cursor
		arrives time.Duration
	}
}

const maxMachines = 16

// send puts a frame on its way. lost, if not nil, is called at the sender when the
// frame is lost, and arrived when the frame has arrived.
func (w *sim) send(from, to uint64, f frame, lost, arrived func()) {
	if to == 0 || to > uint64(len(w.machines)) {
		return
	}
	l := &w.links[from][to]
	l.bytes += len(f.data)
	if f.lane != laneAdmitted { // which is the host's own
		w.sent++
	}
	sender := w.machines[from-1]
	drop := func() {
		if f.lane == laneAppend {
			l.stream.out = cursor{} // the next one does not go on from here
		}
		if lost != nil {
			sender.later(w.plan.delayMax, lost)
		}
	}
	switch {
	case l.cuts > 0:
		w.reach.Blocked++
		drop()
		return
	case l.waiting >= w.plan.linkQueue && !w.calm:
		w.reach.QueuesFull++
		drop()
		return
	case f.lane == laneAppend:
		w.stream(l, from, to, f, drop)
		return
	case w.net.Chance(w.plan.loss) && !w.calm:
		w.reach.Lost++
		drop()
		return
	}
	at := w.Now() + l.delay + w.net.Within(w.plan.delayMin, w.plan.delayMax)
	if w.net.Chance(w.plan.reorder) && !w.calm {
		w.reach.Reordered++
		at += w.net.Within(0, 20*w.plan.delayMax)
	}
	if w.net.Chance(w.plan.late) && !w.calm {
		w.reach.Late++
		at += w.net.Span(100*time.Millisecond, 2*time.Second)
	}
	if w.calm { // in order, as on any connection
		at = max(at, l.last)
		l.last = at
	}
	copies := 1
	if w.net.Chance(w.plan.dup) && !w.calm && f.lane != laneSnapshot {
		w.reach.Doubled++
		copies = 2
	}
	for range copies {
		l.waiting++
		w.At(at, func() {
			l.waiting--
			if l.cuts > 0 {
				drop()
				return
			}
			w.deliver(from, to, f, func() bool { return true })
			if arrived != nil {
				sender.later(w.plan.delayMin, arrived)
			}
		})
		at += w.net.Within(0, 4*w.plan.delayMax)
	}
}

// stream sends a part of a stream.
func (w *sim) stream(l *link, from, to uint64, f frame, drop func()) {
	s := &l.stream
	breaks := s.breaks
	s.arrives = max(s.arrives, w.Now()+l.delay+w.net.Within(w.plan.delayMin, w.plan.delayMax))
	l.waiting++
	w.At(s.arrives, func() {
		l.waiting--
		m := w.machines[to-1]
		switch {
		case s.breaks != breaks:
			drop()
		case l.cuts > 0 || m.proc == nil && !m.lazy:
			w.breakStream(from, to)
			drop()
		default:
			w.deliver(from, to, f, func() bool { return s.breaks == breaks })
		}
	})
}

// deliver hands a frame to the process on a machine, and makes a process if the
// machine waits for a first message. The process may be paused: valid says
// whether the frame still counts after the pause.
func (w *sim) deliver(from, to uint64, f frame, valid func() bool) {
	m := w.machines[to-1]
	if m.proc == nil && m.lazy {
		w.reach.LazyMembers++
		m.start()
	}
	m.run(func() {
		if valid() {
			m.proc.receive(from, f)
			m.proc.work()
		}
	})
}

func (w *sim) breakStream(from, to uint64) {
	s := &w.links[from][to].stream
	s.breaks++
	s.out, s.in = cursor{}, cursor{}
}

// breakStreams breaks all streams of a machine.
func (w *sim) breakStreams(id uint64) {
	for other := range uint64(len(w.machines) + 1) {
		w.breakStream(id, other)
		w.breakStream(other, id)
	}
}
