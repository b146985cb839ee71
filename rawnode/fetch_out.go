// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/fetch"
	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

var (
	errNoStream = errors.New("there is no such stream, or no longer")
	errIdle     = errors.New("the member fetches no more")
	errAnew     = errors.New("the member fetches anew")
	errFetched  = errors.New("the member has restored the snapshot") // ends a stream well
)

// fetchesOut serves members that fetch snapshots from this node: see package fetch. Each stream has
// a goroutine of its own.
type fetchesOut struct {
	h *Host

	mu      sync.Mutex
	streams map[fetchedBy]*served
	asked   map[uint64]asked // by peer: the last question
	closed  bool             // no stream begins any more
}

// asked is what a source remembers of a question.
type asked struct {
	stream  uint64
	urgency wire.Urgency
	begun   uint64 // the last stream that has begun
}

// fetchedBy names a stream.
type fetchedBy struct{ peer, stream uint64 }

// served is a stream.
type served struct {
	fetchedBy
	cancel context.CancelCauseFunc
	wanted chan struct{} // has a token when more is wanted
	fetch.Stream
	heard time.Duration // when the member was heard last; as Stream, under fetchesOut.mu
	// Invariant: the room is for the chunks from the first that was not taken up to granted.
	granted uint64 // likewise
	urgency wire.Urgency
	room    *room
	bytes   int64 // sent; used by the goroutine only
}

func newFetchesOut(h *Host) *fetchesOut {
	return &fetchesOut{h: h, streams: map[fetchedBy]*served{}, asked: map[uint64]asked{}}
}

// close ends the beginning of streams. The transport may still bring messages: a stream that began behind the host's
// end would read a state that may be closed.
func (s *fetchesOut) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// busy returns how many streams there are.
func (s *fetchesOut) busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// take takes a member's part in fetching, but for its question: see ask.
func (s *fetchesOut) take(from uint64, f wire.Fetch) {
	if f.Step == wire.FetchLives && s.h.out.lives(from, f.Stream) {
		return
	}
	if err := s.want(fetchedBy{from, f.Stream}, f); err != nil {
		s.h.in.answer(from, f.Stream, err)
	}
}

// ask answers, in a turn, whether this node would send its state. With no room for the first chunks, the member goes to another
// source; but the leader has it wait, since somebody must.
func (s *fetchesOut) ask(r *replica.Replica, from uint64, f wire.Fetch) error {
	s.anew(from, f)
	if err := r.Provides(f); err != nil {
		return err
	}
	h := s.h
	if !h.out.hasRoom() || r.Leader() != h.cfg.Replica.ID && !h.cfg.CatchUp.shared().HasRoom(catchup.Sending, f.Urgency, h.chunks(fetch.Window)) {
		return replica.ErrOutgoingFull
	}
	return nil
}

// anew ends the earlier streams of a member, which fetches one at a time, and notes the question. A member that has died and
// restarted would else wait for the room that its own streams hold.
func (s *fetchesOut) anew(from uint64, f wire.Fetch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[from] = asked{f.Stream, f.Urgency, s.asked[from].begun}
	for key, sv := range s.streams {
		if key.peer == from && key.stream < f.Stream {
			sv.cancel(errAnew)
		}
	}
}

// want lets a stream go on, or begins one.
func (s *fetchesOut) want(key fetchedBy, f wire.Fetch) error {
	room := s.h.out.hasRoom()
	s.mu.Lock()
	defer s.mu.Unlock()
	sv, a := s.streams[key], s.asked[key.peer]
	// A stream begins once. A message that comes twice, or that was meant for this node before a restart,
	// would begin another state under the number of the first, and the member would join the two.
	begins := f.Step == wire.FetchTake && f.Number == 0 && a.stream == key.stream && a.begun != key.stream
	switch {
	case s.closed:
		return ErrStopped
	case sv == nil && f.Step == wire.FetchLives:
		return nil
	case sv == nil && !begins:
		return errNoStream
	case sv == nil && !room:
		return replica.ErrOutgoingFull
	case sv == nil:
		ctx, cancel := context.WithCancelCause(s.h.context)
		sv = &served{fetchedBy: key, cancel: cancel, wanted: make(chan struct{}, 1), room: s.h.room(), urgency: a.urgency}
		a.begun = key.stream
		s.asked[key.peer] = a
		s.streams[key] = sv
		s.h.spawn(func() { s.serve(ctx, sv, f) })
	}
	sv.heard = s.h.now()
	if f.Step == wire.FetchLives {
		return nil
	}
	before, _ := sv.Span()
	if err := sv.Want(f); err != nil {
		sv.cancel(err)
		return nil // the stream's goroutine answers
	}
	base, _ := sv.Span()
	sv.room.give(base - before)
	select {
	case sv.wanted <- struct{}{}:
	default:
	}
	return nil
}

