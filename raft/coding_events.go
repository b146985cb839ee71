// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import "github.com/weftraft/weft/raft/internal/coding"

// CodingRecorder is told of coding's events at a node. Calls come from within the
// node's methods: a recorder must return at once and not call back.
type CodingRecorder interface {
	RecordCoding(e CodingEvent)
}

// CodingEvent is an event of coding. Fields not named at the kind are 0.
type CodingEvent struct {
	Kind CodingEventKind
	// Index is the entry's.
	Index uint64
	// Peer is the other node.
	Peer uint64
	// Level is the level of a coded entry; 0 if unbalanced.
	Level int
	// Bytes is the size of payload or units.
	Bytes int
	// Count is a number of entries, units or carriers.
	Count int
}

// CodingEventKind is the kind of an event.
type CodingEventKind int

// The kinds of events.
const (
	CodingEncoded     = CodingEventKind(coding.Encoded)     // a leader coded an entry: Index, Level, Bytes of payload
	CodingWhole       = CodingEventKind(coding.Whole)       // a leader sent a payload over the threshold whole: Index, Bytes
	CodingSent        = CodingEventKind(coding.Sent)        // entries left for Peer: Bytes, Count; only coded ones and carriers
	CodingPushed      = CodingEventKind(coding.Pushed)      // units were pushed to Peer: Bytes, Count of entries
	CodingAsked       = CodingEventKind(coding.Asked)       // Peer was asked for units: Count of entries
	CodingAnswered    = CodingEventKind(coding.Answered)    // Peer's question was answered: Bytes, Count of entries
	CodingCompleted   = CodingEventKind(coding.Completed)   // the payload of an entry was completed from units: Index, Bytes
	CodingHeldBack    = CodingEventKind(coding.HeldBack)    // committed entries wait for a payload, from Index on: Count
	CodingRejected    = CodingEventKind(coding.Rejected)    // units or an envelope of Peer were refused
	CodingFallback    = CodingEventKind(coding.Fallback)    // carriers raise entries as members are lost: Count of entries
	CodingHedged      = CodingEventKind(coding.Hedged)      // carriers raise late entries: Count of entries, Bytes of units
	CodingRiderCommit = CodingEventKind(coding.RiderCommit) // an entry was committed thanks to riders; its own units alone would not have sufficed
	CodingRecovery    = CodingEventKind(coding.Recovery)    // a winner of an election must complete entries first: Count
	CodingRecovered   = CodingEventKind(coding.Recovered)   // the winner has recovered: Count of ticks it took
	CodingCut         = CodingEventKind(coding.Cut)         // the winner cut entries that no leader can have committed: Index of the first, Count
	CodingStuck       = CodingEventKind(coding.Stuck)       // no member has the missing units of an entry; a snapshot is needed: Index
	CodingSnapshot    = CodingEventKind(coding.Snapshot)    // the leader sends the stuck Peer a snapshot
	CodingHandOver    = CodingEventKind(coding.HandOver)    // a leader unable to complete an entry hands over to Peer
	CodingLeftOut     = CodingEventKind(coding.LeftOut)     // a carrier goes to Peer without the units of a released entry: Index
	CodingChecked     = CodingEventKind(coding.Checked)     // a configuration change waits for coverage: Index of the first uncovered entry
	CodingDelayed     = CodingEventKind(coding.Delayed)     // time from commit to completion at this node: Index, Count in microseconds (needs a clock)
)
