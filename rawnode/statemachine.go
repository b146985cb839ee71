// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"io"

	"github.com/weftraft/weft/internal/replica"
)

// StateMachine is the user's replicated state. The Raft log is its write-ahead log: applied
// commands need not be durable at once, as long as Durable reports the durable index.
//
// Apply may be given commands that the log of this node has not stored yet: a majority of the members has
// (ReplicaConfig.MaxEarlyApplyBytes bounds them). After a crash the state may therefore be ahead of
// its log, whatever the state machine does to be durable. The host then begins the log anew at the
// state's index, as behind a snapshot, and the commands behind come from the other members. A state
// that was not durable at that index loses the commands that the log has lost, and is given them again.
//
// Beside its own state, a state machine keeps a few bytes for the host (the last batch applied from
// each node, and the members). The bytes belong to the applied index, and are written and found
// together with that index.
//
// Apply and Restore are called by one goroutine, one after the other; Durable and Snapshot by other
// goroutines at the same time. No method may call a Host of its group: the call may wait for the method.
//
// A state machine may have a method Stalled() error, which must not wait. An error says that Apply
// waits because there is no room to write, and gives the reason. While Stalled returns an error,
// the host refuses commands ([ErrStalled]), and hands over leadership if another node can lead. A
// state machine with Stalled should be [Interruptible], too.
//
// A state machine may have a method AdmitChange(*raftpb.ConfState, *raftpb.ConfChangeV2) error, which
// has a word in changes of the members, for example because ids of removed members are never used
// again. The leader asks it, with the present members, before a change enters the log; an error
// refuses the change, and its text is in the caller's error, which wraps [ErrConfChange]. All earlier
// changes, and the commands before them, are applied then, or the change has no effect whatever is
// returned. AdmitChange must change neither argument, and must not wait.
//
// A state machine may have a method AdmitFromGateway(command []byte) error, for commands that members alone may propose. The
// leader asks it about the commands of a gateway before they enter the log; an error refuses the command, and those in
// one batch with it, and its text is in the caller's error. AdmitFromGateway looks at the command alone, and is called
// at the same time as other methods.
//
// A state machine may have a method Settings() []Setting, called once by New, after Load, which names the settings
// that decide what commands do, and must therefore be equal at all replicas, always. Nodes whose
// settings differ take nothing from each other: see [Status].Settings.
//
// A state machine may have a method SnapshotBytes() int64, called once by New, after Load: about how many bytes a snapshot
// of the state has, or 0. The order in which groups catch up depends on it ([CatchUp]), until a snapshot was sent or taken.
//
// A state machine may have a method Differs() error, which must not wait. An error says that replicas
// of the group were compared and are not equal; it is in [HostStatus], and package metrics counts it.
type StateMachine interface {
	// Load returns the index of the state that survived the last run, and the host's bytes as of
	// that index. An empty state machine returns 0 and nil. The returned state counts as durable:
	// after a process was killed, a state may be in the caches of the operating system only, so Load
	// syncs the state before it returns. The host calls Load once, before any other method.
	Load() (applied uint64, host []byte, err error)

	// Apply applies the commands of b in order and brings the state to b.Index, in one step as seen
	// by readers and after crashes. Apply returns one result for each command: any value, or an
	// error, with a meaning to the caller of Propose. All replicas must come to the same state. An
	// error of Apply stops the host: the state could not be written.
	Apply(b Batch) (results []any, err error)

	// Durable returns the index up to which the state survives a crash without the log. The index
	// never decreases. The host keeps at least the log after the index.
	Durable() (uint64, error)

	// Snapshot opens a view of the present state. The view does not change while Apply goes on. The
	// host closes the view.
	Snapshot() (Snapshot, error)

	// Restore replaces the state by the snapshot's, durably and in one step: after a crash the state is the
	// old one or the new one. Restore must read body up to io.EOF, because only io.EOF shows that body is
	// whole. After any other error of body Restore returns this error and leaves the state unchanged. If Restore
	// reads nothing for Config.SnapshotTimeout, body returns an error.
	//
	// After an error of Restore the host goes on with the old state. A state machine that has lost the old
	// state fails all later calls of Apply.
	//
	// A host's snapshot has a higher index than the state. TakeBack of package weft, which has no host, restores a
	// lower index, and Durable then returns the lower index.
	Restore(meta SnapshotMeta, body io.Reader) error
}

// Setting is a setting of a state machine that must be equal at all replicas: a name, and the value in
// words, of at most 256 bytes each. A state machine has at most 32.
type Setting = replica.Setting

// Interruptible is an optional interface of a [StateMachine] whose Apply or Restore may wait, for
// example for room on a disk. Without Interruptible, a host cannot be stopped in good order while
// Apply or Restore waits: see [Host.Stop].
type Interruptible interface {
	// Interrupt says that the host has ended, because the host was stopped or has failed: no caller
	// waits for results any more, and the log has all commands that are not applied. An Apply or
	// Restore that waits, or is about to wait, returns an error, which does not count as a failure
	// then, and leaves a state for Load, from before or after the call. Neither method is called
	// again until another host has called Load. Interrupt is called once, and must not wait.
	Interrupt(reason error)
}

// Querier is an optional interface of a [StateMachine] that answers questions of gateways: see [Gateway.Query].
type Querier interface {
	// Query answers a request from the present state, which must not be changed. Query is called by several
	// goroutines, at the same time as all other methods, after the read barrier that the asker wants. An
	// error's text reaches the asker. Query returns soon after ctx has ended.
	Query(ctx context.Context, request []byte) (answer []byte, err error)
}

// ResultEncoder is an optional interface of a [StateMachine] whose results are to reach callers at gateways. A
// result of the type []byte, and nil, need none.
type ResultEncoder interface {
	// EncodeResult returns a result of Apply as bytes, which depend on the result alone. They are at most 8 MiB, and at
	// most the transport's largest message less 1 MiB. An error says why the result has no bytes. Another goroutine may
	// call EncodeResult while Apply runs, and EncodeResult must not wait.
	EncodeResult(result any) ([]byte, error)
}

// Batch is the input of one call of [StateMachine.Apply].
type Batch struct {
	// Index is the log index of the state after the call, above the Index of the previous batch.
	Index uint64
	// Commands are the commands of the entries up to Index, in order; often none. The state machine
	// may keep the slices, and must not change the bytes.
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

// Log is the durable log of one group: a raft.Storage that is written with Append, gets durable
// states with SetSnapshot, and is shortened with Compact. *storage.Group is a Log. A replica's core
// reads the log while another goroutine writes.
//
// A log with the methods Identity, ID and Acquire of *storage.Group knows its owner. [New] refuses
// the log of another node or group, and a log that another host of this process still uses. What a log shows to New
// counts as durable, so Acquire waits for writes that an earlier host has left.
type Log = replica.Log
