// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/raft/internal/coding"
	"github.com/weftraft/weft/raft/internal/extend"
)

// ErrCodedEntries is wrapped by the error of a node whose log has coded entries
// unreadable under its Config: Config.Coding is nil, or has another ClearPrefix. The
// node does not start. The error names the first such entry, and what to do.
var ErrCodedEntries = extend.ErrForeign

// Types of messages between nodes that code. Term is 0 on the wire, so that nodes
// without coding ignore the messages; the sender's term is in LogTerm.
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
	// DefaultCodingMemory is the budget, in bytes, for units and payloads in a node's
	// memory.
	DefaultCodingMemory = 64 << 20
	// leastCodingMemory is the least budget.
	leastCodingMemory = 8 << 10
	// maxClearPrefix bounds Coding.ClearPrefix.
	maxClearPrefix = 4096
)

// Coding turns coded replication on: a leader sends each follower some units of a large
// entry instead of the whole, and followers complete each other's payloads. Coding
// begins once every member has reported that it reads coded entries; until then, and
// below the threshold, entries travel whole. The zero value has useful defaults.
//
// A committed entry survives as many failures as without coding, because an entry
// commits only when any majority can restore its payload.
type Coding struct {
	// Threshold is the size, in bytes, from which payloads are coded, at most
	// [ecraft.MaxPayload]; 0 means [DefaultCodingThreshold]. A payload that ends within
	// ClearPrefix is never coded.
	Threshold int
	// Policy chooses how many units of an entry each follower gets. nil means
	// [adaptive.New] if Config.Clock is set, and otherwise [ecraft.Levelled], which
	// goes by the members that are alive. A policy may keep state: each node needs its
	// own.
	Policy ecraft.Policy
	// ClearPrefix is the number of leading payload bytes that stand uncoded at the
	// front of every node's log entry, for hosts that read the prefix in the log. At
	// most 4096; the same at all members.
	ClearPrefix int
	// Veto, if set, reports whether an entry with this payload must travel whole.
	Veto func(data []byte) bool
	// Memory bounds the bytes of units and payloads kept in memory, beyond one entry. 0
	// means [DefaultCodingMemory]; otherwise at least 8 KiB, room to gather the units
	// of one more entry in the largest group. At 8 KiB a member that catches up
	// completes hardly more than one entry a tick.
	Memory int
	// GossipGap delays the units that followers send each other until their entry lies
	// so many payload bytes behind the commit index, so that units do not delay new
	// entries. After applying the entry a follower sends without delay, because its
	// host may compact the log. 0 sends units as soon as they are durable.
	GossipGap int
	// GossipDelay is the number of ticks after which units are sent whatever
	// GossipGap says. 0 means 1.
	GossipDelay int
	// LateSeal leaves a part of the work to the host: messages carry coded entries in
	// this node's form, with all of the payload, and the host makes each receiver's
	// form by [ecraft.NewOutgoing] while writing the message. The host then copies no
	// payload, and the node spends no time on forms. A receiver refuses entries that a
	// host forgot to convert. rawnode.Host sets LateSeal if its transport can convert.
	LateSeal bool
	// Plain begins as after Densify(true) (see [RawNode.Densify]): for hosts of a
	// [Node], which prepare a downgrade by a restart.
	Plain bool
	// Busy, if set, returns the share of time, 0 to 1, for which the processors of this
	// node's machine were busy of late; a value outside counts as the nearer bound, NaN
	// as 0. Where processors are busier than links, the adaptive policy sends full
	// copies. A node asks at most once a tick, and tells its leader. rawnode.Host sets
	// Busy.
	Busy func() float64
	// Zone returns the zone of a node, this one or another, such as its data centre; empty: not known, and a zone of
	// its own. Units then come into each zone once, and members pass them on there. nil, or empty for this
	// node, means no zones. Only members whose version knows zones may have one. Zone does not wait. rawnode.Host sets Zone.
	Zone func(id uint64) string
	// Recorder, if set, is told of coding's events, for metrics.
	Recorder CodingRecorder
}

// mistakes calls refuse for each field out of bounds.
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

// Releaser is an optional interface of a [Storage]: a host that keeps entries longer
// than needed can report the entries it could do without.
type Releaser interface {
	// Released returns the highest index durably applied: after a restart the host
	// starts at this index, or later. The index never falls.
	Released() uint64
}

// newExtension returns the extension that Config.Coding asks for.
func newExtension(r *raft) extension {
	if r.cfg.Coding == nil {
		return alone{r.log}
	}
	c := r.cfg.Coding.withDefaults(r.cfg.Clock)
	cfg := coding.Config{
		Threshold: c.Threshold, Policy: c.Policy, ClearPrefix: c.ClearPrefix, Veto: c.Veto, Memory: c.Memory,
		GossipGap: c.GossipGap, GossipDelay: c.GossipDelay, LateSeal: c.LateSeal, Plain: c.Plain, Busy: c.Busy, Zone: c.Zone,
		ElectionTick: r.cfg.ElectionTick, HeartbeatTick: r.cfg.HeartbeatTick, MaxSizePerMsg: r.cfg.MaxSizePerMsg,
		Logger: r.cfg.Logger, Record: func(coding.Event) {},
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
