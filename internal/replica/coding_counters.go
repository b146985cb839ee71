// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"time"

	"github.com/weftraft/weft/raft"
)

// CodingState is a replica's view of coded replication.
type CodingState struct {
	raft.CodingStatus
	Counters CodingCounters
}

// codingLevels is the number of levels counted one by one.
const codingLevels = 8

// CodingCounters count the work of coding since the start of a replica. Bytes are of
// payloads or of units, without the headers around both.
type CodingCounters struct {
	// Encoded counts the entries coded by this node as a leader, EncodedBytes their payloads.
	// Levels has the number at each level: unbalanced entries in the first place, levels
	// beyond codingLevels in the last. Whole counts large payloads sent whole.
	Encoded, EncodedBytes uint64
	Levels                [codingLevels + 1]uint64
	Whole, WholeBytes     uint64
	// SentEntries are coded entries and carriers in appends to peers.
	SentEntries, SentBytes uint64
	// Pushed counts units sent to other followers as soon as durable; Asked the entries for
	// whose units this node asked; Answered the entries for which peers asked this node.
	Pushed, PushedBytes     uint64
	Asked                   uint64
	Answered, AnsweredBytes uint64
	// Completed counts payloads put together from units by this node.
	Completed, CompletedBytes uint64
	// Delays is how long committed entries waited for that, summed over
	// Delayed entries, and MaxDelay the longest.
	Delayed          uint64
	Delays, MaxDelay time.Duration
	// HeldBack is how often committed entries had to wait for a payload.
	HeldBack uint64
	// Rejected are units and envelopes of peers that were no good.
	Rejected uint64
	// Fallbacks and Hedges are entries that got more units as members were
	// lost, or as they were late; RiderCommits those that needed them.
	Fallbacks, Hedges, HedgeBytes, RiderCommits uint64
	// Recovered are entries that this node had to complete before it led, in
	// Recoveries elections, and RecoveryTicks how long that took; Cut are those
	// that nobody can have committed.
	Recovered, Recoveries, RecoveryTicks, Cut uint64
	// Stuck is how often nobody had what an entry lacked; StuckSnapshots went to
	// members in that place, and HandOvers gave up leadership there.
	Stuck, StuckSnapshots, HandOvers uint64
	// LeftOut are riders that were released before they could be sent; Checked
	// changes of members that waited.
	LeftOut, Checked uint64
}

// codingRecorder counts.
type codingRecorder struct {
	counts *CodingCounters
	next   raft.CodingRecorder // nil: none
}

// RecordCoding implements raft.CodingRecorder.
func (c *codingRecorder) RecordCoding(e raft.CodingEvent) {
	c.counts.note(e)
	if c.next != nil {
		c.next.RecordCoding(e)
	}
}

func (c *CodingCounters) note(e raft.CodingEvent) {
	count, bytes := uint64(max(e.Count, 0)), uint64(max(e.Bytes, 0))
	switch e.Kind {
	case raft.CodingEncoded:
		c.Encoded++
		c.EncodedBytes += bytes
		c.Levels[min(max(e.Level, 0), codingLevels)]++
	case raft.CodingWhole:
		c.Whole++
		c.WholeBytes += bytes
	case raft.CodingSent:
		c.SentEntries += count
		c.SentBytes += bytes
	case raft.CodingPushed:
		c.Pushed += count
		c.PushedBytes += bytes
	case raft.CodingAsked:
		c.Asked += count
	case raft.CodingAnswered:
		c.Answered += count
		c.AnsweredBytes += bytes
	case raft.CodingCompleted:
		c.Completed++
		c.CompletedBytes += bytes
	case raft.CodingDelayed:
		d := time.Duration(e.Count) * time.Microsecond
		c.Delayed++
		c.Delays += d
		c.MaxDelay = max(c.MaxDelay, d)
	default:
		c.noteTrouble(e.Kind, count, bytes)
	}
}

// noteTrouble counts what does not happen while all is well.
func (c *CodingCounters) noteTrouble(kind raft.CodingEventKind, count, bytes uint64) {
	switch kind {
	case raft.CodingHeldBack:
		c.HeldBack++
	case raft.CodingRejected:
		c.Rejected++
	case raft.CodingFallback:
		c.Fallbacks += count
	case raft.CodingHedged:
		c.Hedges += count
		c.HedgeBytes += bytes
	case raft.CodingRiderCommit:
		c.RiderCommits++
	case raft.CodingRecovery:
		c.Recovered += count
	case raft.CodingRecovered:
		c.Recoveries++
		c.RecoveryTicks += count
	case raft.CodingCut:
		c.Cut += count
	case raft.CodingStuck:
		c.Stuck++
	case raft.CodingSnapshot:
		c.StuckSnapshots++
	case raft.CodingHandOver:
		c.HandOvers++
	case raft.CodingLeftOut:
		c.LeftOut++
	case raft.CodingChecked:
		c.Checked++
	}
}
