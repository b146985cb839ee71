// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"io"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/fetch"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// announcing is a Transport that knows which kinds of messages a node takes.
type announcing interface {
	Announced(node uint64) (wire.Kinds, wire.Capabilities, bool)
}

// fetches reports whether a node knows how to fetch snapshots.
func (h *Host) fetches(node uint64) bool {
	t, ok := h.cfg.Transport.(announcing)
	if !ok {
		return false
	}
	kinds, _, known := t.Announced(node)
	return known && kinds.Has(wire.KindOffer) && kinds.Has(wire.KindFetch)
}

// fetchedStreams marks the numbers of streams that a node has chosen as a receiver. Its numbers as
// a sender are below.
const fetchedStreams = 1 << 63

// fetchesIn fetches snapshots from the nearest member: see package fetch.
type fetchesIn struct {
	h *Host

	mu     sync.Mutex
	recv   *fetch.Receiver
	in     *incoming // that recv has begun, until Restore has returned
	body   *fetchedBody
	begun  bool           // in is to be offered to the replica
	sends  []wire.Message // to be sent
	place  *catchup.Place // in the budget, while recv is busy; may be nil
	closed bool
}

func newFetchesIn(h *Host) *fetchesIn {
	f := &fetchesIn{h: h}
	f.recv = fetch.NewReceiver(fetch.Config{
		Group: h.cfg.Replica.Group, ID: h.cfg.Replica.ID, First: h.cfg.Replica.Boot | fetchedStreams,
		Repeat: h.cfg.TickInterval * time.Duration(h.cfg.Replica.ElectionTick), Patience: h.cfg.SnapshotTimeout,
	}, (*fetchEnds)(f))
	return f
}

// news brings something to the receiver, and the receiver's effects to their places.
func (f *fetchesIn) news(do func(*fetch.Receiver, time.Duration)) {
	f.mu.Lock()
	do(f.recv, f.h.now())
	sends, in := f.sends, f.in
	begun := f.begun && in != nil
	f.sends, f.begun = nil, false
	var left *catchup.Place
	if !f.recv.Busy() {
		left, f.place = f.place, nil
	}
	f.mu.Unlock()
	f.h.cfg.CatchUp.shared().Leave(left)
	if len(sends) > 0 {
		f.h.cfg.Transport.Send(sends)
	}
	if begun {
		f.h.inbox.post(func(r *replica.Replica) { f.begin(r, in) })
	}
}

// begin offers a snapshot to the replica. If the replica agrees, the apply stage gets the snapshot
// after all earlier work.
func (f *fetchesIn) begin(r *replica.Replica, in *incoming) {
	err := r.OfferSnapshot(in.header.GetFrom(), in.header)
	if err == nil {
		f.h.flush(r, f.h.now())
		f.h.applies.put(applyJob{restore: in}, 0)
		return
	}
	if errors.Is(err, replica.ErrNotNeeded) {
		err = nil
	}
	f.news(func(recv *fetch.Receiver, _ time.Duration) {
		f.in, f.body = nil, nil
		recv.Refused(err)
	})
}

// offered takes a leader's offer, in a turn.
func (f *fetchesIn) offered(r *replica.Replica, from uint64, o wire.Offer) {
	err := r.OfferedFetch(from, o)
	f.mu.Lock()
	follows := err == nil || errors.Is(err, replica.ErrRestoring) && f.recv.Busy()
	f.mu.Unlock()
	if !follows {
		f.h.in.answer(from, o.Stream, err)
		return
	}
	u := r.Urgency(from, o)
	f.news(func(recv *fetch.Receiver, now time.Duration) { recv.Offer(now, from, o, u) })
}

// placed says that the snapshot that has waited for a place has one. The replica may need it no more.
func (f *fetchesIn) placed() {
	f.h.inbox.post(func(r *replica.Replica) {
		f.mu.Lock()
		from, o := f.recv.Offered()
		f.mu.Unlock()
		err := r.OfferedFetch(from, o)
		f.news(func(recv *fetch.Receiver, now time.Duration) {
			switch {
			case err == nil:
				recv.Placed(now)
			case errors.Is(err, replica.ErrNotNeeded):
				recv.Outdated(nil)
			default:
				recv.Outdated(err)
			}
		})
	})
}

