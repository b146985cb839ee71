// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"google.golang.org/protobuf/proto"

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
	if !p.on || !p.takes(m.n.id) {
		return nil
	}
	return &replica.Names{
		Announced: p.takes,
		Named: func(msg wire.Message, whole wire.Raft) {
			n := msg.Body.(wire.Named)
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
}

// unknownKind reports whether a node of an earlier version is sent a message about names.
func (w *sim) unknownKind(m wire.Message) bool {
	switch m.Body.(type) {
	case wire.Named, wire.Lack, wire.Fill:
		return w.plan.naming.on && !w.plan.naming.takes(m.To)
	}
	return false
}
