// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import "github.com/weftraft/weft/internal/world"

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

// stream is the stream of appends from a machine to another: in order, nothing lost,
// until a break. At a break all frames on their way are lost, and both ends begin anew.
type stream struct {
	breaks  int
	out, in cursor
}

// The connections between two machines.
const (
	looseLane = iota
	streamLane
)

const maxMachines = 16

// send puts a frame on its way. lost, if not nil, is called at the sender when the
// frame is lost, and arrived when the frame has arrived.
func (w *sim) send(from, to uint64, f frame, lost, arrived func()) {
	if to == 0 || to > uint64(len(w.machines)) {
		return
	}
	if f.lane != laneAdmitted { // which is the host's own
		w.sent++
	}
	sender := w.machines[from-1]
	drop := func() {
		if lost != nil {
			sender.later(w.plan.links.Most, lost)
		}
	}
	if f.lane == laneAppend {
		w.stream(from, to, f, drop)
		return
	}
	w.links.Send(from, to, world.Frame{Bytes: len(f.data), Once: f.lane == laneSnapshot, Lost: drop, Arrive: func(bool) {
		w.deliver(from, to, f, func() bool { return true })
		if arrived != nil {
			sender.later(w.plan.links.Least, arrived)
		}
	}})
}

// stream sends a part of a stream.
func (w *sim) stream(from, to uint64, f frame, drop func()) {
	s := &w.streams[from][to]
	breaks := s.breaks
	fails := func() {
		if s.breaks == breaks {
			w.breakStream(from, to)
		}
		drop()
	}
	w.links.Send(from, to, world.Frame{Bytes: len(f.data), Lane: streamLane, Sure: true, Lost: fails, Arrive: func(bool) {
		if m := w.machines[to-1]; m.proc == nil && !m.lazy {
			fails()
			return
		}
		w.deliver(from, to, f, func() bool { return s.breaks == breaks })
	}})
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
	s := &w.streams[from][to]
	s.breaks++
	s.out, s.in = cursor{}, cursor{}
	w.links.Link(from, to).Break(streamLane)
}

// breakStreams breaks all streams of a machine.
func (w *sim) breakStreams(id uint64) {
	for other := uint64(1); other <= maxMachines; other++ {
		w.breakStream(id, other)
		w.breakStream(other, id)
	}
}
