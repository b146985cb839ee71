// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// Window is how many chunks may be on their way, or wait for the state machine.
const Window = 16

// Ends is the surroundings of a Receiver. Its methods do not call the Receiver.
type Ends interface {
	Send(wire.Message)
	// Place asks for a place among the snapshots that the node takes at a time, or tells of another urgency
	// while it waits for one, and reports whether the place is there. Otherwise Receiver.Placed says so later.
	// The place is given back when the Receiver is not Busy any more.
	Place(wire.Urgency) bool
	// Begin offers a snapshot to the replica; Receiver.Begun takes the answer.
	Begin(header *pb.Message)
	// Data is the next piece of the body, which ends with the last piece; Receiver.Took tells
	// that the state machine has read it. Fail says that the body will not be whole.
	Data(data []byte, last bool)
	Fail(error)
}

// Config is the settings of a Receiver.
type Config struct {
	Group, ID uint64
	// First is a number of a stream that no earlier run of the node has used, nor any number above.
	First uint64
	// Repeat is the silence after which missing chunks are asked for again, and Patience
	// the silence after which either end gives the other up; a source is given up after a quarter.
	Repeat, Patience time.Duration
	// Counts, unless nil, is where the receiver counts.
	Counts *Counts
}

// Counts are what a Receiver has done.
type Counts struct {
	// Fetched counts snapshots of other members than the leader that were restored, Resumed
	// the streams that went on after a silence, and Abandoned the sources that were given up in the
	// middle of a body.
	Fetched, Resumed, Abandoned uint64
}

// stage is where a Receiver stands.
type stage uint8

const (
	idle    stage = iota
	waiting       // for a place
	asking
	fetching  // from source
	restoring // the whole body has come
	failing   // the state machine has been told, and has not ended
)

// Receiver fetches the snapshots of a group at one node, one at a time.
type Receiver struct {
	cfg Config
	on  Ends

	// Invariant: all that follows is zero while stage is idle, but for stream.
	stage  stage
	from   uint64 // the leader of offer
	offer  wire.Offer
	urgent wire.Urgency
	failed []uint64 // sources that broke off or refused

	stream   uint64        // of the last question
	asked    time.Duration // when
	leaderAt time.Duration // when the leader agreed; 0: it has not
	refused  []uint64      // who will not send a snapshot
	reason   string        // of the last of them

	source            uint64
	next, took, until uint64
	header            *pb.Message // as the replica knows it; nil before the first chunk
	heard             time.Duration
	again             time.Duration // when chunks were last asked for again
	silent            bool          // and none has come since
	moved             time.Duration // when the state machine took a chunk
	lived             time.Duration // when the leader was last told
}

// NewReceiver returns a Receiver.
func NewReceiver(cfg Config, on Ends) *Receiver {
	if cfg.Counts == nil {
		cfg.Counts = &Counts{}
	}
	return &Receiver{cfg: cfg, on: on, stream: cfg.First}
}

// Busy reports whether an offer is being followed.
func (r *Receiver) Busy() bool { return r.stage != idle }

// Source returns the node that sends the body, 0 if none does; Stream is the stream of the body.
func (r *Receiver) Source() uint64 { return r.source }

// Stream returns the number of the stream: see Source.
func (r *Receiver) Stream() uint64 { return r.stream }

// Header returns the header of the snapshot for the replica, from the leader of the latest offer.
func (r *Receiver) Header() *pb.Message {
	h := proto.Clone(r.header).(*pb.Message)
	h.From, h.Term = new(r.from), new(r.offer.Term)
	return h
}

// Offered returns the offer that is being followed, and its leader.
func (r *Receiver) Offered() (from uint64, o wire.Offer) { return r.from, r.offer }

// Offer takes the offer of a leader to a follower that needs a snapshot.
func (r *Receiver) Offer(now time.Duration, from uint64, o wire.Offer, u wire.Urgency) {
	same := from == r.from && o.Term == r.offer.Term
	switch {
	case r.stage == idle:
		r.stage, r.from, r.offer, r.urgent, r.lived = waiting, from, o, u, now
		r.place(now)
	case same && o.Stream == r.offer.Stream: // once more, as the leader has not heard
		r.lived = 0
	case !same && o.Term <= r.offer.Term:
		r.status(from, o.Stream, fmt.Errorf("node %d offered a snapshot in term %d", r.from, r.offer.Term))
	default:
		r.from, r.offer, r.urgent, r.lived = from, o, u, 0
		switch {
		case r.stage == waiting:
			r.place(now)
		case r.stage == asking:
			r.ask(now)
		case r.header != nil && r.header.GetSnapshot().GetMetadata().GetIndex() < o.Index:
			r.lost(now, fmt.Errorf("node %d offers a later snapshot", from))
		}
	}
}

