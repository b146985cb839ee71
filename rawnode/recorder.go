// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"time"

	"github.com/weftraft/weft/internal/replica"
)

// Recorder is told how long what a [Host] does takes, for histograms. Its methods may
// be called from several goroutines at once, also by the one that drives the group: they
// should return at once, and must not call the host. Without a recorder nothing is
// measured for it.
type Recorder interface {
	// Proposed is told of each command that was proposed at this node and applied.
	Proposed(CommandTimes)
	// Read is told of each read that ended well: its policy, what vouched for it, and
	// the time since the call.
	Read(policy ReadPolicy, by ServedBy, took time.Duration)
	// SnapshotSent is told of each snapshot that this node tried to send. It took until
	// the member had restored it, or until it failed.
	SnapshotSent(SnapshotTimes)
	// SnapshotRestored is told of each snapshot that the state machine of this node
	// was given. It took from the first piece on.
	SnapshotRestored(SnapshotTimes)
}

// SnapshotTimes are how a snapshot went between this node and a peer.
type SnapshotTimes struct {
	Peer  uint64
	Bytes int64 // of the state machine's snapshot, as far as it went
	Took  time.Duration
	Err   error // why it failed, or nil
}

// CommandTimes say how the time of a command passed from its call on, as the node that
// was called knows. None is less than the one before.
type CommandTimes struct {
	// Sent: the command left the queue, for the log of this node, if it led, or for the
	// leader. Of a command that was sent again, this is the first time.
	Sent time.Duration
	// Committed: this node knew that the command's entry is committed.
	Committed time.Duration
	// Applied: the state machine of this node had applied the command, and the call
	// ended.
	Applied time.Duration
}

// commandTimes returns the times of a call that ends now.
func commandTimes(d replica.Done, begun, now replica.Deadline) (t CommandTimes) {
	t.Sent = max(0, d.Sent-begun)
	t.Committed = max(t.Sent, d.Committed-begun)
	t.Applied = max(t.Committed, now-begun)
	return t
}

// record tells the recorder of a call that ended well.
func (c *hostCall) record(d callEnd, now replica.Deadline, recorder Recorder) {
	switch c.op {
	case opPropose:
		recorder.Proposed(d.times)
	case opRead:
		recordRead(recorder, c.read.Policy, d.Read.By, now-c.begun)
	case opChange, opForce, opTransfer: // rare, and as long as others take
	}
}

// recordRead tells the recorder of a read that ended well.
func recordRead(recorder Recorder, policy ReadPolicy, by ServedBy, took time.Duration) {
	if policy == nil {
		policy = ReadIndex{}
	}
	recorder.Read(policy, by, max(0, took))
}
