// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// snapshotsIn receives snapshots: at most one from each peer at a time. The state machine restores
// one snapshot at a time.
type snapshotsIn struct {
	h *Host

	mu     sync.Mutex
	active map[uint64]*incoming // by sender
	over   map[uint64]uint64    // by sender: the last stream with which the state machine was done
	closed bool
}

// incoming is a snapshot that arrives. Chunks go through a pipe without a buffer, so that the
// sender is no faster than the state machine.
type incoming struct {
	from, stream uint64
	next         uint64 // number of the next chunk
	header       *pb.Message
	begun        replica.Deadline // when the first chunk came
	bytes        atomic.Int64     // received so far
	r            io.ReadCloser
	w            *io.PipeWriter
	idle         *time.Timer
	fetched      bool // by this node: see fetchesIn. w and idle are nil
}

func newSnapshotsIn(h *Host) *snapshotsIn {
	return &snapshotsIn{h: h, active: map[uint64]*incoming{}, over: map[uint64]uint64{}}
}

// receive takes a chunk. receive waits until the state machine has read the chunk, for at most
// SnapshotTimeout, because the connection brings the snapshots of all groups.
func (s *snapshotsIn) receive(from, to uint64, c wire.Chunk) {
	if c.Number == 0 && !s.hasBegun(from, c.Stream) {
		if err := s.open(from, to, c); err != nil {
			s.answer(from, c.Stream, err)
			return
		}
	}
	s.take(from, c)
}

// hasBegun reports whether the first chunk of a stream has come: a network may bring it again.
func (s *snapshotsIn) hasBegun(from, stream uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.active[from]
	return in != nil && in.stream == stream || s.over[from] == stream
}

// take gives a chunk to the open snapshot of its sender. Restore may end before the chunk comes,
// even before the first chunk, because the apply stage runs beside the connection: a sender gets
// one answer, that of Restore.
func (s *snapshotsIn) take(from uint64, c wire.Chunk) {
	s.mu.Lock()
	in := s.active[from]
	switch {
	case s.over[from] == c.Stream, in != nil && in.stream == c.Stream && c.Number < in.next:
		s.mu.Unlock() // a rest that Restore chose not to read, or a chunk that has come twice
		return
	case in == nil || in.stream != c.Stream:
		s.mu.Unlock()
		s.answer(from, c.Stream, fmt.Errorf("chunk %d of a snapshot whose beginning did not come", c.Number))
		return
	case in.next != c.Number:
		s.mu.Unlock()
		in.fail(fmt.Errorf("chunk %d came where %d was due", c.Number, in.next))
		return
	}
	in.next++
	s.mu.Unlock()
	if err := in.feed(c, s.h.cfg.SnapshotTimeout); err != nil {
		s.answer(from, c.Stream, err)
	}
}

// feed gives a chunk to the state machine. An error says that the state machine took too long;
// every other failure is reported when Restore returns.
func (in *incoming) feed(c wire.Chunk, timeout time.Duration) error {
	if c.Broken != "" {
		in.fail(fmt.Errorf("node %d gave up: %s", in.from, c.Broken))
		return nil
	}
	in.idle.Stop()
	in.bytes.Add(int64(len(c.Data)))
	if len(c.Data) > 0 {
		stuck := fmt.Errorf("the state machine took nothing for %v", timeout)
		patience := time.AfterFunc(timeout, func() { in.fail(stuck) })
		_, err := in.w.Write(c.Data)
		if !patience.Stop() {
			return stuck
		}
		if err != nil {
			return nil // the reader has given up
		}
	}
	if c.Last {
		_ = in.w.Close() // never fails, as the package says
		return nil
	}
	in.idle.Reset(timeout)
	return nil
}

// fail has the state machine's Read return an error.
func (in *incoming) fail(err error) {
	in.idle.Stop()
	_ = in.w.CloseWithError(err) // never fails
}

// open begins a snapshot if the replica accepts the snapshot.
func (s *snapshotsIn) open(from, to uint64, c wire.Chunk) error {
	if c.Header == nil || c.Header.GetTo() != to {
		return errors.New("it has no header for this node")
	}
	in := &incoming{from: from, stream: c.Stream, header: c.Header, begun: s.h.now()}
	r, w := io.Pipe()
	in.r, in.w = r, w
	in.idle = time.AfterFunc(s.h.cfg.SnapshotTimeout, func() {
		in.fail(fmt.Errorf("no chunk came from node %d for %v", from, s.h.cfg.SnapshotTimeout))
	})
	s.mu.Lock()
	old := s.active[from]
	s.mu.Unlock()
	if old != nil {
		old.fail(fmt.Errorf("node %d began another snapshot", from))
	}
	if err := s.offer(in); err != nil {
		in.idle.Stop()
		return err
	}
	return nil
}

