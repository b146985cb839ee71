// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"time"

	"github.com/weftraft/weft/internal/fetch"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// Drive runs a replica.Replica in virtual time: the same replica that a rawnode.Host
// runs with goroutines, sockets, files and clocks. A drive is one group at one node in
// one life of its process. Inputs wait until the processor is free; a turn takes them
// all, and what the replica asks for goes to the surroundings, in the order in which a
// host serves it.
type Drive struct {
	R *replica.Replica
	DriveOptions
	on Surroundings

	inbox     []input
	oldest    time.Duration // when the first of inbox came
	scheduled bool          // a turn waits for the processor
	stopped   bool
	pollAt    time.Duration // when the replica asked to be looked at; 0: not

	steps   []Step
	stepped bool // a step is under way

	streams
}

// Surroundings is what a simulator puts in the place of the rest of a host.
type Surroundings interface {
	StreamEnds
	Now() time.Duration
	// Work gives the processor of the process a task.
	Work(Task)
	// Later plans a call at the process; never, if the process ends before.
	Later(d time.Duration, happen func())
	// TurnBegins is called as a turn takes the inputs, and returns the cost of a turn.
	TurnBegins() time.Duration
	// Flushed is called after each turn of the replica, with the reason if the replica
	// is out of service. The result is false if nothing is to be served any more.
	Flushed(err error) (goOn bool)
	// Append and Compact are work for the log, in this order.
	Append(*replica.Append)
	Compact(*replica.Compact)
	// Step is called when the state machine has a step to take: see Drive.Take.
	Step()
	// Ended takes the end of a call.
	Ended(replica.Done)
	// TurnEnds is called when all outputs are served.
	TurnEnds()
}

// asked is Surroundings in which there are gateways: Asked takes a query of one.
type asked interface{ Asked(replica.Query) }

// input is something for the loop.
type input struct {
	cost time.Duration
	do   func(*replica.Replica)
}

// DriveOptions names a drive.
type DriveOptions struct {
	Group, ID uint64
	Life      uint64        // of the process; snapshots of different lives have different numbers
	Patience  time.Duration // with the other end of a snapshot that says nothing
	// Fetches, unless nil, reports whether a peer knows how to fetch snapshots. A program that
	// does not know itself has nil.
	Fetches     func(peer uint64) bool
	FetchCounts *fetch.Counts
}

// NewDrive returns the drive of a replica.
func NewDrive(r *replica.Replica, on Surroundings, opts DriveOptions) *Drive {
	d := &Drive{R: r, DriveOptions: opts, on: on}
	d.streams = streams{d: d, last: opts.Life << 32, out: map[uint64]*outgoing{}, in: map[uint64]*Incoming{}}
	d.fetches.s = &d.streams
	return d
}

// Post queues an input for the loop, with the processor's time for the input. Post
// never waits.
func (d *Drive) Post(cost time.Duration, do func(*replica.Replica)) {
	if !d.stopped {
		if len(d.inbox) == 0 {
			d.oldest = d.on.Now()
		}
		d.inbox = append(d.inbox, input{cost, do})
		d.Kick()
	}
}

// Stop ends the drive: a removed member's, at a process that goes on.
func (d *Drive) Stop() { d.stopped = true }

// Stopped reports whether Stop was called.
func (d *Drive) Stopped() bool { return d.stopped }

// Kick has a turn follow.
func (d *Drive) Kick() {
	if !d.scheduled {
		d.scheduled = true
		d.on.Work(d.turn)
	}
}

// turn is one turn of the loop: all waiting inputs, then the replica's outputs.
func (d *Drive) turn() (cost time.Duration, effect func()) {
	items, began, oldest := d.inbox, d.on.Now(), d.oldest
	d.inbox = nil
	cost = d.on.TurnBegins()
	for i := range items {
		cost += items[i].cost
	}
	return cost, func() {
		d.scheduled = false
		if d.stopped {
			return
		}
		d.R.At(d.on.Now())
		for i := range items {
			items[i].do(d.R)
		}
		d.Flush()
		if len(items) > 0 {
			d.R.Turned(began-oldest, d.on.Now()-began)
		}
		if len(d.inbox) > 0 {
			d.Kick()
		}
	}
}

