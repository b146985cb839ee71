// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
)

// Defaults and bounds of [Coding].
const (
	// DefaultCodingThreshold is the payload size, in bytes, below which entries
	// travel whole.
	DefaultCodingThreshold = 4 << 10
	// DefaultCodingMemory is the budget, in bytes, for units and payloads that
	// a node keeps in memory.
	DefaultCodingMemory = 64 << 20
	// maxClearPrefix bounds Coding.ClearPrefix.
	maxClearPrefix = 4096
)

// Coding turns coded replication on: a leader sends each follower of a large
// entry some units of it instead of all, and followers complete each other's
// payloads. It takes effect once every member has said that it can read coded
// entries; until then, and below the threshold, entries travel as ever. The
// zero value has useful defaults.
//
// Nothing is acknowledged that could be lost with fewer failures than without
// coding: an entry commits when any majority can restore it.
type Coding struct {
	// Threshold is the size of a payload, in bytes, from which it is coded. 0
	// means [DefaultCodingThreshold].
	Threshold int
	// Policy chooses how many units of an entry each follower gets. nil means
	// [adaptive.New] if Config.Clock is set, and otherwise
	// [ecraft.Levelled], which goes by who is alive. A policy may keep state:
	// each node needs one of its own.
	Policy ecraft.Policy
	// ClearPrefix is the number of leading payload bytes that stand uncoded at
	// the front of every node's log entry, for hosts that look at them there.
	// At most 4096; the same at all members.
	ClearPrefix int
	// Veto, if set, reports that an entry with this payload must travel whole.
	Veto func(data []byte) bool
	// Memory bounds the bytes of units and payloads kept in memory, beyond one
	// entry. 0 means [DefaultCodingMemory].
	Memory int
	// GossipGap delays what followers send each other until it lies so many
	// payload bytes behind the commit index, which keeps it out of the way of
	// new entries. Who has applied the entry sends its units then, as its host may
	// cut the log. 0 sends units as soon as they are durable.
	GossipGap int
	// GossipDelay is the number of ticks after which units are sent whatever
	// GossipGap says. 0 means 1.
	GossipDelay int
	// LateSeal leaves a part of the work to the host: coded entries leave in
	// messages in this node's form, with all of the payload, and the host makes
	// of them what each receiver is to have as it writes the message, by
	// [ecraft.NewOutgoing]. That takes less processor time and memory, as
	// nothing is copied, and none of the node's own. A receiver refuses what a
	// host forgot. rawnode.Host sets it where its transport can do that.
	LateSeal bool
	// Plain begins as after Densify(true) (see [RawNode.Densify]): for hosts that
	// drive a [Node], which prepare a downgrade by a restart.
	Plain bool
	// Recorder, if set, hears of what coding does, for metrics.
	Recorder CodingRecorder
}

// mistakes calls refuse for each field that is out of its bounds.
func (c *Coding) mistakes(refuse func(wrong bool, format string, args ...any)) {
	refuse(c.Threshold < 0, "Coding.Threshold is %d bytes; it must be 0 (meaning %d) or more", c.Threshold, DefaultCodingThreshold)
	refuse(c.Threshold > ecraft.MaxPayload, "Coding.Threshold is %d bytes; payloads have at most %d", c.Threshold, ecraft.MaxPayload)
	refuse(c.ClearPrefix < 0 || c.ClearPrefix > maxClearPrefix, "Coding.ClearPrefix is %d bytes; it must lie in [0, %d]", c.ClearPrefix, maxClearPrefix)
	refuse(c.Memory < 0, "Coding.Memory is %d bytes; it must be 0 (meaning %d) or more", c.Memory, DefaultCodingMemory)
	refuse(c.GossipGap < 0, "Coding.GossipGap is %d bytes; it must be 0 (at once) or more", c.GossipGap)
	refuse(c.GossipDelay < 0, "Coding.GossipDelay is %d ticks; it must be 0 (meaning 1) or more", c.GossipDelay)
	if p, ok := c.Policy.(interface{ Validate() error }); ok {
		if err := p.Validate(); err != nil {
			refuse(true, "Coding.Policy: %w", err)
		}
	}
}

func (c Coding) withDefaults(clock Clock) Coding {
	if c.Threshold == 0 {
		c.Threshold = DefaultCodingThreshold
	}
	c.Threshold = max(c.Threshold, c.ClearPrefix+1)
	if c.Policy == nil {
		c.Policy = ecraft.Levelled{}
		if clock != nil {
			c.Policy = adaptive.New(adaptive.Options{})
		}
	}
	if c.Memory == 0 {
		c.Memory = DefaultCodingMemory
	}
	if c.GossipDelay == 0 {
		c.GossipDelay = 1
	}
	if c.Recorder == nil {
		c.Recorder = deaf{}
	}
	return c
}

// CodingRecorder hears of what coding does at a node. Calls come from within
// the node's methods: they must return at once and not call back.
type CodingRecorder interface {
	RecordCoding(e CodingEvent)
}

type deaf struct{}

func (deaf) RecordCoding(CodingEvent) {}

// CodingEvent is one thing that happened. Fields that the kind does not speak
// of are 0.
type CodingEvent struct {
	Kind CodingEventKind
	// Index is the entry's.
	Index uint64
	// Peer is the other node.
	Peer uint64
	// Level is that of an entry that was coded; 0 for an unbalanced one.
	Level int
	// Bytes is the size of payload or units.
	Bytes int
	// Count is a number of entries, units or carriers.
	Count int
}

// CodingEventKind says what happened.
type CodingEventKind int

// The kinds of events.
const (
	CodingEncoded     CodingEventKind = iota // a leader coded an entry: Index, Level, Bytes of payload
	CodingWhole                              // a leader sent a payload over the threshold whole: Index, Bytes
	CodingSent                               // entries left for Peer: Bytes, Count; only coded ones and carriers
	CodingPushed                             // units were pushed to Peer: Bytes, Count of entries
	CodingAsked                              // Peer was asked for units: Count of entries
	CodingAnswered                           // Peer's question was answered: Bytes, Count of entries
	CodingCompleted                          // the payload of an entry was completed from units: Index, Bytes
	CodingHeldBack                           // committed entries wait for a payload, from Index on: Count
	CodingRejected                           // units or an envelope of Peer were refused
	CodingFallback                           // carriers raise entries as members are lost: Count of entries
	CodingHedged                             // carriers raise entries that are late: Count of entries, Bytes of units
	CodingRiderCommit                        // an entry was committed that its own units alone would not have let
	CodingRecovery                           // a winner of an election must complete entries first: Count
	CodingRecovered                          // it has: Count of ticks it took
	CodingCut                                // it cut entries that nobody can have committed: Index of the first, Count
	CodingStuck                              // nobody has what an entry lacks; a snapshot is needed: Index
	CodingSnapshot                           // the leader sends the stuck Peer a snapshot
	CodingHandOver                           // a leader that cannot complete hands over to Peer
	CodingLeftOut                            // a carrier goes to Peer without the units of an entry that is released: Index
	CodingChecked                            // a configuration change waits for coverage: Index of the first entry that lacks it
	CodingDelayed                            // time from commit to completion at this node: Index, Count in microseconds (needs a clock)
)

// codingFault reports an entry that cannot be read as what it says it is.
func codingFault(id entryID, err error) error {
	return fmt.Errorf("entry %v: %w", id, err)
}