// serve sends a state, and tells the member if the stream cannot go on.
func (s *fetchesOut) serve(ctx context.Context, sv *served, f wire.Fetch) {
	begun := s.h.now()
	err := s.stream(ctx, sv, f)
	sv.cancel(err)
	s.h.sized(sv.bytes, err)
	s.mu.Lock()
	delete(s.streams, sv.fetchedBy)
	sv.room.leave()
	s.mu.Unlock()
	log := s.h.cfg.Logger.With("group", s.h.cfg.Replica.Group, "to", sv.peer)
	if err != nil {
		s.h.in.answer(sv.peer, sv.stream, err)
		log.Warn("snapshot not sent to a member that fetched it", "error", err)
	} else {
		log.Info("snapshot sent to a member that fetched it")
	}
	if recorder := s.h.cfg.Recorder; recorder != nil {
		recorder.SnapshotSent(SnapshotTimes{Peer: sv.peer, Bytes: sv.bytes, Took: s.h.now() - begun, Err: err})
	}
}

func (s *fetchesOut) stream(ctx context.Context, sv *served, f wire.Fetch) (err error) {
	snap, err := s.open(ctx, sv)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	header, err := replica.FetchHeader(sv.peer, f, replica.SnapshotMeta(snap.Meta()))
	if err != nil {
		return err
	}
	if err := s.provides(ctx, f); err != nil { // as of now, after the state was opened
		return err
	}
	for {
		err := s.next(ctx, sv, header, snap)
		if err != nil || ctx.Err() != nil {
			if errors.Is(context.Cause(ctx), errFetched) {
				return nil
			}
			return cmp.Or(context.Cause(ctx), err)
		}
	}
}

// provides asks the replica whether the state may leave.
func (s *fetchesOut) provides(ctx context.Context, f wire.Fetch) error {
	answer := make(chan error, 1)
	if !s.h.inbox.post(func(r *replica.Replica) { answer <- r.Provides(f) }) {
		return ErrStopped
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// next sends the next chunk, or waits until one is wanted.
func (s *fetchesOut) next(ctx context.Context, sv *served, header *pb.Message, snap Snapshot) error {
	s.mu.Lock()
	number, reads, ok := sv.Next()
	base, until := sv.Span()
	asks := ok && number >= sv.granted
	waits := asks && !sv.room.ask(sv.urgency, sv.bytes, until-base)
	if asks && !waits {
		sv.granted = until
	}
	s.mu.Unlock()
	switch {
	case !ok:
		return s.wait(ctx, sv)
	case waits:
		return s.await(ctx, sv, until)
	}
	var buf []byte
	ended := false
	if reads {
		// A fresh buffer for each chunk, because the transport and the stream keep the buffer.
		buf = make([]byte, s.h.cfg.ChunkBytes)
		n, last, err := files.Fill(snap, buf)
		if err != nil {
			return fmt.Errorf("read the snapshot: %w", err)
		}
		buf, ended = buf[:n], last
	}
	s.mu.Lock()
	if reads {
		sv.Read(buf, ended)
	}
	if whole, ok := sv.Whole(); ok && whole < sv.granted { // a small state needs no window
		sv.room.give(sv.granted - whole)
		sv.granted = whole
	}
	c := sv.Take()
	s.mu.Unlock()
	c.Stream = sv.stream
	if c.Number == 0 {
		c.Header = header
	}
	if err := s.h.out.send(ctx, sv.peer, c); err != nil {
		return s.wait(ctx, sv) // the member asks again when it can be reached again
	}
	sv.bytes += int64(len(c.Data))
	return nil
}

// openFor is for how many SnapshotTimeouts a member waits at most for the state to be opened.
const openFor = 10

// open opens a view of the state, which may take minutes, as where a large state writes a checkpoint first. The member would
// otherwise go to another source, which takes as long.
func (s *fetchesOut) open(ctx context.Context, sv *served) (Snapshot, error) {
	limited, cancel := context.WithTimeout(ctx, openFor*s.h.cfg.SnapshotTimeout)
	defer cancel()
	s.h.spawn(func() { _ = s.alive(limited, sv, nil) }) // ends with the context
	return s.h.openSnapshot()
}

// await waits for room for the chunks that were asked for.
func (s *fetchesOut) await(ctx context.Context, sv *served, until uint64) error {
	if err := s.alive(ctx, sv, sv.room.free); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sv.granted = until
	return nil
}

// alive tells a member that this node lives, until something comes.
func (s *fetchesOut) alive(ctx context.Context, sv *served, until <-chan struct{}) error {
	alive := time.NewTicker(s.h.cfg.TickInterval * time.Duration(s.h.cfg.Replica.ElectionTick) / 2)
	defer alive.Stop()
	for {
		select {
		case <-until:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-alive.C:
			if s.patience(sv) <= 0 {
				return errIdle
			}
			s.h.in.answer(sv.peer, sv.stream, nil)
		}
	}
}

// wait waits until more is wanted.
func (s *fetchesOut) wait(ctx context.Context, sv *served) error {
	timer := time.NewTimer(s.patience(sv))
	defer timer.Stop()
	for {
		select {
		case <-sv.wanted:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		left := s.patience(sv)
		if left <= 0 {
			return errIdle
		}
		timer.Reset(left)
	}
}

// patience returns how long a member may be silent from now on.
func (s *fetchesOut) patience(sv *served) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sv.heard + s.h.cfg.SnapshotTimeout/2 - s.h.now()
}

// ended takes the member's word that its snapshot has ended, well or not.
func (s *fetchesOut) ended(from uint64, st wire.ChunkStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv := s.streams[fetchedBy{from, st.Stream}]
	switch {
	case sv == nil:
	case st.OK:
		sv.cancel(errFetched)
	default:
		sv.cancel(refusedBy(from, st))
	}
}
