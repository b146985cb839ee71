// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/fetch"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// Snapshots go in chunks, as a host sends them: at most two at a time, at the pace of
// the link; the receiver's state machine waits for the whole.

const maxOutgoing = 2

var (
	errUnreachable = errors.New("the peer cannot be reached")
	errSilent      = errors.New("no word from the other end")
	errReplaced    = errors.New("the sender began another")
)

// StreamEnds is the surroundings' part in sending and receiving snapshots.
type StreamEnds interface {
	// Send sends messages to peers.
	Send([]wire.Message)
	// Open opens the present state for a peer.
	Open(to uint64) (Snapshot, error)
	// Room calls next when a chunk for a peer may be read.
	Room(to uint64, next func())
	// SendChunk sends a message with so many bytes of a snapshot, and then calls next.
	SendChunk(m wire.Message, bytes int, next func())
	// Sent is told, once for each snapshot, how sending went.
	Sent(to uint64, err error)
	// Offered is told that the replica takes a snapshot, or why not.
	Offered(from uint64, err error)
}

// NoStreams are the ends of snapshots where none is sent, as members begin together and keep their logs. It has all of
// StreamEnds but Send. Wanted hears that a peer would get one after all, which is a mistake of the bench.
type NoStreams struct{ Wanted func(to uint64) }

var errNoStreams = errors.New("no snapshots here")

// Open tells Wanted.
func (n NoStreams) Open(to uint64) (Snapshot, error) {
	n.Wanted(to)
	return Snapshot{}, errNoStreams
}

// Room says nothing.
func (NoStreams) Room(uint64, func()) {}

// SendChunk drops a chunk.
func (NoStreams) SendChunk(wire.Message, int, func()) {}

// Sent says nothing.
func (NoStreams) Sent(uint64, error) {}

// Offered says nothing.
func (NoStreams) Offered(uint64, error) {}

// Snapshot is an opened state.
type Snapshot struct {
	Meta  replica.SnapshotMeta
	Body  io.Reader
	Close func() error // may be nil
	Chunk int          // bytes in a chunk
}

// streams is the snapshots that a process sends and receives for a group.
type streams struct {
	d    *Drive
	last uint64               // number of the last stream
	out  map[uint64]*outgoing // by stream
	in   map[uint64]*Incoming // by sender

	fetches fetches
}

type outgoing struct {
	Snapshot
	stream, to uint64
	header     *pb.Message
	number     uint64 // of the next chunk
	deadline   time.Duration
	done       bool // nothing is left to send
	ended      bool
	offer      *wire.Offer // to be repeated
}

// Incoming is a snapshot that arrives.
type Incoming struct {
	From   uint64
	Header *pb.Message
	Body   []byte
	Whole  bool
	Err    error // why it will not be whole

	stream, next uint64
	deadline     time.Duration
	fetched      bool // see package fetch
}

// sendSnapshot begins to send the present state, or has the peer fetch one.
func (s *streams) sendSnapshot(send replica.SnapshotSend) {
	on := s.d.on
	if s.d.Fetches != nil && s.d.Fetches(send.To) {
		s.sendOffer(send)
		return
	}
	if s.sending() >= maxOutgoing {
		on.Sent(send.To, replica.ErrOutgoingFull)
		return
	}
	snap, err := on.Open(send.To)
	var header *pb.Message
	if err == nil {
		header, err = replica.SnapshotHeader(send, snap.Meta)
	}
	if err != nil {
		on.Sent(send.To, err)
		return
	}
	s.last++
	o := &outgoing{Snapshot: snap, stream: s.last, to: send.To, header: header, deadline: on.Now() + s.d.Patience}
	s.out[o.stream] = o
	s.chunkOf(o)
}

// chunkOf sends the next chunk when there is room for it.
func (s *streams) chunkOf(o *outgoing) {
	if !o.ended && !o.done {
		s.d.on.Room(o.to, func() { s.readChunk(o) })
	}
}

func (s *streams) readChunk(o *outgoing) {
	if o.ended {
		return
	}
	buf := make([]byte, o.Chunk)
	n, err := io.ReadFull(o.Body, buf)
	c := wire.Chunk{Stream: o.stream, Number: o.number, Data: buf[:n:n], Last: errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)}
	if o.number == 0 {
		c.Header = o.header
	}
	if err != nil && !c.Last {
		c.Broken = err.Error()
	}
	o.number++
	o.done = c.Last || c.Broken != ""
	o.deadline = s.d.on.Now() + s.d.Patience
	m := wire.Message{Group: s.d.Group, From: s.d.ID, To: o.to, Body: c}
	s.d.on.SendChunk(m, n, func() { s.chunkOf(o) })
	if c.Broken != "" {
		s.end(o, err)
	}
}