// chunk takes a piece, and reports whether it is of a snapshot that is fetched.
func (f *fetchesIn) chunk(from uint64, c wire.Chunk) bool {
	if c.Stream < fetchedStreams {
		return false
	}
	f.news(func(recv *fetch.Receiver, now time.Duration) { recv.Chunk(now, from, c) })
	return true
}

func (f *fetchesIn) status(from uint64, st wire.ChunkStatus) {
	f.news(func(recv *fetch.Receiver, now time.Duration) { recv.Status(now, from, st) })
}

func (f *fetchesIn) tick() {
	f.mu.Lock()
	busy := f.recv.Busy()
	f.mu.Unlock()
	if busy {
		f.news(func(recv *fetch.Receiver, now time.Duration) { recv.Tick(now) })
	}
}

// restored says in a turn that the state machine is done.
func (f *fetchesIn) restored(r *replica.Replica, err error) {
	f.mu.Lock()
	header := f.recv.Header()
	f.in, f.body = nil, nil
	f.mu.Unlock()
	r.SnapshotRestored(header, err)
	f.news(func(recv *fetch.Receiver, now time.Duration) { recv.Restored(now, err) })
}

// close ends the snapshot that is arriving.
func (f *fetchesIn) close() {
	f.mu.Lock()
	f.closed = true
	left := f.place
	f.place = nil
	if f.body != nil {
		f.body.fail(ErrStopped)
	}
	f.mu.Unlock()
	f.h.cfg.CatchUp.shared().Leave(left)
}

// fetchEnds implements fetch.Ends. The receiver calls the methods within news.
type fetchEnds fetchesIn

func (f *fetchEnds) Send(m wire.Message) { f.sends = append(f.sends, m) }

func (f *fetchEnds) Place(u wire.Urgency) bool {
	if f.closed {
		return true
	}
	if f.place == nil {
		f.place = &catchup.Place{Direction: catchup.Taking, Ready: (*fetchesIn)(f).placed}
	}
	return f.h.cfg.CatchUp.shared().Ask(f.place, u, f.h.left(0), f.h.chunks(fetch.Window))
}

func (f *fetchEnds) Begin(header *pb.Message) {
	f.body = &fetchedBody{took: func() {
		(*fetchesIn)(f).news(func(recv *fetch.Receiver, now time.Duration) { recv.Took(now) })
	}}
	f.body.changed.L = &f.body.mu
	if f.closed {
		f.body.fail(ErrStopped)
	}
	f.in = &incoming{from: f.recv.Source(), stream: f.recv.Stream(), header: header, begun: f.h.now(), r: f.body, fetched: true}
	f.begun = true
}

func (f *fetchEnds) Data(data []byte, last bool) {
	if f.body != nil {
		f.in.bytes.Add(int64(len(data)))
		f.body.add(data, last)
	}
}

func (f *fetchEnds) Fail(err error) {
	if f.body != nil {
		f.body.fail(err)
	}
}

// fetchedBody is the body of a snapshot that is fetched. The receiver bounds what waits here.
type fetchedBody struct {
	took func() // called when a piece has been read

	mu      sync.Mutex
	changed sync.Cond
	pieces  [][]byte
	whole   bool
	err     error
}

func (b *fetchedBody) add(data []byte, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pieces, b.whole = append(b.pieces, data), last
	b.changed.Broadcast()
}

func (b *fetchedBody) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.changed.Broadcast()
}

// Read implements io.Reader.
func (b *fetchedBody) Read(p []byte) (int, error) {
	for {
		n, done, err := b.read(p)
		if done {
			b.took()
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// read reads of the first piece. done says that the piece has been read.
func (b *fetchedBody) read(p []byte) (n int, done bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.pieces) == 0 && !b.whole && b.err == nil {
		b.changed.Wait()
	}
	switch {
	case b.err != nil:
		return 0, false, b.err
	case len(b.pieces) == 0:
		return 0, false, io.EOF
	}
	n = copy(p, b.pieces[0])
	if b.pieces[0] = b.pieces[0][n:]; len(b.pieces[0]) > 0 {
		return n, false, nil
	}
	b.pieces[0] = nil
	b.pieces = b.pieces[1:]
	return n, true, nil
}

// Close implements io.Closer: nothing more is read.
func (b *fetchedBody) Close() error {
	b.fail(io.ErrClosedPipe)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pieces = nil
	return nil
}
