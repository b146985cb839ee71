// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"time"

	"github.com/weftraft/weft/internal/replica"
)

// Recorder receives the durations of the calls and snapshots of a [Host], for histograms. Several
// goroutines may call the methods at once, the goroutine that drives the group among them: a
// method should return at once, and must not call the host. Without a Recorder the host does not
// measure these durations.
type Recorder interface {
	// Proposed reports a command that was proposed at this node and applied.
	Proposed(CommandTimes)
	// Read reports a read that succeeded: its policy, the proof by which the read was served, and
	// the time since the call.
	Read(policy ReadPolicy, by ServedBy, took time.Duration)
	// SnapshotSent reports an attempt of this node to send a snapshot. The attempt lasted until the
	// member had restored the snapshot, or until the attempt failed.
	SnapshotSent(SnapshotTimes)
	// SnapshotRestored reports a snapshot that the state machine of this node was given. Its time
	// begins with the first piece.
	SnapshotRestored(SnapshotTimes)
}

// SnapshotTimes describe the transfer of a snapshot between this node and a peer.
type SnapshotTimes struct {
	Peer  uint64
	Bytes int64 // of the state machine's snapshot, as far as the transfer went
	Took  time.Duration
	Err   error // the reason of the failure, or nil
}

// CommandTimes are the times of a command's phases since its call, as known at the called node.
// None is less than the one before.
type CommandTimes struct {
	// Sent: the command left the queue, for the log of this node if this node led, or for the
	// leader. For a command that was sent again, Sent is the time of the first attempt.
	Sent time.Duration
	// Committed: this node knew that the command's entry is committed.
	Committed time.Duration
	// Applied: the state machine of this node had applied the command, and the call ended.
	Applied time.Duration
}

// commandTimes returns the times of a call that ends now.
func commandTimes(d replica.Done, begun, now replica.Deadline) (t CommandTimes) {
	t.Sent = max(0, d.Sent-begun)
	t.Committed = max(t.Sent, d.Committed-begun)
	t.Applied = max(t.Committed, now-begun)
	return t
}

// record reports a successful call to the recorder.
func (c *hostCall) record(d callEnd, now replica.Deadline, recorder Recorder) {
	switch c.op {
	case opPropose:
		recorder.Proposed(d.times)
	case opRead:
		recordRead(recorder, c.read.Policy, d.Read.By, now-c.begun)
	case opChange, opForce, opTransfer: // rare, and their durations follow from those of other nodes
	}
}

// recordRead tells the recorder of a read that ended well.
func recordRead(recorder Recorder, policy ReadPolicy, by ServedBy, took time.Duration) {
	if policy == nil {
		policy = ReadIndex{}
	}
	recorder.Read(policy, by, max(0, took))
}
