// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/raft/internal/coding"
)

// ErrCodedEntries is wrapped by the error of a node that would start on a log with
// entries of coded replication which its Config does not let it read: Config.Coding is
// nil, or its ClearPrefix is another one. The error names the first such entry, and
// what to do.
var ErrCodedEntries = coding.ErrForeign

// Types of messages between nodes that code. Their Term is 0 on the wire, so that a
// node which does not know them ignores them; the sender's term is in LogTerm.
const (
	// MsgUnits carries units of entries from one follower to another.
	MsgUnits pb.MessageType = coding.MsgUnits
	// MsgUnitsAsk asks for units of entries.
	MsgUnitsAsk pb.MessageType = coding.MsgUnitsAsk
)

// Defaults and bounds of [Coding].
const (
	// DefaultCodingThreshold is the payload size, in bytes, below which entries
	// travel whole.
	DefaultCodingThreshold = 4 << 10
	// DefaultCodingMemory is the budget, in bytes, for units and payloads that
	// a node keeps in memory.
	DefaultCodingMemory = 64 << 20
	// leastCodingMemory is the least budget.
	leastCodingMemory = 8 << 10
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
	// entry. 0 means [DefaultCodingMemory]; otherwise at least 8 KiB, which is room
	// to gather the units of one entry more in the largest group. With so little a
	// member that is to catch up completes hardly more than one entry a tick.
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
	refuse(c.Memory != 0 && c.Memory < leastCodingMemory,
		"Coding.Memory is %d bytes; it must be 0 (meaning %d) or at least %d", c.Memory, DefaultCodingMemory, leastCodingMemory)
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
	return c
}

// Releaser is an optional interface of a [Storage]: a host that keeps entries
// for longer than it needs them can say how much it would be able to do
// without.
type Releaser interface {
	// Released returns the highest index that is durably applied: after a
	// restart the host starts from there, or from later. It never falls.
	Released() uint64
}

// newCoder returns the extension that Config.Coding asks for.
func newCoder(r *raft) coder {
	if r.cfg.Coding == nil {
		return plainCoder{r.log}
	}
	c := r.cfg.Coding.withDefaults(r.cfg.Clock)
	cfg := coding.Config{
		Threshold: c.Threshold, Policy: c.Policy, ClearPrefix: c.ClearPrefix, Veto: c.Veto, Memory: c.Memory,
		GossipGap: c.GossipGap, GossipDelay: c.GossipDelay, LateSeal: c.LateSeal, Plain: c.Plain,
		ElectionTick: r.cfg.ElectionTick, HeartbeatTick: r.cfg.HeartbeatTick, MaxSizePerMsg: r.cfg.MaxSizePerMsg,
		Logger: r.logger, Record: func(coding.Event) {},
	}
	if rec := c.Recorder; rec != nil {
		cfg.Record = func(e coding.Event) {
			rec.RecordCoding(CodingEvent{Kind: CodingEventKind(e.Kind), Index: e.Index, Peer: e.Peer, Level: e.Level, Bytes: e.Bytes, Count: e.Count})
		}
	}
	if clock := r.cfg.Clock; clock != nil {
		cfg.Clock = func() time.Duration { return clock.Now() }
	}
	return coding.New(r.id, cfg, shownLog{r.log}, shownRaft{r})
}
