// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/raft"
)

// codedThreshold is small, so that most commands with a payload are coded.
const codedThreshold = 128

// codingMemory is small, so that units compete for room.
const codingMemory = 256 << 10

// coded is this module's library with coded entries, configured for each kind
// of host: a host that looks into entries names how far, and the entries needed
// whole. Changes, if any, are made to this configuration.
func coded(kind kind, changes ...func(*raft.Coding)) library {
	return library{
		Name: "weft coded", Coded: true, Types: int(raft.MsgUnitsAsk) + 1,
		New: func(reach *reach, cfg raft.Config) (core, error) {
			c := codingFor(kind)
			c.Recorder = reach
			if cfg.Rand != nil {
				drawCoding(c, cfg.Rand)
			}
			for _, change := range changes {
				change(c)
			}
			cfg.Coding = c
			return newWeft(reach, cfg)
		},
		mayLeave: leaveCoded,
	}
}

// drawCoding draws the settings that may differ between members: the times of
// gossip, and the policy, because on links without a bandwidth the adaptive
// policy alone would hardly code.
func drawCoding(c *raft.Coding, r raft.Rand) {
	if r.IntN(3) == 0 {
		c.GossipGap, c.GossipDelay = r.IntN(128<<10), r.IntN(6)
	}
	switch n := r.IntN(6); n {
	case 0:
		c.Policy = adaptive.New(adaptive.Options{})
	case 1:
		c.Policy = ecraft.Levelled{}
	case 2:
		c.Policy = ecraft.Full{}
	default:
		c.Policy = ecraft.Fixed(n - 1)
	}
}

func codingFor(kind kind) *raft.Coding {
	c := &raft.Coding{Threshold: codedThreshold, Memory: codingMemory}
	if kind == cockroachLike {
		c.ClearPrefix = headLen
		c.Veto = func(data []byte) bool { return len(data) > 0 && encoding(data[0]) == sideloaded }
	}
	return c
}

// codedCore is what a core with coded entries has beside the rest.
type codedCore interface {
	CodingStatus() raft.CodingStatus
	Densify(on bool)
}

// leaveCoded has all members write plain entries from now on, and lets the first
// go when the logs of all have none that are coded: a member whose own log is
// free of them could still be sent some.
func leaveCoded(w *sim, to library) bool {
	if to.Coded {
		return true
	}
	w.roll.densify = true
	dense := true
	for _, m := range w.live() {
		if m.proc == nil || !m.lib.Coded {
			continue
		}
		m.proc.common().densify()
		if !m.proc.common().core.(codedCore).CodingStatus().Dense {
			dense = false
			continue
		}
		for _, e := range m.disk.live.entries {
			if w.isCoded(e) {
				w.fail("n%d says that its log is dense; entry %d of term %d is coded", m.id, e.GetIndex(), e.GetTerm())
			}
		}
	}
	return dense
}

// densify tells a core to write plain entries, if the operator wants it so.
func (r *replica) densify() {
	if c, ok := r.core.(codedCore); ok && r.w.roll.densify {
		c.Densify(true)
	}
}

// checkCoding looks at a core's memory for coding, and at its reported
// progress.
func (r *replica) checkCoding() {
	c, ok := r.core.(codedCore)
	if !ok || !r.m.lib.Coded {
		return
	}
	s := c.CodingStatus()
	if most := codingMemory + maxCommand; s.Memory > most {
		r.w.fail("n%d keeps %d bytes of units; %d are allowed, and one entry", r.m.id, s.Memory, codingMemory)
	}
	if applied := r.core.State().Applied; s.Completed < applied {
		r.w.fail("n%d has applied %d and says that it has payloads up to %d", r.m.id, applied, s.Completed)
	}
}

// The types of messages with units and of questions for units.
const (
	unitsType = raft.MsgUnits
	asksType  = raft.MsgUnitsAsk
)

// isCoded reports whether an entry is stored as an envelope.
func (w *sim) isCoded(e *pb.Entry) bool {
	prefix := 0
	if w.opts.Kind == cockroachLike {
		prefix = headLen
	}
	return e.GetType() == pb.EntryNormal && ecraft.IsEnvelope(e.GetData(), prefix)
}

// RecordCoding counts a core's reports.
func (r *reach) RecordCoding(e raft.CodingEvent) {
	switch e.Kind {
	case raft.CodingFallback, raft.CodingHedged:
		r.Riders++
	case raft.CodingHeldBack:
		r.HeldBack++
	}
}
