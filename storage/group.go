// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// Group is the log of one Raft group, and a raft.Storage. Its methods may be called
// from several goroutines; results are constant, and shared.
type Group struct {
	id    uint64
	e     *Engine
	taken atomic.Bool
	waits int // writes that have not ended; guarded by the engine's lock

	// mu guards the fields below. It is taken inside the engine's lock, never around
	// the engine's lock, and not held during I/O.
	mu        sync.RWMutex
	hardState *pb.HardState // nil until the first write
	snapshot  *pb.Snapshot  // never nil, its metadata complete
	log       memLog
	places    places
}

// places say where the latest record of each part of a group's state besides
// its entries is.
type places struct{ hardState, snapshot, base place }

func (p *places) in(s *segment) bool {
	return p.hardState.seg == s || p.snapshot.seg == s || p.base.seg == s
}

// place is the place of a part of the state; the zero value is nowhere. Its bytes count
// as live in the segment: otherwise large states would look dead right after their
// write, and purging would move them without end.
type place struct {
	seg   *segment
	bytes int64
}

func (p *place) move(seg *segment, bytes int) {
	if p.seg != nil {
		p.seg.live.Add(-p.bytes)
	}
	p.seg, p.bytes = seg, int64(bytes)
	seg.live.Add(p.bytes)
}

// publish notes seg as the place of the state in rec.
func (p *places) publish(rec *record, seg *segment) {
	if rec.installed != nil {
		p.snapshot.move(seg, proto.Size(rec.installed))
		p.base.move(seg, 0)
	}
	if rec.hardState != nil {
		p.hardState.move(seg, proto.Size(rec.hardState))
	}
	if rec.recorded != nil {
		p.snapshot.move(seg, proto.Size(rec.recorded))
	}
	if rec.base != nil {
		p.base.move(seg, 0)
	}
}

var _ raft.Storage = (*Group)(nil)

func newGroup(e *Engine, id uint64) *Group {
	return &Group{id: id, e: e, snapshot: pb.EnsureSnapshot(nil)}
}

// ID returns the group's id.
func (g *Group) ID() uint64 { return g.id }

// Identity returns the identity in [Options].
func (g *Group) Identity() Identity { return g.e.opts.Identity }

