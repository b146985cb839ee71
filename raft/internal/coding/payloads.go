// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft/internal/extend"
)

// payloads is what this node can produce of the payloads in its log: from the log
// itself, and from units that the store has collected.
type payloads struct {
	*node
	ledger *ledger
	// store has the units and payloads that are not in the log.
	store *gossip.Store
	// wanted are entries that a leader must complete to send on, by index.
	//
	// Invariant: empty at a follower; entries that are not applied are pinned.
	wanted map[uint64]*record
	// pinsTail says that the winner of an election recovers: a payload behind the
	// commit index that comes is pinned.
	//
	// Invariant: set if and only if this node has a recovery.
	pinsTail bool
	// noRoomFrom is the first entry that was forgotten for lack of room, at
	// noRoomTick; 0 once there may be room again. See mayExpect.
	noRoomFrom uint64
	noRoomTick int
}

// completeTo returns the highest index up to which every entry is complete.
func (p *payloads) completeTo() uint64 {
	if rec := p.ledger.incomplete(); rec != nil {
		return rec.id.Index - 1
	}
	return p.log.Last().Index
}

// lackingTail returns the entries behind the commit index whose payloads this node
// lacks.
func (p *payloads) lackingTail() (out []*record) {
	for _, rec := range p.ledger.behind(p.log.Committed()) {
		if !p.here(rec) {
			out = append(out, rec)
		}
	}
	return out
}

// here reports whether the payload of an entry can be produced. It does not read the log: the
// winner of an election asks for every entry of its tail with each message.
func (p *payloads) here(rec *record) bool { return rec.whole || p.store.Payload(rec.id) != nil }

// payload returns the payload of an entry that is complete.
func (p *payloads) payload(rec *record) ([]byte, error) {
	if !rec.complete {
		return nil, ecraft.ErrIncomplete
	}
	if data := p.store.Payload(rec.id); data != nil {
		return data, nil
	}
	env, err := p.envelopeOf(rec.id)
	if err != nil {
		return nil, err
	}
	if env.Payload == nil {
		return nil, ecraft.ErrIncomplete // its units were given up for lack of room
	}
	return env.Payload, nil
}

// codeword returns the whole payload of an entry of the log as a codeword. The
// caller frees it.
func (p *payloads) codeword(id ecraft.ID, env *ecraft.Envelope) (*ecraft.Codeword, error) {
	payload := env.Payload
	if payload == nil {
		payload = p.store.Payload(id)
	}
	if payload == nil {
		return nil, ecraft.ErrIncomplete
	}
	return ecraft.NewCodeword(&env.Header, payload), nil
}

// payloadOf returns an entry's payload for the host, and whether the payload is here. A
// payload is given out only with the right checksum: open has checked a whole payload,
// the store a payload put together.
func (p *payloads) payloadOf(id ecraft.ID, env *ecraft.Envelope) ([]byte, bool) {
	if env.Kind == ecraft.Carrier {
		return nil, true
	}
	if env.Payload != nil {
		return env.Payload, true
	}
	data := p.store.Payload(id)
	return data, data != nil
}

// missing returns how many units this node lacks to restore an entry.
func (p *payloads) missing(rec *record) int {
	switch {
	case rec.complete:
		return 0
	case !p.store.Known(rec.id): // nothing of others is kept
		return max(0, rec.hdr.D-rec.holds(p.id, noLimit, noLimit))
	}
	units, _ := p.store.Missing(rec.id)
	return units
}

