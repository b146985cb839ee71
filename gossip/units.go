// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"fmt"
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// addOwn takes in units from the log.
func (s *Store) addOwn(r *record, strip ecraft.Strip) {
	known := func(o ecraft.Strip) bool {
		return o.Slot == strip.Slot && o.First == strip.First && o.Count == strip.Count
	}
	if strip.Count == 0 || slices.ContainsFunc(r.own, known) {
		return
	}
	added, _ := r.gather(strip) // units that are damaged on the disk are wanted from others
	r.own = append(r.own, strip)
	s.grow(r, strip.EncodedLen())
	if added > 0 && r.units.Missing() == 0 {
		_ = s.decode(r) // what is lacking afterwards is wanted from others
	}
}

// origin is where units come from: a peer, who has them from its log or from the push of another peer.
type origin struct {
	from uint64
	way  way
}

type way byte

const (
	direct    way = iota
	passed        // a reader has passed them on
	collected     // a voter has
)

// may reports whether a peer may send units of a slot to self.
func (o origin) may(h *ecraft.Header, self uint64, strip ecraft.Strip) bool {
	theirs, ours := h.SlotOf(o.from), h.SlotOf(self)
	if o.way == direct {
		return strip.Slot == theirs || strip.Slot == ours
	}
	return theirs >= 0 && ours >= 0 && (o.way == collected || h.Units[theirs] == 0 && h.Units[ours] == 0) &&
		strip.Slot >= 0 && strip.Slot < h.Slots && strip.First+strip.Count <= int(h.Units[strip.Slot])
}

// addFrom takes in units of a peer, or of this node's log, for an entry that is not
// complete.
func (s *Store) addFrom(r *record, o origin, strip ecraft.Strip) error {
	from := o.from
	if from == s.self {
		s.addOwn(r, strip)
		return nil
	}
	if !o.may(r.h, s.self, strip) {
		return fmt.Errorf("%w: peer %d sent units of slot %d for index %d (passed on: %d): its own is %d, ours %d",
			ErrRefused, from, strip.Slot, r.id.Index, o.way, r.h.SlotOf(from), r.h.SlotOf(s.self))
	}
	added, err := r.gather(strip)
	if err != nil {
		err = fmt.Errorf("gossip: peer %d, index %d: %w", from, r.id.Index, err)
	}
	if added == 0 {
		return err
	}
	s.grow(r, strip.EncodedLen())
	if !slices.Contains(r.from, from) {
		r.from = append(r.from, from)
	}
	if r.units.Missing() == 0 {
		if wrong := s.decode(r); wrong != nil {
			return wrong
		}
	}
	return err
}

// gather puts the units of a strip that are not there yet into the assembly.
func (r *record) gather(strip ecraft.Strip) (added int, err error) {
	if added, err = r.units.Add(strip); added > 0 {
		slot := strip.Slot
		for int(r.first[slot]) < r.h.D && r.units.Has(slot, int(r.first[slot])) {
			r.first[slot]++
		}
	}
	return added, err
}

// ownHeld returns the first unit of the own slot that is not held.
func (r *record) ownHeld(self uint64) int {
	if slot := r.h.SlotOf(self); slot >= 0 {
		return int(r.first[slot])
	}
	return 0
}

// decode makes the payload, of an entry that has D units. If it comes out wrong, the
// checksum of some unit is right and the unit is not. Which one cannot be seen, so all
// units of peers are dropped, and asked for again; the units of the log as well, if
// there are no others.
func (s *Store) decode(r *record) error {
	payload, err := r.units.Payload()
	if err == nil {
		s.finish(r, payload)
		return nil
	}
	s.counts.wrong++
	own, from := r.own, r.from
	if len(from) == 0 {
		own = nil
	}
	*r = record{id: r.id, h: r.h, units: ecraft.NewAssembly(r.h), first: make([]uint8, r.h.Slots), bytes: r.bytes, pins: r.pins}
	s.grow(r, recordBytes+unitsBytes(r.h)-r.bytes)
	for _, strip := range own {
		s.addOwn(r, strip)
	}
	return fmt.Errorf("%w: index %d, from units of peers %v: %w", ErrWrongPayload, r.id.Index, from, err)
}

// finish makes an entry complete, and lets go of its units.
func (s *Store) finish(r *record, payload []byte) {
	r.units.Free()
	*r = record{id: r.id, h: r.h, payload: payload, bytes: r.bytes, pins: r.pins}
	if r.payload == nil {
		r.payload = []byte{}
	}
	s.grow(r, recordBytes+len(payload)-r.bytes)
}
