// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"fmt"
	"maps"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
)

// Units of others complete payloads. The store may have to give units up for lack of
// room, so an entry that is not complete is expected anew, with the units that the log
// has, whenever units of the entry are asked for.

// arrived adds units of an entry, from another node or from this node's log.
func (p *payloads) arrived(id ecraft.ID, from uint64, s ecraft.Strip) error {
	complete, err := p.store.Add(id, from, s)
	return p.added(id, from, complete, err)
}

// added notes what came of adding units.
func (p *payloads) added(id ecraft.ID, from uint64, complete bool, err error) error {
	if complete { // in spite of bad units
		p.completed(id)
	}
	p.forgetting()
	if err != nil && from != p.id {
		p.emit(Event{Kind: Rejected, Index: id.Index, Peer: from})
		return fmt.Errorf("units of %d/%d from %x: %w", id.Term, id.Index, from, err)
	}
	return nil
}

// take takes the units of one entry.
func (p *payloads) take(from uint64, e *pb.Entry) (refused error) {
	id := idOf(e)
	strips, err := gossip.ParseUnits(e.GetData())
	if err != nil {
		p.emit(Event{Kind: Rejected, Index: id.Index, Peer: from})
		return fmt.Errorf("units of %d/%d from %x: %w", id.Term, id.Index, from, err)
	}
	for _, s := range strips {
		refused = errors.Join(refused, p.arrived(id, from, s))
	}
	return refused
}

// completed notes that the payload of an entry is here.
func (p *payloads) completed(id ecraft.ID) {
	rec := p.ledger.find(id.Index)
	if rec == nil || rec.id != id {
		rec = p.wanted[id.Index]
	}
	if rec == nil || rec.id != id || rec.complete {
		return
	}
	p.ledger.complete(rec, true)
	if p.pinsTail && id.Index > p.log.Committed() {
		p.pin(rec)
	}
	p.emit(Event{Kind: Completed, Index: id.Index, Bytes: rec.hdr.PayloadLen})
	if rec.since > 0 {
		p.emit(Event{Kind: Delayed, Index: id.Index, Count: int((p.now() - rec.since) / time.Microsecond)})
	}
}

// expect sees to it that the store knows an entry that is not complete. If the store
// had given the entry up for lack of room, it gets the units of the log again. The
// result says whether units are lacking.
func (p *payloads) expect(rec *record) bool {
	id := rec.id
	if p.store.Known(id) {
		return true
	}
	env, err := p.envelopeOf(rec.id)
	if err != nil {
		return false
	}
	own, _ := p.ownUnits(rec.id, env)
	p.ledger.complete(rec, p.store.Expect(id, rec.hdr, own...))
	p.forgetting()
	return !rec.complete
}

// expectPinned is expect for an entry that there must be room for.
func (p *payloads) expectPinned(rec *record) bool {
	if rec.pinned {
		return !rec.complete
	}
	env, err := p.envelopeOf(rec.id)
	if err != nil {
		return false
	}
	rec.pinned = true
	own, sound := p.ownUnits(rec.id, env)
	p.ledger.complete(rec, p.store.ExpectPinned(rec.id, rec.hdr, own...))
	missing, _ := p.store.Missing(rec.id)
	rec.damaged = !sound || len(own) > 0 && missing == rec.hdr.D // the log's make a wrong payload
	p.forgetting()
	return !rec.complete
}

// forgetting notes entries given up by the store for lack of room, and so lacking again.
// The call follows each call that may make the store give up entries.
func (p *payloads) forgetting() {
	from, ok := p.store.Forgot()
	if !ok {
		return
	}
	if p.mayExpect(from) {
		p.noRoomFrom, p.noRoomTick = from, p.ticks
	}
	for _, rec := range p.ledger.recs[p.ledger.at(from):] {
		if rec.whole || p.store.Known(rec.id) {
			continue
		}
		rec.unpushed = true
		if rec.complete {
			p.ledger.complete(rec, false)
		}
	}
}

// mayExpect reports whether there may be room for an entry. For a forgotten entry there
// is none until another entry is applied or the next tick comes: otherwise entries
// would drive each other out as often as answers come, and each time all units would be
// asked for anew.
func (p *payloads) mayExpect(index uint64) bool {
	return p.noRoomFrom == 0 || index < p.noRoomFrom || p.ticks != p.noRoomTick
}

// pin keeps the store's units or payload of an entry until the entry is applied.
func (p *payloads) pin(rec *record) {
	if !rec.pinned {
		rec.pinned = p.store.Pin(rec.id)
	}
}

// unpin may make the store give up entries: forgetting follows the last unpin of a row.
func (p *payloads) unpin(rec *record) {
	if rec.pinned {
		p.store.Unpin(rec.id)
		rec.pinned = false
	}
}

// pinTail keeps the payloads of entries behind the commit index.
func (p *payloads) pinTail() {
	p.pinsTail = true
	for _, rec := range p.ledger.behind(p.log.Committed()) {
		if p.here(rec) {
			p.pin(rec)
		}
	}
}

// unpinAll ends all pins and wants when a leadership ends, or a won term is given up.
// Later would be wrong: a want that ends in the next term could unpin a payload that
// the node then needs to recover.
func (p *payloads) unpinAll() {
	for _, rec := range p.wanted {
		p.unpin(rec)
	}
	clear(p.wanted)
	for _, rec := range p.ledger.recs {
		p.unpin(rec)
	}
	p.forgetting()
}

// cut forgets entries from index on.
func (p *payloads) cut(index uint64) {
	p.store.Cut(index)
	maps.DeleteFunc(p.wanted, func(i uint64, _ *record) bool { return i >= index })
}

// applied forgets what was only needed to apply entries up to index. The ledger still has
// their records.
func (p *payloads) applied(index uint64) {
	for _, rec := range p.ledger.recs {
		if rec.id.Index > index {
			break
		}
		p.unpin(rec)
	}
	p.noRoomFrom = 0
	p.store.Applied(index)
	p.forgetting()
}
