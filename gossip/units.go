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
	if r.doubt != nil {
		if !r.doubt.ownWrong {
			_, _ = s.addPart(r, 0, strip) // as below
		}
		return
	}
	if added, _ := r.gather(strip); added > 0 { // units that rotted on disk are wanted from others
		r.own = append(r.own, strip)
		s.grow(r, strip.EncodedLen())
	}
	if r.units.Missing() == 0 {
		_ = s.decode(r) // counted; own units that are wrong are wanted from others
	}
}

// addFrom takes in units of a peer, for an entry that is not complete.
func (s *Store) addFrom(r *record, from uint64, strip ecraft.Strip) (complete bool, err error) {
	switch theirs, ours := r.h.SlotOf(from), r.h.SlotOf(s.self); {
	case r.payload != nil:
		s.counts.Duplicates += uint64(strip.Count)
		return false, nil
	case strip.Slot != theirs && strip.Slot != ours:
		s.reject(from)
		return false, refused("peer %d sent units of slot %d for index %d: its own is %d, ours %d",
			from, strip.Slot, r.id.Index, theirs, ours)
	case r.doubt != nil:
		return s.addDoubted(r, from, strip)
	}
	added, err := r.gather(strip)
	err = s.counted(from, r.id, strip, added, err)
	if added == 0 {
		return false, err
	}
	s.grow(r, strip.EncodedLen())
	if !slices.Contains(r.from, from) {
		r.from = append(r.from, from)
	}
	if r.units.Missing() == 0 {
		if failed := s.decode(r); failed != nil {
			return false, failed
		}
	}
	return r.payload != nil, err
}

// counted counts what came of a peer's strip, and names the peer in the error.
func (s *Store) counted(from uint64, id ecraft.ID, strip ecraft.Strip, added int, err error) error {
	s.counts.Units += uint64(added)
	if err != nil {
		s.reject(from)
		return fmt.Errorf("gossip: peer %d, index %d: %w", from, id.Index, err)
	}
	s.counts.Duplicates += uint64(strip.Count - added)
	return nil
}

// gather puts the units of a strip that are not there yet into the assembly.
func (r *record) gather(strip ecraft.Strip) (added int, err error) {
	return gather(r.h, r.units, &r.have, r.first, strip)
}

// gather puts those units of a strip into an assembly that are not in it, and
// keeps account of what is.
func gather(h *ecraft.Header, units *ecraft.Assembly, have *ecraft.Set, first []uint8, strip ecraft.Strip) (added int, err error) {
	if strip.Slot >= h.Slots || strip.First+strip.Count > h.D {
		return units.Add(strip) // says what is wrong
	}
	for k := strip.First; k < strip.First+strip.Count; k++ {
		if have.Has(h.Unit(strip.Slot, k)) {
			continue
		}
		n, bad := units.Add(strip.Sub(k, 1))
		if bad != nil {
			err = bad
		}
		if n > 0 {
			added++
			have.Add(h.Unit(strip.Slot, k))
		}
	}
	for first != nil && int(first[strip.Slot]) < h.D && have.Has(h.Unit(strip.Slot, int(first[strip.Slot]))) {
		first[strip.Slot]++
	}
	return added, err
}

// missing returns how many units are to be asked for. While it is in doubt who
// sent wrong ones, all that is not from the log is.
func (r *record) missing() int {
	if r.doubt != nil {
		return max(r.h.D-r.doubt.own(), 1)
	}
	return r.units.Missing()
}

// ownHeld returns the first unit of the own slot that is not held.
func (r *record) ownHeld(self uint64) int {
	if slot := r.h.SlotOf(self); slot >= 0 {
		return int(r.first[slot])
	}
	return 0
}

// decode makes the payload, of an entry that has D units. If it comes out wrong,
// the entry is in doubt from now on.
func (s *Store) decode(r *record) error {
	s.counts.Decodes++
	payload, err := r.units.Payload()
	if err == nil {
		s.finish(r, payload)
		return nil
	}
	s.counts.Failed++
	s.counts.Doubted++
	peers := r.from
	s.beginDoubt(r)
	return fmt.Errorf("%w: index %d, from units of peers %v: %w", ErrLied, r.id.Index, peers, err)
}

// finish makes an entry complete, and lets go of its units.
func (s *Store) finish(r *record, payload []byte) {
	*r = record{id: r.id, h: r.h, payload: payload, bytes: r.bytes, pins: r.pins}
	if r.payload == nil {
		r.payload = []byte{}
	}
	s.grow(r, recordBytes+len(payload)-r.bytes)
}