// end tells the surroundings, once, how sending went.
func (s *streams) end(o *outgoing, err error) {
	if o.ended {
		return
	}
	o.ended = true
	delete(s.out, o.stream)
	if o.Close != nil {
		err = errors.Join(err, o.Close())
	}
	s.d.on.Sent(o.to, err)
}

// sending returns how many snapshots are sent, those that peers fetch included.
func (s *streams) sending() int {
	n := len(s.fetches.serving)
	for _, o := range s.out {
		if o.header != nil {
			n++
		}
	}
	return n
}

// outgoing returns the snapshots that are being sent, in a fixed order.
func (s *streams) outgoing() (all []*outgoing) {
	for _, stream := range slices.Sorted(maps.Keys(s.out)) {
		all = append(all, s.out[stream])
	}
	return all
}

func (s *streams) unreachable(peer uint64) {
	for _, o := range s.outgoing() {
		if o.to == peer {
			s.end(o, errUnreachable)
		}
	}
}

// status takes the receiver's word.
func (s *streams) status(from uint64, st wire.ChunkStatus) {
	o := s.out[st.Stream]
	if o == nil || o.to != from {
		s.fetches.status(from, st)
		return
	}
	var err error
	if !st.OK {
		err = fmt.Errorf("node %d: %s", from, st.Reason)
	}
	s.end(o, err)
}

// Expire gives up snapshots that have waited too long for the other end.
func (s *streams) Expire() {
	now := s.d.on.Now()
	for _, o := range s.outgoing() {
		if now > o.deadline {
			s.end(o, errSilent)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(s.in)) {
		if in := s.in[from]; now > in.deadline && !in.Whole {
			s.giveUp(in, errSilent)
		}
	}
	s.fetches.expire(now)
}

// chunk takes a piece of a snapshot.
func (s *streams) chunk(from uint64, c wire.Chunk) {
	if c.Stream&fetchedStreams != 0 {
		s.fetches.news(func(r *fetch.Receiver, now time.Duration) { r.Chunk(now, from, c) })
		return
	}
	in := s.in[from]
	if c.Number == 0 {
		if in != nil {
			if in.stream == c.Stream {
				return // delivered twice
			}
			s.giveUp(in, errReplaced)
		}
		if in = s.offer(from, c); in == nil {
			return
		}
	}
	if in == nil || in.stream != c.Stream || c.Number < in.next || in.Whole {
		return
	}
	switch {
	case c.Broken != "":
		s.giveUp(in, errors.New(c.Broken))
		return
	case c.Number > in.next:
		s.giveUp(in, fmt.Errorf("chunk %d came where %d was due", c.Number, in.next))
		return
	}
	in.next++
	in.deadline = s.d.on.Now() + s.d.Patience
	in.Body = append(in.Body, c.Data...)
	in.Whole = c.Last
	s.d.next()
}

// offer offers the replica a snapshot; an accepted snapshot goes to the state machine,
// behind all earlier steps.
func (s *streams) offer(from uint64, c wire.Chunk) *Incoming {
	err := s.d.R.OfferSnapshot(from, c.Header)
	s.d.on.Offered(from, err)
	if err != nil {
		s.answer(from, c.Stream, err)
		return nil
	}
	in := &Incoming{From: from, stream: c.Stream, Header: c.Header}
	s.in[from] = in
	s.d.Flush()
	s.d.add(Step{Restore: in})
	return in
}

// giveUp has the state machine pass over a snapshot that will not be whole.
func (s *streams) giveUp(in *Incoming, err error) {
	s.forget(in)
	if !in.Whole {
		in.Err = err
	}
	s.d.next()
}

func (s *streams) forget(in *Incoming) {
	if s.in[in.From] == in {
		delete(s.in, in.From)
	}
}

// answer tells the sender of a snapshot how it ended.
func (s *streams) answer(to, stream uint64, err error) {
	st := wire.ChunkStatus{Stream: stream, OK: err == nil || errors.Is(err, replica.ErrNotNeeded)}
	if !st.OK {
		st.Reason = err.Error()
	}
	s.d.on.Send([]wire.Message{{Group: s.d.Group, From: s.d.ID, To: to, Body: st}})
}
