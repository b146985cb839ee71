// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// coding is how entries are coded in a run.
type coding struct {
	on        bool
	threshold int
	level     int // 0: as the adaptive policy finds
	memory    int
	gap       int
	delay     int
	lateSeal  bool
	densify   time.Duration // between two times at which nothing is to be coded for a while
}

// drawCoding has coding on in two of three runs.
func drawCoding(d world.Draws) coding {
	c := coding{
		on:        d.Chance(0.67),
		threshold: world.Pick(d, 1, 1, 64, 512),
		level:     world.Pick(d, 0, 0, 0, 1, 2, 3),
		memory:    world.Pick(d, 0, 0, 4<<20), // some payloads at least
		gap:       world.Pick(d, 0, 0, 1000, 100_000),
		delay:     world.Pick(d, 0, 3),
		lateSeal:  d.Chance(0.5),
	}
	if c.on {
		c.densify = d.Every(0.1, 200*time.Millisecond, 2*time.Second)
	}
	return c
}

// densify has all members of a group that run write plain entries for a while, as
// before a downgrade that is then put off.
func (w *sim) densify(g *group) {
	w.reach.Densified++
	w.tell(0, "group %d: densify", g.id)
	w.setDensify(g, true)
	w.After(w.outage(), func() { w.setDensify(g, false) })
}

func (w *sim) setDensify(g *group, on bool) {
	for _, n := range w.running() {
		if m := n.members[g.id]; m != nil {
			m.drive.Post(0, func(r *replica.Replica) { r.Densify(on) })
		}
	}
}

// coded returns a member's part of it, or nil.
func (m *member) coded() *raft.Coding {
	w := m.n.w
	c := w.plan.coding
	if !c.on || w.opts.Core != nil || m.n.plain() {
		return nil // another core may not be able to
	}
	cfg := &raft.Coding{Threshold: c.threshold, Memory: c.memory, GossipGap: c.gap, GossipDelay: c.delay, Recorder: recorder{m}, LateSeal: c.lateSeal}
	if c.level > 0 {
		cfg.Policy = ecraft.Fixed(c.level)
	}
	return cfg
}

// countUnits counts a message with units of others, or one that asks another zone for units.
func (w *sim) countUnits(m wire.Message) {
	b, ok := m.RaftBody()
	if !ok || len(b.GetContext()) != 1 {
		return
	}
	p := &w.plan.naming
	switch purpose := b.GetContext()[0]; {
	case b.GetType() == raft.MsgUnits && purpose == 'c':
		w.reach.UnitsPassedInZones++
		if !p.relays(m.From) || !p.relays(m.To) || p.zone(m.From) != p.zone(m.To) {
			w.fail(namesExact, "node %d passes units on to node %d, as if both stood in one zone", m.From, m.To)
		}
	case b.GetType() == raft.MsgUnitsAsk && purpose == 'q' && p.relays(m.From) && p.zone(m.From) != p.zone(m.To):
		w.reach.FarPulls++
	}
}

// RecordCoding counts the reports of a core.
func (r *reach) RecordCoding(e raft.CodingEvent) {
	switch e.Kind {
	case raft.CodingEncoded:
		r.Coded++
	case raft.CodingPushed:
		r.Pushed++
	case raft.CodingAsked:
		r.Asked++
	case raft.CodingCompleted:
		r.Completed++
	case raft.CodingHeldBack:
		r.HeldBack++
	case raft.CodingFallback, raft.CodingHedged:
		r.Raised++
	case raft.CodingRecovery:
		r.Recoveries++
	}
}
