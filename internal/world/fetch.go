// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/fetch"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// Snapshots are fetched from the nearest member if the receiver knows how: see package fetch.

var errNoStream = errors.New("there is no such stream, or no longer")

// fetchedStreams marks the streams that a receiver has numbered.
const fetchedStreams = 1 << 31

// fetches is the snapshots that a process fetches, and those that others fetch from it.
type fetches struct {
	s         *streams
	recv      *fetch.Receiver // nil before the first offer
	in        *Incoming       // fetched now
	refused   error           // by the replica, of what recv has begun
	isRefused bool
	took      int // pieces that recv is to hear of
	serving   []*served
}

// served is a snapshot that a peer fetches. All are in ascending order of peer and stream.
type served struct {
	Snapshot
	fetch.Stream
	peer, stream uint64
	header       *pb.Message
	pumping      bool // a piece is on its way out
	ended        bool
	deadline     time.Duration
}

// sendOffer tells a follower to fetch a snapshot.
func (s *streams) sendOffer(send replica.SnapshotSend) {
	s.last++
	o := &outgoing{stream: s.last, to: send.To, deadline: s.d.on.Now() + s.d.Patience, offer: &wire.Offer{
		Stream: s.last, Term: send.Message.GetTerm(), Index: send.Least, Sources: send.Sources,
	}}
	s.out[o.stream] = o
	s.repeatOffer(o)
}

// repeatOffer sends an offer until the follower follows it.
func (s *streams) repeatOffer(o *outgoing) {
	if o.ended || o.offer == nil {
		return
	}
	s.fetches.Send(wire.Message{Group: s.d.Group, From: s.d.ID, To: o.to, Body: *o.offer})
	s.d.on.Later(s.d.Patience/8, func() { s.repeatOffer(o) })
}

// offered takes a leader's offer.
func (f *fetches) offered(from uint64, o wire.Offer) error {
	d := f.s.d
	err := d.R.OfferedFetch(from, o)
	if errors.Is(err, replica.ErrBadMessage) {
		return err
	}
	if err != nil && (!errors.Is(err, replica.ErrRestoring) || f.recv == nil || !f.recv.Busy()) {
		f.s.answer(from, o.Stream, err)
		return nil
	}
	if f.recv == nil {
		f.recv = fetch.NewReceiver(fetch.Config{
			Group: d.Group, ID: d.ID, First: d.Life<<32 | fetchedStreams, Repeat: d.Patience / 10, Patience: d.Patience, Counts: d.FetchCounts,
		}, f)
	}
	f.recv.Offer(d.on.Now(), from, o, d.R.Urgency(from, o))
	return nil
}

// Send implements fetch.Ends, as the methods below do.
func (f *fetches) Send(m wire.Message) { f.s.d.on.Send([]wire.Message{m}) }

// Place grants every place: a process of the world has one group.
func (f *fetches) Place(wire.Urgency) bool { return true }

// Begin offers a snapshot to the replica.
func (f *fetches) Begin(header *pb.Message) {
	d := f.s.d
	err := d.R.OfferSnapshot(header.GetFrom(), header)
	d.on.Offered(header.GetFrom(), err)
	if err != nil {
		f.isRefused, f.refused = true, err
		return
	}
	f.in = &Incoming{From: header.GetFrom(), Header: header, fetched: true}
	d.Flush()
	d.add(Step{Restore: f.in})
}

// Data adds a piece.
func (f *fetches) Data(data []byte, last bool) {
	if in := f.in; in != nil {
		in.Body, in.Whole = append(in.Body, data...), last
		f.took++
	}
}

// Fail has the state machine pass over the snapshot.
func (f *fetches) Fail(err error) {
	if in := f.in; in != nil {
		in.Err = err
	}
}

// news brings something to the receiver, and the receiver's effects to their places.
func (f *fetches) news(do func(*fetch.Receiver, time.Duration)) {
	if f.recv == nil {
		return
	}
	now := f.s.d.on.Now()
	do(f.recv, now)
	for f.took > 0 {
		f.took--
		f.recv.Took(now)
	}
	if f.isRefused {
		err := f.refused
		if errors.Is(err, replica.ErrNotNeeded) {
			err = nil
		}
		f.isRefused, f.refused = false, nil
		f.recv.Refused(err)
	}
	f.s.d.next()
}

// restored ends a step that restored what was fetched.
func (f *fetches) restored(err error) {
	f.in = nil
	f.s.d.Post(0, func(r *replica.Replica) {
		r.SnapshotRestored(f.recv.Header(), err)
		f.news(func(recv *fetch.Receiver, now time.Duration) { recv.Restored(now, err) })
	})
}

