// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/leases"
)

// ReadOptions say what a read is to see, and of which keys. The zero value is a
// linearizable read of every key.
type ReadOptions struct {
	// Policy says how fresh the state has to be, and who vouches for that; nil is
	// [ReadIndex].
	Policy ReadPolicy
	// Spans are the keys that the read looks at; none: every key. With roster leases such
	// a read is answered here if this node is a responder of these keys, and does not
	// wait for writes of other keys. Without leases they have no effect. At most
	// [leases.MaxSpans].
	Spans []leases.Span
}

// ReadResult says what a read may rest on.
type ReadResult struct {
	// Index is the index of the last entry that the read had to see.
	Index uint64
	// By names the voucher.
	By ServedBy
	// Lag is the number of committed entries that the state had not applied. Age is the
	// time since the state had everything that was acknowledged by then; -1: not known,
	// which only the policy Local allows. Both are 0 unless By is ServedStale.
	Lag uint64
	Age time.Duration
}

// ServedBy names the voucher of a read. Its method String returns the name in a word.
type ServedBy = replica.ServedBy

// The vouchers of reads.
const (
	// ServedByLeader: the leader, which asked a majority whether it still leads, or
	// had a lease and was asked by another node.
	ServedByLeader = replica.ServedByLeader
	// ServedByLease: this node, as the leader, by its lease.
	ServedByLease = replica.ServedByLease
	// ServedByRoster: this node, as a responder, by its leases. No message was sent.
	ServedByRoster = replica.ServedByRoster
	// ServedByQuorum: a majority, which said where its logs end.
	ServedByQuorum = replica.ServedByQuorum
	// ServedStale: this node alone, as the policy allows an older state.
	ServedStale = replica.ServedStale
)

// ReadPolicy says how fresh the state is that a read sees: [ReadIndex], [AtResponder],
// [LeaderLease], [QuorumRead], [BoundedStaleness] or [Local]. Under each policy a read
// waits for an index, and ends when this node's state machine has applied the entry there.
type ReadPolicy = replica.ReadPolicy

// ReadIndex is the policy for linearizable reads: the read sees every command acknowledged
// anywhere before the read. The leader confirms the read by a round of heartbeats for all
// waiting reads. With ReplicaConfig.Leases, ReadIndex is [AtResponder].
// If the leader does not answer for a quarter of an election timeout, or if no leader is known, but was
// since the start of the Host, a majority is asked, as for [QuorumRead], and then both in turns.
type ReadIndex = replica.ReadIndex

// AtResponder is the policy for linearizable reads that this node answers from its own
// state, without a message, if it is a responder of the keys by roster leases
// (ReplicaConfig.Leases), or leads and has its lease. Otherwise, and after a short wait
// (raft.Leases.Hold), the leader is asked, and then a majority, as for [ReadIndex]. The two
// policies differ by their names in metrics only.
type AtResponder = replica.AtResponder

// LeaderLease is the policy for linearizable reads that the leader vouches for, also
// where this node is a responder. With ReplicaConfig.Leases the leader answers by its
// lease, and else by a round of heartbeats.
type LeaderLease = replica.LeaderLease

// QuorumRead is the policy for linearizable reads that do without the leader: a majority
// of the voters says where its logs end, and the read waits until this node has applied
// the last of these entries. It needs no clock, and goes on while there is no leader, if
// nothing is under way. After half an election timeout the leader is asked, and then both in
// turns, as for [ReadIndex]: an entry at the end of some log may never be committed.
type QuorumRead = replica.QuorumRead

// BoundedStaleness is the policy for reads that see everything that was acknowledged,
// anywhere, up to Max before the read, but for the last MaxEntries entries of the log. A
// read costs no message if the leader has answered a read of this node asked at most Max
// ago, and else waits for a round like ReadIndex: so at most one round runs in each Max.
// The bound holds however slow messages are, because Max counts from the question, and on Linux also while
// the system is suspended (see package leases/clock). Max 0 is
// no age, so that each read needs a round, or a lease; MaxEntries counts entries committed
// at the time of the question, and 0 is none.
type BoundedStaleness = replica.BoundedStaleness

// Local is the policy for reads of whatever this node has applied, however old.
type Local = replica.Local

// ReadWith returns when this node's state machine has applied what the options ask
// for: a read of the state machine that follows sees it. The context's deadline is the
// read's.
func (h *Host) ReadWith(ctx context.Context, o ReadOptions) (ReadResult, error) {
	if r, ok := h.readLocally(ctx, &o); ok {
		return r, nil
	}
	d, err := h.call(ctx, opRead, func(c *hostCall) { c.read = o })
	return ReadResult(d.Read), err
}

// readLocally answers a read by this node's lease, at the goroutine of the caller, if nothing
// keeps the read waiting.
func (h *Host) readLocally(ctx context.Context, o *ReadOptions) (ReadResult, bool) {
	if h.local == nil || ended(ctx) != nil {
		return ReadResult{}, false
	}
	recorder, begun := h.cfg.Recorder, replica.Deadline(0)
	if recorder != nil {
		begun = h.now()
	}
	res, ok := h.local.Read((*replica.ReadOptions)(o))
	if ok && recorder != nil {
		recordRead(recorder, o.Policy, res.By, h.now()-begun)
	}
	return ReadResult(res), ok
}
