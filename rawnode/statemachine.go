// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"io"

	"github.com/weftraft/weft/internal/replica"
)

// StateMachine is the user's replicated state. The Raft log is its write-ahead log: applied
// commands need not be durable at once, as long as Durable reports the durable index.
//
// Beside its own state a state machine keeps a few bytes for the host (the last batch
// applied from each node, the members): the bytes belong to the applied index, and are
// written and found together with that index.
//
// Apply and Restore are called by one goroutine, one after the other; Durable
// and Snapshot by others at the same time.
//
// A state machine may have a method Stalled() error, which must not wait: not
// nil says that Apply waits, as there is no room to write, and why. Its host
// takes no commands then ([ErrStalled]), and is not the leader if it can help it.
// A state machine that waits should be [Interruptible], too.
type StateMachine interface {
	// Load returns the index up to which the state that survived goes, and the
	// host's bytes as of that index. An empty state machine returns 0 and nil.
	// That state counts as durable: what may only be in the caches of the operating
	// system, as after a process was killed, is synced before Load returns.
	// It is called once, before everything else.
	Load() (applied uint64, host []byte, err error)

	// Apply applies the commands of b in order and brings the state to b.Index,
	// all at once as far as readers and crashes can see. It returns one result
	// for each command: any value, an error too, that means something to the
	// caller of Propose. All replicas must come to the same state. An error
	// stops the host: it says that the state could not be written.
	Apply(b Batch) (results []any, err error)

	// Durable returns the index up to which the state survives a crash without
	// the log. It never goes back. The log is kept from there on, at least.
	Durable() (uint64, error)

	// Snapshot opens a view of the present state that stays as it is while
	// Apply goes on. The host closes it.
	Snapshot() (Snapshot, error)

	// Restore replaces the state by that of a snapshot, durably, and in one step: after an
	// error or a crash the state is the old one or the new one. Restore must read body up to
	// io.EOF, because only io.EOF shows that body is whole; Restore returns any other error of
	// body, and the state stays unchanged. The host drops the unread rest of body when Restore
	// returns. A Restore that takes nothing for Config.SnapshotTimeout gets an error from
	// body.
	Restore(meta SnapshotMeta, body io.Reader) error
}

// Interruptible is an optional interface of a [StateMachine] that waits in Apply or
// Restore, for room on a disk or for anything else. Without it, a host cannot be
// stopped in good order while they wait: see [Host.Stop].
type Interruptible interface {
	// Interrupt says that the host has ended, because it was stopped or has failed:
	// nobody waits for results any more, and the log has what is not applied. An
	// Apply or Restore that waits, or is just about to, returns an error, which is no
	// failure then; it leaves a state that Load can find, of before or after the call.
	// Neither is called again until another host has called Load. Interrupt is called
	// once, and must not wait.
	Interrupt(reason error)
}

// Batch is what one call of [StateMachine.Apply] applies.
type Batch struct {
	// Index is the log index that the state is at afterwards. It is above that
	// of the previous batch.
	Index uint64
	// Commands are those of the entries up to Index, in order; often none.
	// They may be kept, and must not be changed.
	Commands [][]byte
	// Host, unless nil, replaces the host's bytes.
	Host []byte
}

// SnapshotMeta describes a snapshot.
type SnapshotMeta struct {
	// Index is the log index of the state.
	Index uint64
	// Host is the host's bytes as of Index.
	Host []byte
}

// Snapshot is an open view of a state. Read returns its body, up to io.EOF.
type Snapshot interface {
	Meta() SnapshotMeta
	io.ReadCloser
}

// Log is the durable log of one group: a raft.Storage that is written with Append, told of
// durable states with SetSnapshot, and shortened with Compact. *storage.Group is one. A
// replica's core reads the log while another goroutine writes.
//
// A log that also has the methods Identity, ID and Acquire of *storage.Group knows whose
// it is. [New] refuses the log of another node or group, and a log that another host of
// this process still uses.
type Log = replica.Log
