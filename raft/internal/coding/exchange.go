// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
)

// Followers complete each other's payloads. When a follower's units of an entry are
// durable, the follower acknowledges the entry and pushes the units to the members that
// need them, by a schedule that follows from the header: no request, one delay. A node
// without all units of a committed entry asks for the rest.

// Types of messages between nodes that code. On the wire Term is 0, so that a node
// without coding ignores the message; the sender's term is in LogTerm.
const (
	MsgUnits    = pb.MessageType(64)
	MsgUnitsAsk = pb.MessageType(65)
)

// The Context of MsgUnits and MsgUnitsAsk is one byte, the message's purpose.
const (
	forPush    = 'p' // a push: units without a question
	forAnswer  = 'a' // the answer to a question for units
	forAsk     = 'q' // a question of a node that applies, or sends on
	forRecover = 'r' // a question of a new leader, and its answer
)

// answerBytes bounds the units in an answer: a node that needs more asks again.
const answerBytes = 1 << 20

// unitsMessage begins a message about units. LogTerm is the sender's term, Index the
// last index acknowledged by the sender in the present term.
func (c *Coder) unitsMessage(typ pb.MessageType, to uint64, purpose byte) *pb.Message {
	return &pb.Message{
		Type: &typ, To: &to, From: &c.id, Term: new(uint64), LogTerm: new(c.raft.Term()),
		Index: new(c.acked.Index), Commit: new(c.log.Committed()), Context: []byte{purpose},
	}
}

// IsPush reports whether a message is a push. Pushed units wait for durability, so the
// message also vouches for its index.
func IsPush(m *pb.Message) bool {
	return m.GetType() == MsgUnits && len(m.GetContext()) == 1 && m.GetContext()[0] == forPush
}

// share pushes this node's units of entries behind their acknowledgement: at once, or
// when the entries lie far enough behind the commit index. An entry committed before
// its arrival here is not shared, because the other members have the entry; for the same
// reason the others push no units of the entry.
func (c *Coder) share(ents []*pb.Entry, envs []*ecraft.Envelope, commit uint64) {
	var now parcels
	for i, env := range envs {
		if env == nil || env.Kind != ecraft.Coded {
			continue
		}
		if ents[i].GetIndex() <= commit {
			if rec := c.ledger.find(ents[i].GetIndex()); rec != nil {
				rec.unpushed = true
			}
			continue
		}
		if env.Own.Count == 0 && env.Payload == nil {
			continue
		}
		if c.cfg.GossipGap == 0 {
			now.pack(c, idOf(ents[i]), env)
		} else {
			c.later.Add(idOf(ents[i]), env.PayloadLen, c.ticks)
		}
	}
	c.ship(&now)
	c.shareDue()
}

// shareDue pushes the units of entries that lie far enough behind the commit index, or
// have waited long enough.
func (c *Coder) shareDue() {
	c.shareLater(func() (ecraft.ID, bool) { return c.later.Next(c.log.Committed(), c.ticks) })
}

// shareUpTo pushes the units that were held back of entries which may leave the log,
// because the entries are applied or a snapshot takes their place: a later question for
// these units would get nothing.
func (c *Coder) shareUpTo(index uint64) {
	c.shareLater(func() (ecraft.ID, bool) { return c.later.NextUpTo(index) })
}

func (c *Coder) shareLater(next func() (ecraft.ID, bool)) {
	var due parcels
	for {
		id, ok := next()
		if !ok {
			break
		}
		eid := ecraft.ID{Term: id.Term, Index: id.Index}
		if env, err := c.envelopeOf(eid); err == nil {
			due.pack(c, eid, env)
		}
	}
	c.ship(&due)
}

// pushBytes is how many bytes of units a push has before another one is begun.
const pushBytes = 64 << 10

// parcels are units on their way, in messages of about pushBytes for each receiver.
type parcels struct {
	to      []uint64
	bytes   []int
	content []*pb.Message
	targets []gossip.Push
}

