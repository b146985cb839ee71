// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
)

var errSoon = errors.New("storage: being written")

// Write is what one group wants to have written: any of its parts may be nil.
// It survives a crash whole or not at all. The engine keeps the entries, hard
// state and snapshot it is given; the caller must not change them any more.
type Write struct {
	// Snapshot, installed from a leader, replaces the log and the snapshot
	// before Entries are appended. Its Data may be nil: bodies are the host's.
	Snapshot *pb.Snapshot
	// Entries are consecutive. They replace what the log holds from the first
	// of them on; entries already compacted are left out.
	Entries []*pb.Entry
	// HardState is the state from now on. It never goes back.
	HardState *pb.HardState
	// Lazy says that nobody waits for the write to be durable (for example a
	// hard state in which only Commit moved): it is written in its order, with no sync
	// of its own, and its callback runs once it is handed to the file system.
	Lazy bool
}

// Engine is an open log directory.
type Engine struct{}

// Open opens the log in dir, making it if there is none.
func Open(dir string, opts Options) (*Engine, error) { return nil, errSoon }

// Group returns the group with that id (any number), empty if it is new.
func (e *Engine) Group(id uint64) (*Group, error) { return nil, errSoon }

// Groups returns the ids of all groups, ascending.
func (e *Engine) Groups() []uint64 { return nil }

// Recovery says what Open found.
func (e *Engine) Recovery() Recovery { return Recovery{} }

// Stats returns counters.
func (e *Engine) Stats() Stats { return Stats{} }

// Err returns nil while the engine takes writes, else why not (ErrFailed, ErrClosed).
func (e *Engine) Err() error { return errSoon }

// Step writes one batch of what is queued (Options.Manual only) and reports whether there was any.
func (e *Engine) Step() (bool, error) { return false, errSoon }

// Sync waits until everything queued before is durable.
func (e *Engine) Sync(ctx context.Context) error { return errSoon }

// Close writes and syncs what is queued, and closes.
func (e *Engine) Close() error { return errSoon }

// Group is one group's log; it implements raft.Storage.
type Group struct{}

// Append queues w and returns; done (may be nil) runs later on the writer's goroutine, in queue order
// over all groups, with nil once w is durable, or with ErrFailed/ErrClosed. It must not block nor call the engine's
// waiting methods; if Append itself returns an error (ErrInvalid, ErrFailed, ErrClosed), nothing was queued and done will not run.
// Append waits while the queue is over Options.QueueBytes.
func (g *Group) Append(w Write, done func(error)) error { return errSoon }

// AppendWait is Append, returning when w is durable.
func (g *Group) AppendWait(ctx context.Context, w Write) error { return errSoon }

// SetSnapshot records that the host has a durable snapshot (its applied state) at meta.Index, an index of the
// log; the log stays. data is an optional small body. Queued lazily, in order.
func (g *Group) SetSnapshot(meta *pb.SnapshotMetadata, data []byte) error { return errSoon }

// Compact drops entries up to index, which is at most the snapshot's (SetSnapshot comes first). Queued lazily, in order.
func (g *Group) Compact(index uint64) error { return errSoon }

// InitialState implements raft.Storage.
func (g *Group) InitialState() (*pb.HardState, *pb.ConfState, error) { return nil, nil, errSoon }

// Entries implements raft.Storage.
func (g *Group) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) { return nil, errSoon }

// Term implements raft.Storage.
func (g *Group) Term(i uint64) (uint64, error) { return 0, errSoon }

// FirstIndex implements raft.Storage.
func (g *Group) FirstIndex() (uint64, error) { return 0, errSoon }

// LastIndex implements raft.Storage.
func (g *Group) LastIndex() (uint64, error) { return 0, errSoon }

// Snapshot implements raft.Storage: ErrSnapshotTemporarilyUnavailable if there is none or the log is compacted beyond it.
func (g *Group) Snapshot() (*pb.Snapshot, error) { return nil, errSoon }