// wanted takes a follower's part in fetching.
func (f *fetches) wanted(from uint64, w wire.Fetch) {
	s := f.s
	i, serves := slices.BinarySearchFunc(f.serving, [2]uint64{from, w.Stream}, func(sv *served, key [2]uint64) int {
		return cmp.Or(cmp.Compare(sv.peer, key[0]), cmp.Compare(sv.stream, key[1]))
	})
	if o := s.out[w.Stream]; w.Step == wire.FetchLives && o != nil && o.to == from {
		o.deadline, o.offer = s.d.on.Now()+s.d.Patience, nil
		return
	}
	var err error
	switch {
	case serves:
		sv := f.serving[i]
		sv.deadline = s.d.on.Now() + s.d.Patience/2
		if w.Step == wire.FetchTake || w.Step == wire.FetchAgain {
			if err = sv.Want(w); err == nil {
				f.pump(sv)
				return
			}
			f.end(sv)
		}
	case w.Step == wire.FetchLives:
		return
	case w.Number > 0 || w.Step == wire.FetchAgain:
		err = errNoStream
	default:
		err = f.begin(i, from, w)
	}
	if err != nil || w.Step == wire.FetchAsk {
		s.answer(from, w.Stream, err)
	}
}

// begin opens a state for a follower, or, if the follower merely asks, says whether it would.
func (f *fetches) begin(place int, from uint64, w wire.Fetch) error {
	s := f.s
	if s.sending() >= maxOutgoing {
		return replica.ErrOutgoingFull
	}
	if err := s.d.R.Provides(w); err != nil || w.Step == wire.FetchAsk {
		return err
	}
	snap, err := s.d.on.Open(from)
	if err != nil {
		return err
	}
	sv := &served{Snapshot: snap, peer: from, stream: w.Stream, deadline: s.d.on.Now() + s.d.Patience/2}
	if sv.header, err = replica.FetchHeader(from, w, snap.Meta); err == nil {
		err = sv.Want(w)
	}
	if err != nil {
		return errors.Join(err, sv.close())
	}
	f.serving = slices.Insert(f.serving, place, sv)
	f.pump(sv)
	return nil
}

func (sv *served) close() error {
	sv.ended = true
	if sv.Close == nil {
		return nil
	}
	return sv.Close()
}

// end lets a stream go.
func (f *fetches) end(sv *served) {
	_ = sv.close() // the surroundings look at errors
	f.serving = slices.DeleteFunc(f.serving, func(x *served) bool { return x == sv })
}

// pump sends the next piece that the follower has asked for.
func (f *fetches) pump(sv *served) {
	if _, _, ok := sv.Next(); ok && !sv.pumping && !sv.ended {
		sv.pumping = true
		f.s.d.on.Room(sv.peer, func() { f.send(sv) })
	}
}

func (f *fetches) send(sv *served) {
	sv.pumping = false
	_, reads, ok := sv.Next()
	if sv.ended || !ok {
		return
	}
	if reads {
		buf := make([]byte, sv.Chunk)
		n, err := io.ReadFull(sv.Body, buf)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			f.s.answer(sv.peer, sv.stream, fmt.Errorf("read the snapshot: %w", err))
			f.end(sv)
			return
		}
		sv.Read(buf[:n:n], last)
	}
	c := sv.Take()
	c.Stream = sv.stream
	if c.Number == 0 {
		c.Header = sv.header
	}
	sv.pumping = true
	f.s.d.on.SendChunk(wire.Message{Group: f.s.d.Group, From: f.s.d.ID, To: sv.peer, Body: c}, len(c.Data), func() {
		sv.pumping = false
		f.pump(sv)
	})
}

// expire gives up peers that have fetched nothing for long, and lets time pass for the receiver.
func (f *fetches) expire(now time.Duration) {
	for _, sv := range slices.Clone(f.serving) {
		if now > sv.deadline {
			f.end(sv)
		}
	}
	f.news(func(r *fetch.Receiver, now time.Duration) { r.Tick(now) })
}

// status takes a word about a stream that is fetched by this node, or by a peer, and reports
// whether there is such a stream.
func (f *fetches) status(from uint64, st wire.ChunkStatus) {
	for _, sv := range f.serving {
		if sv.peer == from && sv.stream == st.Stream {
			f.end(sv)
			return
		}
	}
	f.news(func(r *fetch.Receiver, now time.Duration) { r.Status(now, from, st) })
}
