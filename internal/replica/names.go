// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"time"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/names"
	"github.com/weftraft/weft/internal/wire"
)

// Names has a leader send names in the place of data that came from the receiver, or that another member
// in the receiver's zone passes on: see package names. Every replica takes names, and passes data on.
type Names struct {
	// Announced reports whether a peer has announced that it takes names of its own batches; nil means that
	// none does. It does not wait.
	Announced func(peer uint64) bool
	// Zone returns the zone of a node, this one or another, empty if it is not known; nil means that there are no
	// relays. Relayed reports whether a peer has announced that it takes names with relays, and passes data
	// on. Neither waits.
	Zone    func(node uint64) string
	Relayed func(peer uint64) bool
	// Runs reports whether a peer has announced that it takes one name for many entries; nil means that none does. It does not
	// wait.
	Runs func(peer uint64) bool

	// The next fields are for simulators; each may be nil. Named sees a message with names and its
	// original, as it leaves; Joined sees a message with names and the result, as it is joined. Forget
	// reports whether a batch looked for is to be missing.
	Named, Joined func(m wire.Message, whole wire.Raft)
	Forget        func() bool
}

// NameCounts count since the start of a replica.
type NameCounts struct {
	names.GiverCounts
	names.TakerCounts
	names.RelayCounts
}

// nameGiver is the Bundler of a replica that gives names.
type nameGiver struct {
	*facts
	names.Giver
}

func newNameGiver(p *placing) *nameGiver {
	g := &nameGiver{facts: p.facts, Giver: names.Giver{Announced: p.cfg.Names.Announced, Batch: plainBatchOf, Whole: func(data []byte) bool {
		_, coded := ecraft.Detect(data)
		return !coded
	}}}
	if p.cfg.Names.Zone != nil {
		g.Zones, g.Runs = newZones(p), p.cfg.Names.Runs
	}
	return g
}

// plainBatchOf returns the id of the batch that is an entry's data, if the batch is a node's, and the
// entry is not coded.
func plainBatchOf(node uint64, data []byte) (wire.CommandID, bool) {
	env, _, err := decodeHead(data)
	if err != nil || env.id.Origin != node {
		return wire.CommandID{}, false
	}
	_, coded := ecraft.Detect(data)
	return env.id, !coded
}

// Bundle implements Bundler.
func (g *nameGiver) Bundle(turn []wire.Message, _ time.Duration) (send, dropped []wire.Message) {
	if g.Idle() {
		return turn, nil
	}
	g.Turn(turn)
	for i, m := range turn {
		turn[i] = g.Name(m, g.ticks)
		if _, ok := turn[i].Body.(wire.Named); ok && g.cfg.Names.Named != nil {
			g.cfg.Names.Named(turn[i], m.Body.(wire.Raft))
		}
	}
	return turn, nil
}

// nameTaker is the Resolver of a replica that has met names.
type nameTaker struct {
	*facts
	names.Taker
}

func newNameTaker(f *facts) *nameTaker {
	hedge := uint64(max(2, f.cfg.ElectionTick/5))
	return &nameTaker{f, names.Taker{Self: f.cfg.ID, Patience: uint64(f.cfg.ElectionTick), Hedge: hedge}}
}

// Resolve implements Resolver.
func (t *nameTaker) Resolve(m wire.Message, _ time.Duration) (wire.Message, Resolution) {
	n, ok := m.Body.(wire.Named)
	if !ok {
		return m, asResolved
	}
	joined, ok, waits := t.Taker.Resolve(n, t.ticks)
	switch {
	case waits:
		return m, asUnresolved
	case !ok:
		return m, asDropped
	}
	t.cfg.Names.joined(m, joined)
	m.Body = joined
	return m, asResolved
}

func (n *Names) joined(m wire.Message, whole wire.Raft) {
	if n != nil && n.Joined != nil {
		n.Joined(m, whole)
	}
}

func (n *Names) forgets() bool { return n != nil && n.Forget != nil && n.Forget() }