// answer puts this node's units of the entries of a question into e.
func (p *payloads) answer(e, m *pb.Message) error {
	size := 0
	for _, q := range m.GetEntries() {
		want, err := gossip.ParseAsk(idOf(q), q.GetData())
		if err != nil {
			p.emit(Event{Kind: Rejected, Index: q.GetIndex(), Peer: m.GetFrom()})
			return fmt.Errorf("question of %x for %d/%d: %w", m.GetFrom(), q.GetTerm(), q.GetIndex(), err)
		}
		units, sound := p.unitsFor(m.GetFrom(), idOf(q), want)
		if !sound && m.GetContext()[0] == forRecover {
			continue // no answer: a committed entry may need the damaged units
		}
		data := gossip.AppendUnits(nil, units...)
		e.Entries = append(e.Entries, named(idOf(q), data))
		if size += len(data); size >= answerBytes {
			break
		}
	}
	p.emit(Event{Kind: Answered, Peer: m.GetFrom(), Count: len(e.Entries), Bytes: size})
	return nil
}

// answerBytes bounds the units in an answer: a node that needs more asks again.
const answerBytes = 1 << 20

// unitsFor returns units of an entry for a member without all of them. If this node has
// the payload, the units are of the member's own strip, which no other node sends;
// otherwise the units are of this node's strip. The units are not sound if this node's
// log may once have had more.
func (p *payloads) unitsFor(asker uint64, id ecraft.ID, want gossip.Want) (units []ecraft.Strip, sound bool) {
	if !p.stands(id) {
		return nil, true
	}
	env, err := p.envelopeOf(id)
	if err != nil || env.Kind != ecraft.Coded {
		return nil, err == nil || errors.Is(err, errPlain)
	}
	if word, err := p.codeword(id, env); err == nil {
		defer word.Free()
		return gossip.Answer(&env.Header, p.id, asker, want, nil, word), true
	}
	own, sound := p.ownUnits(id, env)
	return gossip.Answer(&env.Header, p.id, asker, want, own, nil), sound
}

// ownUnits returns the units of an entry that this node's log has: the units of the
// envelope, and of riders. They are sound if none is lacking because the log is
// damaged. Units of a damaged log may be given to others, but not as an answer that
// claims to be all.
func (p *payloads) ownUnits(id ecraft.ID, env *ecraft.Envelope) (units []ecraft.Strip, sound bool) {
	sound = true
	add := func(s ecraft.Strip) {
		if s.Verify() != nil {
			sound = false
		} else if s.Count > 0 {
			units = append(units, s)
		}
	}
	add(env.Own)
	riding, read := p.ledger.riderUnits(p.node, id)
	for _, s := range riding {
		add(s)
	}
	return units, sound && read
}

// unwrap returns committed entries as the host is to see them: with payloads,
// and carriers as empty entries. It stops before an entry whose payload is not
// there after all.
func (p *payloads) unwrap(ents []*pb.Entry, most uint64) ([]*pb.Entry, error) {
	for i, e := range ents {
		if p.isEnvelope(e) {
			out, err := p.unwrapFrom(ents, i)
			return extend.Limit(out, most), err
		}
	}
	return ents, nil
}

// unwrapFrom makes the copy in which entries from position i on are unwrapped.
func (p *payloads) unwrapFrom(ents []*pb.Entry, i int) ([]*pb.Entry, error) {
	out := append(make([]*pb.Entry, 0, len(ents)), ents[:i]...)
	for _, e := range ents[i:] {
		if payload := p.sealedHere(e); payload != nil {
			out = append(out, withData(e, payload))
			continue
		}
		env, err := p.open(e)
		if err != nil {
			return nil, err
		}
		if env != nil {
			payload, ok := p.payloadOf(idOf(e), env)
			if !ok {
				break
			}
			e = withData(e, payload)
		}
		out = append(out, e)
	}
	return out, nil
}

// sealedHere returns the payload of an entry sealed by this node whose bytes are still
// the same, in the same place: the host's own bytes, whose checksum needs no look. nil
// for any other entry.
func (p *payloads) sealedHere(e *pb.Entry) []byte {
	rec := p.ledger.find(e.GetIndex())
	if rec == nil || rec.word == nil || rec.id != idOf(e) {
		return nil
	}
	data, payload := e.GetData(), rec.word.Payload()
	n := len(payload)
	if n == 0 || n > len(data) || &payload[0] != &data[len(data)-n] {
		return nil
	}
	return payload[:n:n]
}
