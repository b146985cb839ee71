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
//
// With zones, voters do alike: units come into a zone by one push to one of its voters, which passes them on to the other
// voters there and to one learner. So a unit makes at most three steps: from zone to zone, to a learner, and to the others;
// the purposes of the messages tell the steps apart, and nothing goes round.

// passes is what this node passes on.
type passes struct {
	*node
	ledger   *ledger
	accounts *accounts
	// early are units whose entries have yet to come from the leader, push by push, bytes about their memory.
	//
	// Invariant: of entries behind the log, at most maxEarly bytes; no push is empty.
	early []arrival
	bytes int
}

// arrival is units as a voter has sent them.
type arrival struct {
	from uint64
	ents []*pb.Entry
}

// maxEarly bounds what waits for its header; earlyEntry is about the memory of an entry beside its units.
const maxEarly, earlyEntry = 1 << 20, 128

// passOn passes on units that a voter has sent: at a learner, and at a voter those from another zone. Most nodes have
// nothing to pass on, ever.
func (c *Coder) passOn(m *pb.Message) {
	from := m.GetFrom()
	if !c.votes(from) || !c.learns(c.id) && (c.zone(c.id) == "" || c.near(from)) {
		return
	}
	if c.passes == nil {
		c.passes = &passes{node: c.node, ledger: c.ledger, accounts: c.accounts}
	}
	c.passes.pushed(from, m.GetEntries())
}

// pushed passes on units of entries in the log, and keeps the others.
func (p *passes) pushed(from uint64, ents []*pb.Entry) {
	var out parcels
	var early []*pb.Entry
	for _, e := range ents {
		n := earlyEntry + len(e.GetData())
		switch {
		case !p.intact(e):
		case e.GetIndex() <= p.log.Last().Index:
			p.pack(&out, from, e)
		case p.bytes+n <= maxEarly:
			early = append(early, e)
			p.bytes += n
		}
	}
	if len(early) > 0 {
		p.early = append(p.early, arrival{from, early})
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
	for i := range p.early {
		var out parcels
		a := &p.early[i]
		for len(a.ents) > 0 && a.ents[0].GetIndex() <= last {
			p.bytes -= earlyEntry + len(a.ents[0].GetData())
			p.pack(&out, a.from, a.ents[0])
			a.ents = a.ents[1:]
		}
		p.ship(&out)
	}
	p.early = slices.DeleteFunc(p.early, func(a arrival) bool { return len(a.ents) == 0 })
}

// intact reports whether there are units, all undamaged, so that nobody takes this node for the culprit.
func (p *passes) intact(e *pb.Entry) bool {
	strips, err := gossip.ParseUnits(e.GetData())
	return err == nil && len(strips) > 0 && !slices.ContainsFunc(strips, func(s ecraft.Strip) bool { return s.Verify() != nil })
}

// pack adds the units of an entry for the members that are to have them from here.
func (p *passes) pack(out *parcels, from uint64, e *pb.Entry) {
	rec := p.ledger.find(e.GetIndex())
	if rec == nil || rec.id != idOf(e) {
		return // applied: others that lack it ask
	}
	purpose, peers := byte(forPass), p.accounts.peers()
	if !p.learns(p.id) {
		purpose = forZone
	} else if rec.hdr.SlotOf(p.id) < gossip.FirstReader(rec.hdr, peers.Reader) {
		return // assigned units, by a leader of an earlier version
	}
	p.accounts.seekLost(rec.hdr.Members)
	for _, to := range gossip.PassOn(rec.hdr, p.id, from, rec.id.Index, peers, nil) {
		out.add(p.node, purpose, to, named(rec.id, e.GetData()))
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

// passed takes units that another member has passed on. Voters take none of learners. The winner
// of an election, who may be a learner here, takes none at all: it goes by answers.
func (c *Coder) passed(m *pb.Message) error {
	take := c.payloads.store.Collect
	if m.GetContext()[0] == forPass {
		take = c.payloads.store.Pass
		if !c.learns(c.id) {
			return nil
		}
	}
	if c.recovery != nil {
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
			complete, err := take(idOf(e), m.GetFrom(), s)
			refused = errors.Join(refused, c.payloads.added(idOf(e), m.GetFrom(), complete, err))
		}
	}
	return refused
}