// offer asks the replica for permission. If the replica agrees, the apply stage gets the snapshot
// after all earlier work.
func (s *snapshotsIn) offer(in *incoming) error {
	answer := make(chan error, 1)
	if !s.h.inbox.post(func(r *replica.Replica) {
		err := r.OfferSnapshot(in.from, in.header)
		if errors.Is(err, replica.ErrRestoring) {
			s.giveUpOlder(in)
		}
		if err == nil {
			s.mu.Lock()
			if s.closed {
				err = ErrStopped
			} else {
				s.active[in.from] = in
			}
			s.mu.Unlock()
		}
		if err == nil {
			s.h.flush(r, s.h.now())
			s.h.applies.put(applyJob{restore: in}, 0)
		}
		answer <- err
	}) {
		return ErrStopped
	}
	select {
	case err := <-answer:
		return err
	case <-s.h.finished:
		return ErrStopped
	case <-time.After(s.h.cfg.SnapshotTimeout): // the connection serves other groups, too
		err := fmt.Errorf("%w: %s, for %v", ErrNotEnded, loopName, s.h.cfg.SnapshotTimeout)
		in.fail(err) // and so does Restore, if the replica agrees later
		return err
	}
}

// giveUpOlder ends the snapshots from leaders of earlier terms: such a leader may be gone, and this
// node would wait for the end of its snapshot. The new snapshot is refused now, and its sender
// sends again.
func (s *snapshotsIn) giveUpOlder(in *incoming) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range s.active {
		if old.header.GetTerm() < in.header.GetTerm() {
			old.fail(fmt.Errorf("node %d leads since", in.from))
		}
	}
}

// answer tells the sender how its snapshot ended.
func (s *snapshotsIn) answer(to, stream uint64, err error) {
	st := wire.ChunkStatus{Stream: stream, OK: err == nil || errors.Is(err, replica.ErrNotNeeded)}
	if !st.OK {
		st.Reason = err.Error()
	}
	rc := &s.h.cfg.Replica
	s.h.cfg.Transport.Send([]wire.Message{{Group: rc.Group, From: rc.ID, To: to, Body: st}})
}

// restore runs in the apply stage, and returns the state's index.
func (h *Host) restore(in *incoming, applied uint64) uint64 {
	snap := in.header.GetSnapshot()
	meta := SnapshotMeta{Index: snap.GetMetadata().GetIndex(), Host: snap.GetData()}
	err := h.cfg.StateMachine.Restore(meta, in.r)
	_ = in.r.Close() // never fails; nobody waits for the rest
	if err != nil {
		err = fmt.Errorf("restore a snapshot of index %d: %w", meta.Index, err)
		h.cfg.Logger.Warn("snapshot not restored", "from", in.from, "error", err)
	} else {
		applied = meta.Index
		h.local.Applied(applied)
	}
	if in.idle != nil {
		in.idle.Stop()
	}
	h.sized(in.bytes.Load(), err)
	if recorder := h.cfg.Recorder; recorder != nil {
		recorder.SnapshotRestored(SnapshotTimes{Peer: in.from, Bytes: in.bytes.Load(), Took: h.now() - in.begun, Err: err})
	}
	if in.fetched {
		h.inbox.post(func(r *replica.Replica) { h.fetched.restored(r, err) })
		return applied
	}
	h.in.forget(in)
	h.inbox.post(func(r *replica.Replica) {
		r.SnapshotRestored(in.header, err)
		h.in.answer(in.from, in.stream, err)
	})
	return applied
}

// forget removes a snapshot after the state machine is done with it.
func (s *snapshotsIn) forget(in *incoming) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[in.from] == in {
		delete(s.active, in.from)
		s.over[in.from] = in.stream
	}
}

// close ends the snapshots that are arriving.
func (s *snapshotsIn) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, in := range s.active {
		in.fail(ErrStopped)
	}
	clear(s.active)
}