// Flush ends a turn: the stages get their work.
func (d *Drive) Flush() {
	out := d.R.Flush(d.on.Now())
	if !d.on.Flushed(d.R.Err()) {
		return
	}
	if len(out.Sends) > 0 {
		d.on.Send(out.Sends)
	}
	for i := range out.Appends {
		d.on.Append(&out.Appends[i])
	}
	if out.Compact != nil {
		d.on.Compact(out.Compact)
	}
	for i := range out.Applies {
		d.add(Step{Apply: &out.Applies[i]})
	}
	for _, s := range out.Snapshots {
		d.sendSnapshot(s)
	}
	for _, done := range out.Done {
		d.on.Ended(done)
	}
	if on, ok := d.on.(asked); ok {
		for _, q := range out.Queries {
			on.Asked(q)
		}
	}
	d.on.TurnEnds()
	d.poll()
}

// poll has the replica look when something is due between ticks, as a host's alarm
// does.
func (d *Drive) poll() {
	at, due := d.R.Deadline()
	if !due || d.pollAt == at {
		return
	}
	d.pollAt = at
	d.on.Later(max(at-d.on.Now(), time.Microsecond), func() {
		if d.pollAt == at {
			d.Post(0, func(r *replica.Replica) {
				d.pollAt = 0
				r.Poll(d.on.Now())
			})
		}
	})
}

// Deliver takes a message for the group, in a turn. An error is the replica's: it
// refuses the message.
func (d *Drive) Deliver(m wire.Message) error {
	switch b := m.Body.(type) {
	case wire.Chunk:
		d.chunk(m.From, b)
	case wire.ChunkStatus:
		d.status(m.From, b)
	case wire.Offer:
		if d.Fetches != nil {
			return d.fetches.offered(m.From, b)
		}
	case wire.Fetch:
		if d.Fetches != nil {
			d.fetches.wanted(m.From, b)
		}
	default:
		return d.R.Receive(m)
	}
	return nil
}

// Unreachable takes the transport's word that something for a peer was dropped.
func (d *Drive) Unreachable(peer uint64) {
	d.unreachable(peer)
	d.Post(0, func(r *replica.Replica) { r.Unreachable(peer) })
}

// Step is work for the state machine: one of its fields.
type Step struct {
	Apply   *replica.Apply
	Restore *Incoming
}

// Bytes returns the length of the step's commands.
func (s Step) Bytes() (n int) {
	if s.Apply != nil {
		for _, c := range s.Apply.Batch.Commands {
			n += len(c)
		}
	}
	return n
}

func (d *Drive) add(s Step) {
	d.steps = append(d.steps, s)
	d.next()
}

// next has the surroundings take the next step. The steps behind a snapshot wait
// until the snapshot is whole, or has failed.
func (d *Drive) next() {
	if d.stepped || len(d.steps) == 0 {
		return
	}
	if in := d.steps[0].Restore; in != nil && !in.Whole && in.Err == nil {
		return
	}
	d.stepped = true
	d.on.Step()
}

// Restoring returns the snapshot that is the next step, or nil.
func (d *Drive) Restoring() *Incoming { return d.steps[0].Restore }

// Take takes the next step from the queue.
func (d *Drive) Take() Step {
	s := d.steps[0]
	d.steps = d.steps[1:]
	return s
}

// TakeApplies takes all steps up to the next snapshot.
func (d *Drive) TakeApplies() (steps []Step) {
	for len(d.steps) > 0 && d.steps[0].Restore == nil {
		steps = append(steps, d.Take())
	}
	return steps
}

// StepsBytes returns the length of the commands that wait for the state machine.
func (d *Drive) StepsBytes() (n int) {
	for _, s := range d.steps {
		n += s.Bytes()
	}
	return n
}

// Stepped ends the steps taken, and goes on with the next.
func (d *Drive) Stepped() {
	d.stepped = false
	d.next()
}

// Restored ends a step that restores a snapshot.
func (d *Drive) Restored(in *Incoming, err error) {
	if in.fetched {
		d.fetches.restored(err)
		d.Stepped()
		return
	}
	d.Post(0, func(r *replica.Replica) {
		r.SnapshotRestored(in.Header, err)
		d.answer(in.From, in.stream, err)
	})
	d.forget(in)
	d.Stepped()
}
