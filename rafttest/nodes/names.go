// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
)

// naming is whether leaders give names, and how often followers miss the batches named: see package
// names.
type naming struct {
	on bool
	// former are bits of the nodes of an earlier version, which know of no names.
	former uint64
	forget float64 // chance that a batch is missing
	// zones is over how many zones the nodes are spread; 0: none is known. Relays are on with zones, also without names
	// of batches.
	zones uint64
	// formerRelays are bits of nodes of an earlier version, which know of no relays.
	formerRelays uint64
	// readers has relays on without zones. formerRuns are bits of nodes of an earlier version, which know of no runs, and hold is
	// for how long leaders hold appends to learners.
	readers    bool
	formerRuns uint64
	hold       time.Duration
}

// drawNames has names on in half of the runs, a third of these with nodes of an earlier version.
func drawNames(d world.Draws) (p naming) {
	p.on = d.Chance(0.5)
	if d.Chance(0.33) {
		p.former = d.Uint64()
	}
	p.forget = world.Pick(d, 0, 0.005, 0.2, 1)
	return p
}

// drawZones has zones in half of the runs, a third of these with nodes of an earlier version.
func (p *naming) drawZones(d world.Draws) {
	p.zones = world.Pick[uint64](d, 0, 0, 0, 1, 2, 3)
	if d.Chance(0.33) {
		p.formerRelays = d.Uint64()
	}
}

// drawReaders has readers have relays without zones in half of the runs that have none, and appends to readers held in most.
func (p *naming) drawReaders(d world.Draws) {
	p.readers = d.Chance(0.5)
	if d.Chance(0.33) {
		p.formerRuns = d.Uint64()
	}
	p.hold = world.Pick(d, -1, time.Millisecond, tickTime/2, tickTime/2)
}

// zone returns the zone of a node.
func (p *naming) zone(node uint64) string {
	if p.zones == 0 {
		return ""
	}
	return string(rune('a' + node%p.zones))
}

func (p *naming) relays(node uint64) bool {
	return (p.zones > 0 || p.readers) && p.takes(node) && p.formerRelays>>(node%64)&1 == 0
}

func (p *naming) runs(node uint64) bool { return p.relays(node) && p.formerRuns>>(node%64)&1 == 0 }

func (p *naming) takes(node uint64) bool { return p.former>>(node%64)&1 == 0 }

// nameKey is a message with names: a node leads a term in one life.
type nameKey struct{ group, from, to, term, number uint64 }

func nameKeyOf(m wire.Message, n wire.Named) nameKey {
	return nameKey{m.Group, m.From, m.To, n.GetTerm(), n.Number}
}

// named returns a member's part in names, or nil. Each message with names is compared, when it is
// joined, with its original.
func (m *member) named() *replica.Names {
	w := m.n.w
	p := &w.plan.naming
	on, relays := p.on && p.takes(m.n.id), p.relays(m.n.id)
	if !on && !relays {
		return nil
	}
	names := &replica.Names{
		Named: func(msg wire.Message, whole wire.Raft) {
			n := msg.Body.(wire.Named)
			m.sends(whole.Message)
			if whole.OwnForm { // coded entries leave in the receiver's form
				msg.Body = whole
				got, err := world.OverWire(msg)
				if err != nil {
					w.fail(noFailure, "%v: %v", m.n, err)
					return
				}
				whole = got.Body.(wire.Raft)
			}
			w.originals[nameKeyOf(msg, n)] = whole
		},
		Joined: func(msg wire.Message, whole wire.Raft) {
			original, ok := w.originals[nameKeyOf(msg, msg.Body.(wire.Named))]
			if !ok || !proto.Equal(original.Message, whole.Message) || original.Digests != whole.Digests {
				w.fail(namesExact, "%v joins a message of node %d, and the result is not the original", m.n, msg.From)
			}
		},
		Forget: func() bool { return w.names.Chance(p.forget) },
	}
	if on {
		names.Announced = p.takes
	}
	if relays {
		names.Zone, names.Relayed, names.Runs = p.zone, p.relays, p.runs
	}
	return names
}

// countNames counts what a member did with names in a turn.
func (m *member) countNames() {
	c, was, w := m.r.NameCounts(), m.names, &m.n.w.reach
	m.names = c
	w.Named += c.Named - was.Named
	w.NamesFilled += c.Filled - was.Filled
	w.NamesGone += c.Gone - was.Gone
	w.NamePauses += c.Pauses - was.Pauses
	w.NamesJoined += c.Joined - was.Joined
	w.NamesLacked += c.Lacks - was.Lacks
	w.NamesLate += c.Late - was.Late
	w.NamesGivenUp += c.GivenUp - was.GivenUp
	w.FillsLate += c.FillsLate - was.FillsLate
	w.RelayedBytes += c.Relayed - was.Relayed
	if m.n.w.plan.naming.zones == 0 {
		w.ReadersRelayed += c.Relayed - was.Relayed
	}
	w.NameRuns += c.Runs - was.Runs
	w.AppendsJoined += m.r.JoinedAppends() - m.joined
	m.joined = m.r.JoinedAppends()
	w.RelaysWanted += c.Wants - was.Wants
	w.RelaysOverdue += c.Overdue - was.Overdue
	w.RelaysPassed += c.Passed - was.Passed
	w.RelaysHadNot += c.NotHad - was.NotHad
}

// sends checks an append that leaves, with all its entries: a leader's log has them one behind the other, also if the append is joined.
func (m *member) sends(app *pb.Message) {
	if app.GetType() != pb.MsgApp {
		return
	}
	index, term := app.GetIndex(), app.GetLogTerm()
	for _, e := range app.Entries {
		if e.GetIndex() != index+1 || e.GetTerm() < term || e.GetTerm() > app.GetTerm() {
			m.n.w.fail(onePlace, "group %d: %v, leader of term %d, sends entry %d of term %d behind entry %d of term %d",
				m.g.id, m.n, app.GetTerm(), e.GetIndex(), e.GetTerm(), index, term)
			return
		}
		index, term = e.GetIndex(), e.GetTerm()
	}
}

// unknownKind reports whether a node of an earlier version is sent a message about names.
func (w *sim) unknownKind(m wire.Message) bool {
	p := &w.plan.naming
	switch b := m.Body.(type) {
	case wire.Named:
		if b.Run.Count > 0 && !(p.runs(m.To) && p.runs(b.Run.Relay)) {
			return true
		}
		for _, n := range b.Names {
			if n.Relay != 0 && !p.relays(m.To) {
				return true
			}
		}
		return !p.takes(m.To)
	case wire.Lack, wire.Fill:
		return !p.takes(m.To)
	case wire.Want:
		return !p.relays(m.To)
	}
	return false
}