// pack adds the pushes of one entry by the schedule. A node that was assigned the whole
// payload makes the units of its slot.
func (p *parcels) pack(c *Coder, id ecraft.ID, env *ecraft.Envelope) {
	p.targets = gossip.Targets(&env.Header, c.id, p.targets[:0])
	var word *ecraft.Codeword
	if env.Payload != nil && len(p.targets) > 0 {
		word = ecraft.NewCodeword(&env.Header, env.Payload)
		defer word.Free()
	}
	var (
		data   []byte // shared by receivers of the same units
		packed int
	)
	for _, t := range p.targets {
		if a := c.accounts[t.Peer]; a != nil && a.unreachable {
			continue // when it is back, the member asks for the units
		}
		if t.Count != packed {
			strip := env.Own.Sub(0, t.Count)
			if word != nil {
				strip = word.Strip(env.SlotOf(c.id), 0, t.Count)
			}
			data, packed = gossip.AppendUnits(nil, strip), t.Count
		}
		i := p.open(t.Peer)
		if i < 0 {
			i = len(p.to)
			p.to = append(p.to, t.Peer)
			p.bytes = append(p.bytes, 0)
			p.content = append(p.content, c.unitsMessage(MsgUnits, t.Peer, forPush))
		}
		p.content[i].Entries = append(p.content[i].Entries, named(id, data))
		p.bytes[i] += len(data)
	}
}

// open returns the position of the receiver's last parcel if there is room in the
// parcel, and -1 otherwise.
func (p *parcels) open(to uint64) int {
	for i := len(p.to) - 1; i >= 0; i-- {
		if p.to[i] == to {
			if p.bytes[i] < pushBytes {
				return i
			}
			break
		}
	}
	return -1
}

// ship sends the parcels when their units are durable here.
func (c *Coder) ship(p *parcels) {
	for i, to := range p.to {
		ents := p.content[i].Entries
		c.vouch(p.content[i])
		c.emit(Event{Kind: Pushed, Peer: to, Count: len(ents), Bytes: dataBytes(ents)})
	}
}

func dataBytes(ents []*pb.Entry) (n int) {
	for _, e := range ents {
		n += len(e.GetData())
	}
	return n
}

// Check refuses a message about units that no correct node sends.
func (c *Coder) Check(m *pb.Message) error {
	if t := m.GetType(); t != MsgUnits && t != MsgUnitsAsk {
		return nil
	}
	if len(m.GetContext()) != 1 || m.GetTerm() != 0 {
		return fmt.Errorf("message of type %d from %x has term %d and a context of %d bytes; it must have term 0 and 1 byte",
			m.GetType(), m.GetFrom(), m.GetTerm(), len(m.GetContext()))
	}
	if n := len(m.GetEntries()); n > maxRecovered && m.GetType() == MsgUnitsAsk {
		return fmt.Errorf("%x asks for units of %d entries; at most %d can be", m.GetFrom(), n, maxRecovered)
	}
	for i, e := range m.GetEntries() {
		if e.GetTerm() == 0 || e.GetTerm() > maxTerm || i > 0 && e.GetIndex() <= m.GetEntries()[i-1].GetIndex() {
			return fmt.Errorf("message of type %d from %x has entry %d/%d out of order or without a term",
				m.GetType(), m.GetFrom(), e.GetTerm(), e.GetIndex())
		}
	}
	return nil
}

// Step takes a message about units that Check lets pass.
func (c *Coder) Step(m *pb.Message) error {
	switch m.GetType() {
	case MsgUnitsAsk:
		return c.stepAsk(m)
	case MsgUnits:
		return c.stepUnits(m)
	}
	return nil // another extension's
}

// stepUnits takes units, or headers, from another node.
func (c *Coder) stepUnits(m *pb.Message) error {
	from := m.GetFrom()
	if m.GetContext()[0] == forReading { // also from members to come
		if c.leads != nil {
			c.leads.readingArrived(m)
		}
		return nil
	}
	if !c.follows(from) && !c.raft.Electorate().Expects(from) {
		return nil // no member, as far as is known here
	}
	c.heard(from)
	purpose := m.GetContext()[0]
	if purpose == forRecover {
		if c.recovery != nil {
			return c.recovery.answered(m)
		}
		return nil
	}
	if purpose == forHeaderAnswer {
		if l := c.leads; l != nil {
			return l.headersArrived(m)
		}
		return nil
	}
	var refused error
	for _, e := range m.GetEntries() {
		refused = errors.Join(refused, c.stepUnitsOf(from, e))
		if purpose == forAnswer {
			c.puller.Answered(from, idOf(e))
		}
	}
	if c.leads != nil {
		c.leads.unblock()
	}
	if purpose == forAnswer {
		c.pull() // there may be more to ask for
	}
	return refused
}

