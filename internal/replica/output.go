// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/storage"
)

// Call identifies a call of a user at a replica: Propose, Read and so on. The
// driver chooses it, and finds it again in a [Done].
type Call uint64

// Output is what a replica wants done. Each list is in order, and the lists
// belong to stages that need not wait for each other.
type Output struct {
	// Sends are messages to peers. They may leave at once and may get lost.
	Sends []wire.Message
	// Appends are writes to the log, to be done in order.
	Appends []Append
	// Applies are for the state machine, to be done in order.
	Applies []Apply
	// Snapshots are to be sent to peers.
	Snapshots []SnapshotSend
	// Done are the ended calls.
	Done []Done
	// Queries of gateways are for the state machine.
	Queries []Query
	// Compact, or nil, tells which entries the log may drop.
	Compact *Compact
}

// Empty reports whether there is nothing to do.
func (o *Output) Empty() bool {
	return len(o.Sends)+len(o.Appends)+len(o.Applies)+len(o.Snapshots)+len(o.Done)+len(o.Queries) == 0 && o.Compact == nil
}

// Append is a write to the log. When the write is durable, the driver calls
// [Replica.AppendDone] with the Append.
type Append struct {
	Write storage.Write
	bytes int // of the entries
	// number counts the writes of a replica.
	number uint64
	// responses are delivered when the write is durable.
	responses []*pb.Message
}

// Bytes returns the size of the entries that are written.
func (a *Append) Bytes() int { return a.bytes }

// Apply is a step of the state machine: when done, the driver calls [Replica.ApplyDone]
// with the Apply and the results.
type Apply struct {
	Batch Batch
	// First is the index of the first entry in the batch. A state machine that
	// is at Batch.Index or beyond already, because a snapshot was restored,
	// is left alone, and ApplyDone gets nil results.
	First     uint64
	calls     []appliedCall
	guests    []guestEntry
	responses []*pb.Message
}

// SnapshotSend asks for the state to be sent to a peer: see
// [Replica.SnapshotHeader] for how, and [Replica.SnapshotSent] for what follows.
type SnapshotSend struct {
	To      uint64
	Message *pb.Message // the MsgSnap
	Least   uint64      // a snapshot of an earlier state, down to this index, does as well; at most the index of Message
	Sources []uint64    // other members that may have applied as much, ascending
	Urgency wire.Urgency
}

// Query is a question of a gateway to the state machine. The state is as fresh as the gateway wants:
// the driver asks the state machine now, and calls [Replica.Answered].
type Query struct {
	From    uint64
	Request []byte
	// Patience is how long the gateway still waits, at most.
	Patience time.Duration
	query    wire.Query
	read     ReadResult
}

// Compact tells which part of the log is not needed any more.
type Compact struct {
	// Snapshot is the durable state that stands for the entries up to its
	// index: for Log.SetSnapshot.
	Snapshot *pb.SnapshotMetadata
	// Index is the last entry to be dropped, at most Snapshot.Index: for Log.Compact.
	Index uint64
}

// Done tells how a call ended.
type Done struct {
	Call Call
	// Result is the state machine's result, for an applied command; the new *raftpb.ConfState,
	// for a configuration change; else nil.
	Result any
	// Index is the command's index in the log, or the index a read waited for.
	Index uint64
	// Read is the ground of a read.
	Read ReadResult
	// Sent and Committed are times of an applied command, in the driver's time: when the
	// command left the queue for the first time, for the log of this node or for the leader,
	// and when this node knew of the commit of its entry.
	Sent, Committed Deadline
	// Err is nil or a *CallError.
	Err error
}

// Deadline is a moment in the driver's time. Calls end then at the latest.
type Deadline = time.Duration
