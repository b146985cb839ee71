// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// maxOutgoing bounds the snapshots of a group that are sent at a time: more at a time would not arrive sooner.
// The core asks again for a snapshot that was turned away. [CatchUp] bounds those of all groups.
const maxOutgoing = 2

// snapshotsOut sends snapshots, each in a goroutine of its own.
type snapshotsOut struct {
	h *Host

	mu     sync.Mutex
	next   uint64
	active map[uint64]*outgoing // by stream
	offers map[uint64]*outgoing // by stream: snapshots that the peer fetches, perhaps elsewhere
	last   map[uint64]*outgoing // by peer: the snapshot that was started last
	failed map[uint64]failures  // by peer
}

// failures counts the snapshots for a peer that failed in a row.
type failures struct {
	n  int
	at time.Time // of the last failure
}

type outgoing struct {
	to     uint64
	bytes  int64 // taken by the transport; used by the sending goroutine only
	cancel context.CancelCauseFunc
	status chan wire.ChunkStatus // from the receiver; has room for one status
	lives  chan struct{}         // has a token when the receiver follows the offer
}

func newSnapshotsOut(h *Host) *snapshotsOut {
	return &snapshotsOut{h: h, next: h.cfg.Replica.Boot, active: map[uint64]*outgoing{}, offers: map[uint64]*outgoing{}, last: map[uint64]*outgoing{}, failed: map[uint64]failures{}}
}

// start sends a snapshot, or has the peer fetch one.
func (s *snapshotsOut) start(send replica.SnapshotSend) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	stream := s.next
	ctx, cancel := context.WithCancelCause(s.h.context)
	o := &outgoing{to: send.To, cancel: cancel, status: make(chan wire.ChunkStatus, 1)}
	s.last[send.To] = o
	if s.h.fetches(send.To) {
		o.lives = make(chan struct{}, 1)
		s.offers[stream] = o
		s.h.spawn(func() {
			err := s.offer(ctx, stream, o, send)
			cancel(err)
			s.mu.Lock()
			delete(s.offers, stream)
			s.mu.Unlock()
			s.end(o, err)
		})
		return
	}
	if len(s.active)+s.h.served.busy() >= maxOutgoing {
		cancel(replica.ErrOutgoingFull)
		s.h.spawn(func() { s.end(o, replica.ErrOutgoingFull) })
		return
	}
	s.active[stream] = o
	s.h.spawn(func() {
		begun := s.h.now()
		err := s.stream(ctx, stream, o, send)
		cancel(err)
		s.h.sized(o.bytes, err)
		if recorder := s.h.cfg.Recorder; recorder != nil {
			recorder.SnapshotSent(SnapshotTimes{Peer: o.to, Bytes: o.bytes, Took: s.h.now() - begun, Err: err})
		}
		s.mu.Lock()
		delete(s.active, stream)
		s.mu.Unlock()
		s.end(o, err)
	})
}

// busy reports whether a snapshot is being sent.
func (s *snapshotsOut) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active)+s.h.served.busy() > 0
}

// hasRoom reports whether another snapshot may be sent.
func (s *snapshotsOut) hasRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active)+s.h.served.busy() < maxOutgoing
}

// offer has a peer fetch a snapshot from the nearest member, and waits until the peer has restored
// the snapshot.
func (s *snapshotsOut) offer(ctx context.Context, stream uint64, o *outgoing, send replica.SnapshotSend) error {
	rc := &s.h.cfg.Replica
	m := wire.Message{Group: rc.Group, From: rc.ID, To: o.to, Body: wire.Offer{
		Stream: stream, Term: send.Message.GetTerm(), Index: send.Least, Sources: send.Sources,
	}}
	s.h.cfg.Transport.Send([]wire.Message{m})
	repeat := time.NewTicker(s.h.cfg.TickInterval * time.Duration(rc.ElectionTick))
	defer repeat.Stop()
	patience := time.NewTimer(s.h.cfg.SnapshotTimeout)
	defer patience.Stop()
	for {
		select {
		case st := <-o.status:
			if !st.OK {
				return refusedBy(o.to, st)
			}
			return nil
		case <-o.lives:
			patience.Reset(s.h.cfg.SnapshotTimeout)
		case <-repeat.C: // also once the peer follows: it may be started anew
			s.h.cfg.Transport.Send([]wire.Message{m})
		case <-patience.C:
			return fmt.Errorf("no word came from node %d, which fetches a snapshot, for %v", o.to, s.h.cfg.SnapshotTimeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lives takes a peer's word that it follows an offer, and reports whether there is such an offer.
func (s *snapshotsOut) lives(from, stream uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.offers[stream]
	if o == nil || o.to != from {
		return false
	}
	select {
	case o.lives <- struct{}{}:
	default:
	}
	return true
}

// end reports the outcome of a snapshot to the core. end reports a failure only after a pause,
// because the core sends the next snapshot at once. The cause of a failure lasts for a while (a
// state machine that cannot write, or a peer that is busy with another snapshot), and an attempt
// may be megabytes.
func (s *snapshotsOut) end(o *outgoing, err error) {
	log := s.h.cfg.Logger.With("group", s.h.cfg.Replica.Group, "to", o.to)
	pause := s.pause(o.to, err, time.Now())
	switch {
	case err == nil:
		log.Info("snapshot sent")
	case errors.Is(err, replica.ErrOutgoingFull):
		log.Debug("snapshot waits", "reason", err)
	default:
		log.Warn("snapshot not sent", "error", err, "again in", pause)
	}
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-s.h.context.Done():
		}
	}
	s.mu.Lock()
	latest := s.last[o.to] == o
	if latest {
		delete(s.last, o.to)
	}
	s.mu.Unlock()
	if latest { // otherwise the core leads again and waits for a later snapshot
		s.h.inbox.post(func(r *replica.Replica) { r.SnapshotSent(o.to, err) })
	}
}

// maxPauses is the longest pause after a failed snapshot for a peer, in election timeouts. The
// first pause is 1 timeout, and each later pause is twice the previous pause.
const maxPauses = 16

// pause notes the outcome of a snapshot and returns the time to wait before the next snapshot.
func (s *snapshotsOut) pause(to uint64, err error, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.failed, to)
		return 0
	}
	timeout := s.h.cfg.TickInterval * time.Duration(s.h.cfg.Replica.ElectionTick)
	if errors.Is(err, replica.ErrOutgoingFull) {
		return timeout
	}
	f := s.failed[to]
	if now.Sub(f.at) > 2*maxPauses*timeout {
		f.n = 0 // the earlier failures are old and no longer count
	}
	s.failed[to] = failures{f.n + 1, now}
	return timeout * time.Duration(min(1<<min(f.n, 30), maxPauses))
}