// stepUnitsOf takes the units of one entry.
func (c *Coder) stepUnitsOf(from uint64, e *pb.Entry) (refused error) {
	id := idOf(e)
	strips, err := gossip.ParseUnits(e.GetData())
	if err != nil {
		c.emit(Event{Kind: Rejected, Index: id.Index, Peer: from})
		return fmt.Errorf("units of %d/%d from %x: %w", id.Term, id.Index, from, err)
	}
	for _, s := range strips {
		refused = errors.Join(refused, c.unitsArrived(id, from, s))
	}
	return refused
}

// unitsArrived adds units of an entry, from another node or from this node's log.
func (c *Coder) unitsArrived(id ecraft.ID, from uint64, s ecraft.Strip) error {
	complete, err := c.store.Add(id, from, s)
	if complete { // in spite of bad units
		c.completed(id)
	}
	c.forgetting()
	if c.recovery != nil && errors.Is(err, gossip.ErrWrongPayload) {
		delete(c.recovery.answers, id.Index) // their units are dropped
	}
	if err != nil && from != c.id {
		c.emit(Event{Kind: Rejected, Index: id.Index, Peer: from})
		return fmt.Errorf("units of %d/%d from %x: %w", id.Term, id.Index, from, err)
	}
	return nil
}

// completed notes that the payload of an entry is here.
func (c *Coder) completed(id ecraft.ID) {
	rec := c.ledger.find(id.Index)
	if rec == nil || rec.id != id {
		rec = c.wanted[id.Index]
	}
	if rec == nil || rec.id != id || rec.complete {
		return
	}
	c.ledger.complete(rec, true)
	if c.recovery != nil && id.Index > c.log.Committed() {
		c.pin(rec)
	}
	c.emit(Event{Kind: Completed, Index: id.Index, Bytes: rec.hdr.PayloadLen})
	if rec.since > 0 {
		c.emit(Event{Kind: Delayed, Index: id.Index, Count: int((c.now() - rec.since) / time.Microsecond)})
	}
}

// stepAsk answers a question for units.
func (c *Coder) stepAsk(m *pb.Message) error {
	from := m.GetFrom()
	switch m.GetContext()[0] {
	case forAsk:
		c.heard(from)
		e := c.unitsMessage(MsgUnits, from, forAnswer)
		if err := c.answer(e, m); err != nil {
			return err
		}
		c.send(e)
	case forHeaderAsk:
		c.answerHeaders(m)
	case forReading:
		c.answerReading(m)
	case forRelease:
		if from == c.raft.Lead() && m.GetLogTerm() == c.raft.Term() {
			c.askForSnapshot(m.GetIndex())
		}
	case forRecover:
		return c.answerWinner(m)
	}
	return nil
}

// answer puts this node's units of the entries of a question into e.
func (c *Coder) answer(e, m *pb.Message) error {
	size := 0
	for _, q := range m.GetEntries() {
		want, err := gossip.ParseAsk(idOf(q), q.GetData())
		if err != nil {
			c.emit(Event{Kind: Rejected, Index: q.GetIndex(), Peer: m.GetFrom()})
			return fmt.Errorf("question of %x for %d/%d: %w", m.GetFrom(), q.GetTerm(), q.GetIndex(), err)
		}
		units, sound := c.unitsFor(m.GetFrom(), idOf(q), want)
		if !sound && m.GetContext()[0] == forRecover {
			continue // no answer: a committed entry may need the damaged units
		}
		data := gossip.AppendUnits(nil, units...)
		e.Entries = append(e.Entries, named(idOf(q), data))
		if size += len(data); size >= answerBytes {
			break
		}
	}
	c.emit(Event{Kind: Answered, Peer: m.GetFrom(), Count: len(e.Entries), Bytes: size})
	return nil
}

// unitsFor returns units of an entry for a member without all of them. If this node has
// the payload, the units are of the member's own strip, which no other node sends;
// otherwise the units are of this node's strip. The units are not sound if this node's
// log may once have had more.
func (c *Coder) unitsFor(asker uint64, id ecraft.ID, want gossip.Want) (units []ecraft.Strip, sound bool) {
	if !c.stands(id) {
		return nil, true
	}
	env, err := c.envelopeOf(id)
	if err != nil || env.Kind != ecraft.Coded {
		return nil, err == nil || errors.Is(err, errPlain)
	}
	if word, err := c.codeword(id, env); err == nil {
		defer word.Free()
		return gossip.Answer(&env.Header, c.id, asker, want, nil, word), true
	}
	own, sound := c.ownUnits(id, env)
	return gossip.Answer(&env.Header, c.id, asker, want, own, nil), sound
}