// Acquire reserves the group for one user in this process, until release is called;
// [ErrTaken] says that another user has the group. The other methods do not check the
// reservation, which is for users, such as a rawnode.Host, that must not share a log by
// mistake.
//
// Acquire waits until the writes of an earlier user have ended, because the Storage methods
// show them before they are durable, and a new user takes for durable what it finds. Nothing
// bounds the wait while the disk hangs. With [Options.Manual] it returns [ErrBusy] instead.
// Of an engine that takes no more it returns the reason, such as [ErrClosed].
func (g *Group) Acquire() (release func(), err error) {
	if !g.taken.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("%w: group %d: another user of it in this process has not ended; give each a group of its own", ErrTaken, g.id)
	}
	release = sync.OnceFunc(func() { g.taken.Store(false) })
	if err := g.settle(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// settle waits until no write of the group waits.
func (g *Group) settle() error {
	e := g.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for g.waits > 0 && e.refuse == nil {
		if e.opts.Manual {
			return fmt.Errorf("%w: group %d: %d writes of its last user; call Step", ErrBusy, g.id, g.waits)
		}
		e.room.Wait()
	}
	return e.refuse
}

// Append queues w and returns. The Storage methods show the write from now on. The
// write is durable once done, which may be nil, is called with nil.
//
// Callbacks run one after the other on the writer's goroutine, in the order of the
// queue, over all groups: callbacks must be short, and must not wait for the engine
// (Append may, when the queue is full); see also [Group.Rests]. A callback gets
// [ErrFailed] or [ErrClosed] if the write may not survive a crash.
//
// Append waits while the queue is over [Options.QueueBytes]; with [Options.Manual] it
// returns [ErrBusy] instead. After an error nothing is queued and done is not called:
// [ErrInvalid] names a mistake of the caller, [raft.ErrSnapOutOfDate] an old snapshot,
// [ErrFailed] and [ErrClosed] the end of the engine.
func (g *Group) Append(w Write, done func(error)) error {
	return g.e.enqueue(context.Background(), request{
		group: g, lazy: w.Lazy, done: done,
		stage: func() (*record, error) { return g.stage(w) },
	})
}

// TryAppend is Append for callers that must not wait: where Append would wait,
// TryAppend returns [ErrBusy].
func (g *Group) TryAppend(w Write, done func(error)) error {
	return g.e.enqueue(noWait, request{
		group: g, lazy: w.Lazy, done: done,
		stage: func() (*record, error) { return g.stage(w) },
	})
}

// Rests is for callbacks, and reports whether no other work needs the writer's
// goroutine, so that the callback need not be short. No other write waits, no other
// callback is due, and there is no other group.
func (g *Group) Rests() bool {
	e := g.e
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calling == 1 && len(e.queue) == 0 && len(e.groups) == 1
}

// noWait is an ended context.
var noWait = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// AppendWait is Append followed by a wait until w is durable. When ctx ends
// first, its error is returned, and w may or may not be written; if ctx had ended
// before the call, nothing is.
func (g *Group) AppendWait(ctx context.Context, w Write) error {
	return g.e.wait(ctx, request{
		group: g, lazy: w.Lazy,
		stage: func() (*record, error) { return g.stage(w) },
	})
}

// SetSnapshot says that the host keeps, durably, a snapshot of its state at meta.Index,
// which is in the log and above the previous snapshot's. The log stays as it is: see
// Compact. A zero meta.Term is filled in, a nil meta.ConfState means the previous
// snapshot's; data may be a small body, or nil.
//
// Like Append, SetSnapshot takes effect at once and is written in its order; no caller
// needs to wait, because after a crash the previous snapshot is as good.
func (g *Group) SetSnapshot(meta *pb.SnapshotMetadata, data []byte) error {
	return g.e.enqueue(context.Background(), request{
		group: g, lazy: true,
		stage: func() (*record, error) { return g.stageSnapshot(meta, data) },
	})
}

// Compact drops the entries up to index, which is at most the snapshot's, so that
// InitialState's configuration always goes with the entries behind it. If the entries
// are gone already, the error is [raft.ErrCompacted]. The term of the entry at index is
// kept. Segments without data of any group are reused. Like SetSnapshot, Compact is
// written in its order and needs no wait.
func (g *Group) Compact(index uint64) error {
	return g.e.enqueue(context.Background(), request{
		group: g, lazy: true,
		stage: func() (*record, error) { return g.stageCompact(index) },
	})
}

// InitialState implements raft.Storage.
func (g *Group) InitialState() (*pb.HardState, *pb.ConfState, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.hardState, pb.EnsureConfState(g.snapshot.GetMetadata().GetConfState()), nil
}

// FirstIndex implements raft.Storage.
func (g *Group) FirstIndex() (uint64, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.log.first(), nil
}

// LastIndex implements raft.Storage.
func (g *Group) LastIndex() (uint64, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.log.last(), nil
}

// Term implements raft.Storage. It never reads the disk.
func (g *Group) Term(i uint64) (uint64, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	switch {
	case i < g.log.base.index:
		return 0, raft.ErrCompacted
	case i > g.log.last():
		return 0, raft.ErrUnavailable
	}
	return g.log.termAt(i), nil
}

// Snapshot implements raft.Storage, and returns the snapshot of SetSnapshot or a Write. A host that
// makes snapshots on demand answers the Raft core itself. Without a snapshot the error is
// [raft.ErrSnapshotTemporarilyUnavailable].
func (g *Group) Snapshot() (*pb.Snapshot, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.snapshot.GetMetadata().GetIndex() == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return proto.Clone(g.snapshot).(*pb.Snapshot), nil
}