// place begins if there is a place.
func (r *Receiver) place(now time.Duration) {
	if r.on.Place(r.urgent) {
		r.ask(now)
	}
}

// Placed says that there is a place now.
func (r *Receiver) Placed(now time.Duration) {
	if r.stage == waiting {
		r.ask(now)
	}
}

// Outdated says why an offer that has waited for a place must not be followed any more; nil says that no snapshot
// is needed.
func (r *Receiver) Outdated(err error) {
	if r.stage == waiting {
		r.end(err)
	}
}

// ask asks who would send a snapshot.
func (r *Receiver) ask(now time.Duration) {
	r.stage, r.source, r.header = asking, 0, nil
	r.next, r.took, r.until, r.silent = 0, 0, 0, false
	r.stream++
	r.asked, r.leaderAt, r.refused = now, 0, nil
	for _, id := range r.candidates() {
		r.fetch(id, wire.Fetch{Step: wire.FetchAsk, Stream: r.stream, Urgency: r.urgent})
	}
	if len(r.candidates()) == 0 {
		r.end(fmt.Errorf("no source is left: %s", r.reason))
	}
}

// candidates are the members that may be the source.
func (r *Receiver) candidates() (ids []uint64) {
	for _, id := range append(slices.Clone(r.offer.Sources), r.from) {
		if id != r.cfg.ID && !slices.Contains(r.failed, id) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (r *Receiver) fetch(to uint64, f wire.Fetch) {
	f.Term, f.Index = r.offer.Term, r.offer.Index
	r.on.Send(wire.Message{Group: r.cfg.Group, From: r.cfg.ID, To: to, Body: f})
}

func (r *Receiver) status(to, stream uint64, err error) {
	st := wire.ChunkStatus{Stream: stream, OK: err == nil}
	if err != nil {
		st.Reason = err.Error()
	}
	r.on.Send(wire.Message{Group: r.cfg.Group, From: r.cfg.ID, To: to, Body: st})
}

// Status takes a member's answer, or the source's word that it gives up, or that it lives, and others have their
// turn.
func (r *Receiver) Status(now time.Duration, from uint64, st wire.ChunkStatus) {
	switch {
	case r.stage != asking && r.stage != fetching || st.Stream != r.stream || !slices.Contains(r.candidates(), from):
	case r.stage == fetching && from != r.source:
	case r.stage == fetching && st.OK:
		r.heard = now
	case r.stage == fetching:
		r.lost(now, fmt.Errorf("node %d: %s", from, st.Reason))
	case !st.OK:
		if !slices.Contains(r.refused, from) { // else it has come twice
			r.refused = append(r.refused, from)
		}
		r.reason = fmt.Sprintf("node %d: %s", from, st.Reason)
		r.decide(now, false)
	case from != r.from:
		r.take(now, from)
	case r.leaderAt == 0:
		r.leaderAt = now
		r.decide(now, false)
	}
}

// decide chooses the leader if no other member is about to answer, and gives the offer up if
// nobody is. At a tick, others have had their time.
func (r *Receiver) decide(now time.Duration, tick bool) {
	others := len(r.refused) < len(r.candidates())-1
	switch {
	case r.leaderAt != 0 && (!others || tick && now >= 2*r.leaderAt-r.asked):
		r.take(now, r.from)
	case len(r.refused) >= len(r.candidates()):
		r.end(errors.New(r.reason))
	case r.leaderAt == 0 && now-r.asked >= r.cfg.Patience/4:
		r.end(fmt.Errorf("no member sends a snapshot: %s", r.reason))
	}
}

// take begins a stream.
func (r *Receiver) take(now time.Duration, source uint64) {
	r.stage, r.source, r.until = fetching, source, Window
	r.heard, r.again, r.moved = now, now, now
	r.fetch(source, wire.Fetch{Step: wire.FetchTake, Stream: r.stream, Until: r.until})
}

// Chunk takes a piece of the body. A piece that was not asked for is dropped.
func (r *Receiver) Chunk(now time.Duration, from uint64, c wire.Chunk) {
	switch {
	case r.stage != fetching || from != r.source || c.Stream != r.stream || c.Number < r.next || c.Number >= r.until:
		return
	case c.Broken != "":
		r.lost(now, fmt.Errorf("node %d gave up: %s", from, c.Broken))
		return
	case c.Number > r.next:
		if !r.silent { // the pieces between were lost
			r.repeat(now)
		}
		return
	}
	if c.Number == 0 {
		if err := r.begin(c.Header); err != nil {
			r.lost(now, err)
			return
		}
	}
	if r.silent {
		r.silent = false
		r.cfg.Counts.Resumed++
	}
	r.heard, r.again = now, now
	r.next++
	if c.Last {
		r.stage = restoring
	}
	r.on.Data(c.Data, c.Last)
}

// begin offers a snapshot to the replica, in the leader's name.
func (r *Receiver) begin(h *pb.Message) error {
	meta := h.GetSnapshot().GetMetadata()
	if h.GetType() != pb.MsgSnap || meta.GetIndex() < r.offer.Index || meta.GetTerm() > r.offer.Term {
		return fmt.Errorf("node %d sends a %v of index %d and term %d, for an offer of index %d and term %d",
			r.source, h.GetType(), meta.GetIndex(), meta.GetTerm(), r.offer.Index, r.offer.Term)
	}
	r.header = &pb.Message{Type: pb.MsgSnap.Enum(), From: new(r.from), To: new(r.cfg.ID), Term: new(r.offer.Term), Snapshot: h.GetSnapshot()}
	r.on.Begin(r.Header())
	return nil
}

// Refused says that the replica does not take the snapshot that was begun. Nothing reads its
// body. A nil error says that the snapshot is not needed.
func (r *Receiver) Refused(err error) {
	if r.header != nil {
		r.status(r.source, r.stream, errors.New("not taken"))
		r.end(err)
	}
}

// Took says that the state machine has read a piece.
func (r *Receiver) Took(now time.Duration) {
	if r.header == nil {
		return
	}
	r.took++
	r.moved = now
	if r.stage == fetching && r.took+Window-r.until >= Window/2 {
		if r.next == r.until {
			r.heard = now // the source had nothing to send
		}
		r.until = r.took + Window
		r.fetch(r.source, wire.Fetch{Step: wire.FetchTake, Stream: r.stream, Number: r.next, Until: r.until})
	}
}

// Tick lets time pass.
func (r *Receiver) Tick(now time.Duration) {
	switch {
	case r.stage == asking:
		r.decide(now, true)
	case r.stage == fetching && r.next < r.until && now-r.heard >= r.cfg.Patience/4:
		r.lost(now, fmt.Errorf("no chunk came from node %d for %v", r.source, r.cfg.Patience/4))
	case r.stage == fetching && r.next < r.until && now-max(r.heard, r.again) >= r.cfg.Repeat:
		r.repeat(now)
	case (r.stage == fetching && r.took < r.next || r.stage == restoring) && now-max(r.moved, r.heard) >= r.cfg.Patience:
		r.status(r.source, r.stream, errors.New("not taken"))
		r.stage, r.reason = failing, fmt.Sprintf("the state machine took nothing for %v", r.cfg.Patience)
		r.failed = r.candidates() // another source would not help
		r.on.Fail(errors.New(r.reason))
	}
	if r.stage != idle && r.stage != failing && now-r.lived >= r.cfg.Patience/8 {
		r.lived = now
		r.fetch(r.from, wire.Fetch{Step: wire.FetchLives, Stream: r.offer.Stream, Number: r.next})
		if r.stage == fetching { // the state machine may be slow, and the source has nothing to send
			r.fetch(r.source, wire.Fetch{Step: wire.FetchLives, Stream: r.stream, Number: r.next})
		}
	}
}

// repeat asks for the missing pieces again.
func (r *Receiver) repeat(now time.Duration) {
	r.again, r.silent = now, true
	r.fetch(r.source, wire.Fetch{Step: wire.FetchAgain, Stream: r.stream, Number: r.next, Until: r.until})
}

// lost gives a source up. Another one begins at the beginning.
func (r *Receiver) lost(now time.Duration, err error) {
	r.status(r.source, r.stream, err)
	r.failed = append(r.failed, r.source)
	r.reason = err.Error()
	if r.header == nil {
		r.ask(now)
		return
	}
	r.cfg.Counts.Abandoned++
	r.stage = failing
	r.on.Fail(err)
}

// Restored says that the state machine is done with the snapshot, and the replica knows.
func (r *Receiver) Restored(now time.Duration, err error) {
	switch {
	case r.stage == failing && err != nil && len(r.candidates()) > 0:
		r.ask(now)
		return
	case r.stage == failing && err != nil:
		err = errors.New(r.reason)
	case err == nil && r.source != r.from:
		r.cfg.Counts.Fetched++
	}
	r.status(r.source, r.stream, err)
	r.end(err)
}

// end answers the leader.
func (r *Receiver) end(err error) {
	r.status(r.from, r.offer.Stream, err)
	*r = Receiver{cfg: r.cfg, on: r.on, stream: r.stream}
}