// openSnapshot opens a view of the present state.
func (h *Host) openSnapshot() (Snapshot, error) {
	snap, err := h.cfg.StateMachine.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("open a snapshot: %w", err)
	}
	if snap == nil {
		return nil, errors.New("open a snapshot: the state machine returned neither a snapshot nor an error")
	}
	return snap, nil
}

// stream sends a snapshot and waits until the receiver has restored the snapshot.
func (s *snapshotsOut) stream(ctx context.Context, stream uint64, o *outgoing, send replica.SnapshotSend) (err error) {
	snap, err := s.h.openSnapshot()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	header, err := replica.SnapshotHeader(send, replica.SnapshotMeta(snap.Meta()))
	if err != nil {
		return err
	}
	chunk := wire.Chunk{Stream: stream, Header: header}
	room := s.h.room()
	defer room.leave()
	for {
		if !room.ask(send.Urgency, o.bytes, 1) {
			if err := room.await(ctx); err != nil {
				return err
			}
		}
		// A fresh buffer for each chunk, because the transport keeps the buffer.
		buf := make([]byte, s.h.cfg.ChunkBytes)
		n, ended, err := files.Fill(snap, buf)
		chunk.Data, chunk.Last = buf[:n], ended
		if err != nil {
			chunk.Broken = fmt.Sprintf("read the snapshot: %v", err)
			return errors.Join(err, s.send(ctx, o.to, chunk))
		}
		if err := s.send(ctx, o.to, chunk); err != nil {
			return err
		}
		room.give(1)
		o.bytes += int64(n)
		if chunk.Last || len(o.status) > 0 { // the receiver may be satisfied without the rest
			return s.await(ctx, o)
		}
		chunk = wire.Chunk{Stream: stream, Number: chunk.Number + 1}
	}
}

// send sends a chunk within SnapshotTimeout, the time for which a receiver waits.
func (s *snapshotsOut) send(ctx context.Context, to uint64, chunk wire.Chunk) error {
	limited, cancel := context.WithTimeout(ctx, s.h.cfg.SnapshotTimeout)
	defer cancel()
	rc := &s.h.cfg.Replica
	err := s.h.cfg.Transport.SendWait(limited, wire.Message{Group: rc.Group, From: rc.ID, To: to, Body: chunk})
	if err != nil {
		return fmt.Errorf("send chunk %d: %w", chunk.Number, err)
	}
	return nil
}

func (s *snapshotsOut) await(ctx context.Context, o *outgoing) error {
	limited, cancel := context.WithTimeout(ctx, s.h.cfg.SnapshotTimeout)
	defer cancel()
	select {
	case st := <-o.status:
		if !st.OK {
			return refusedBy(o.to, st)
		}
		return nil
	case <-limited.Done():
		return fmt.Errorf("wait for node %d to restore: %w", o.to, context.Cause(limited))
	}
}

// ended takes the status of a snapshot from its receiver.
func (s *snapshotsOut) ended(from uint64, st wire.ChunkStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.active[st.Stream]
	if o == nil {
		o = s.offers[st.Stream]
	}
	if o == nil || o.to != from {
		return
	}
	select {
	case o.status <- st:
	default:
	}
	if !st.OK { // a failure may arrive in the middle of the snapshot
		o.cancel(refusedBy(from, st))
	}
}

func refusedBy(node uint64, st wire.ChunkStatus) error {
	return fmt.Errorf("refused by node %d: %s", node, st.Reason)
}

// unreachable gives up the snapshots that are sent to a peer. An offer goes on: the peer may fetch its snapshot elsewhere, and
// goes on where a stream broke off, while the next offer, of a later index, would have it begin anew.
func (s *snapshotsOut) unreachable(peer uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.active {
		if o.to == peer {
			o.cancel(fmt.Errorf("node %d cannot be reached", peer))
		}
	}
}
