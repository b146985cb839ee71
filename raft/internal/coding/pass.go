// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
)

// A learner reads: the leader sends it headers, and each unit that a voter pushes to the
// learners goes to one of them, which passes the unit on to the others. So learners cost the
// leader headers, the voters together one payload, and each other the rest.
//
// What is passed on is no promise: it leaves without waiting for this node's disk,
// acknowledges no index, and no rule counts it. Only a push of a voter is passed on, so a unit
// makes one step more, and only for entries in which both ends were assigned nothing: what a
// leader of an earlier version sends learners itself, with units, is not passed on.

// passes is what this node passes on as a learner.
type passes struct {
	*node
	ledger   *ledger
	accounts *accounts
	// early are units whose entries have yet to come from the leader, push by push, bytes their size.
	//
	// Invariant: of entries behind the log, at most maxEarly bytes; no push is empty.
	early [][]*pb.Entry
	bytes int
}

// maxEarly bounds what waits for its header.
const maxEarly = 1 << 20

// passOn passes on the units of a voter's push. Most nodes have nothing to pass on, ever.
func (c *Coder) passOn(m *pb.Message) {
	if !c.learns(c.id) || !c.votes(m.GetFrom()) {
		return
	}
	if c.passes == nil {
		c.passes = &passes{node: c.node, ledger: c.ledger, accounts: c.accounts}
	}
	c.passes.pushed(m.GetEntries())
}

// pushed passes on units of entries in the log, and keeps the others.
func (p *passes) pushed(ents []*pb.Entry) {
	var out parcels
	var early []*pb.Entry
	for _, e := range ents {
		n := len(e.GetData())
		switch {
		case !p.intact(e):
		case e.GetIndex() <= p.log.Last().Index:
			p.pack(&out, e)
		case p.bytes+n <= maxEarly:
			early = append(early, e)
			p.bytes += n
		}
	}
	if len(early) > 0 {
		p.early = append(p.early, early)
	}
	p.ship(&out)
}

// noted passes on what came before the entries that are in the log now. Each push leaves in messages of its
// own, because units of one entry come with the pushes of several voters, and a message has an entry once.
func (p *passes) noted() {
	if p == nil || len(p.early) == 0 {
		return
	}
	last := p.log.Last().Index
	for i, ents := range p.early {
		var out parcels
		for len(ents) > 0 && ents[0].GetIndex() <= last {
			p.bytes -= len(ents[0].GetData())
			p.pack(&out, ents[0])
			ents = ents[1:]
		}
		p.early[i] = ents
		p.ship(&out)
	}
	p.early = slices.DeleteFunc(p.early, func(ents []*pb.Entry) bool { return len(ents) == 0 })
}

// intact reports whether units are undamaged, so that nobody takes this node for the culprit.
func (p *passes) intact(e *pb.Entry) bool {
	strips, err := gossip.ParseUnits(e.GetData())
	return err == nil && !slices.ContainsFunc(strips, func(s ecraft.Strip) bool { return s.Verify() != nil })
}

// pack adds the units of an entry for the other readers of the entry.
func (p *passes) pack(out *parcels, e *pb.Entry) {
	rec := p.ledger.find(e.GetIndex())
	if rec == nil || rec.id != idOf(e) {
		return // applied: others that lack it ask
	}
	readers := rec.hdr.Members[gossip.FirstReader(rec.hdr, p.learns):]
	if !slices.Contains(readers, p.id) {
		return
	}
	for _, to := range readers {
		if to != p.id && !p.accounts.unreachable(to) {
			out.add(p.node, forPass, to, named(rec.id, e.GetData()))
		}
	}
}

func (p *passes) ship(out *parcels) {
	for i, to := range out.to {
		m := out.content[i]
		m.Index = new(uint64) // see above: no acknowledgement
		p.send(m)
		p.emit(Event{Kind: Pushed, Peer: to, Count: len(m.GetEntries()), Bytes: out.bytes[i]})
	}
}

// passed takes units that another learner has passed on. Voters take none, nor does the winner
// of an election, who may be a learner here: it goes by answers.
func (c *Coder) passed(m *pb.Message) error {
	if !c.learns(c.id) || c.recovery != nil {
		return nil
	}
	var refused error
	for _, e := range m.GetEntries() {
		strips, err := gossip.ParseUnits(e.GetData())
		if err != nil {
			c.emit(Event{Kind: Rejected, Index: e.GetIndex(), Peer: m.GetFrom()})
			return fmt.Errorf("units of %d/%d passed on by %x: %w", e.GetTerm(), e.GetIndex(), m.GetFrom(), err)
		}
		for _, s := range strips {
			complete, err := c.payloads.store.Pass(idOf(e), m.GetFrom(), s)
			refused = errors.Join(refused, c.payloads.added(idOf(e), m.GetFrom(), complete, err))
		}
	}
	return refused
}
