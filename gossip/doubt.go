// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// When a payload comes out wrong, somebody sent units that are wrong although
// their checksums are right. Which ones cannot be seen. So what came from peers
// is dropped and asked for again, and this time the units of each peer are kept
// apart. Whatever a peer sends is tried alone, then with each other peer's, with
// each two others', and so on: as soon as honest peers have sent enough, one of
// the trials is theirs alone and succeeds, and shows who lied. The own units,
// from the log, count as one more peer.
//
// The work is bounded: so many peers, so many trials for an entry. Then its payload
// can only come with a snapshot, or when the doubt is forgiven.
const (
	maxParts  = 8
	maxTrials = 64
)

// doubt is the state of an entry whose payload came out wrong.
type doubt struct {
	parts    []part // the first is of the log, and may be empty
	ownWrong bool   // units from the log alone made a wrong payload
	trials   int
	liars    []uint64 // found out
}

// part is what one peer sent, or what the log has.
type part struct {
	from   uint64
	strips []ecraft.Strip
	have   ecraft.Set
}

func (d *doubt) own() int { return d.parts[0].have.Len() }

func (p part) bytes() (n int) {
	for _, strip := range p.strips {
		n += strip.EncodedLen()
	}
	return n
}

// beginDoubt drops all units but those from the log. These too, if the payload
// was made of them alone.
func (s *Store) beginDoubt(r *record) {
	own := r.own
	d := &doubt{parts: []part{{from: s.self}}, ownWrong: len(r.from) == 0}
	*r = record{id: r.id, h: r.h, first: make([]uint8, r.h.Slots), doubt: d, bytes: r.bytes, pins: r.pins}
	s.grow(r, recordBytes+unitsBytes(r.h)-r.bytes)
	for _, strip := range own {
		if !d.ownWrong {
			_, _ = s.addPart(r, 0, strip) // bad units are left out
		}
	}
}

// Forgive ends the doubt in an entry: what peers sent is dropped, and what they
// send from now on counts as if nobody had lied. It is for who asks all of them
// anew, and must find out whether honest answers restore the entry. Units from the
// log that made a wrong payload alone stay in doubt.
func (s *Store) Forgive(id ecraft.ID) {
	if r := s.lookup(id); r != nil {
		s.forgive(r)
	}
}

func (s *Store) forgive(r *record) {
	if r.doubt == nil || r.doubt.ownWrong {
		return
	}
	own := r.doubt.parts[0].strips
	*r = record{id: r.id, h: r.h, units: ecraft.NewAssembly(r.h), first: make([]uint8, r.h.Slots), bytes: r.bytes, pins: r.pins}
	s.grow(r, recordBytes+unitsBytes(r.h)-r.bytes)
	for _, strip := range own {
		s.addOwn(r, strip)
	}
}

// ForgiveAll ends the doubt in all entries, as Forgive does. It is for now and then:
// what a peer sent hides what it sends later, and the trials end some time; so one
// that has ceased to lie, or whose messages are damaged no more, gets another chance.
func (s *Store) ForgiveAll() {
	for _, r := range s.entries {
		s.forgive(r)
	}
}

// addDoubted takes in units of a peer, for an entry in doubt, and tries what can
// be made of them.
func (s *Store) addDoubted(r *record, from uint64, strip ecraft.Strip) (complete bool, err error) {
	d := r.doubt
	at := slices.IndexFunc(d.parts[1:], func(p part) bool { return p.from == from }) + 1
	if d.trials >= maxTrials || at == 0 && len(d.parts) == maxParts {
		s.counts.Duplicates += uint64(strip.Count)
		return false, nil
	}
	if at == 0 {
		at = len(d.parts)
		d.parts = append(d.parts, part{from: from})
	}
	added, err := s.addPart(r, at, strip)
	err = s.counted(from, r.id, strip, added, err)
	if r.payload != nil && slices.Contains(d.liars, from) {
		err = fmt.Errorf("%w: peer %d, index %d: units that are not the payload's", ErrLied, from, r.id.Index)
	}
	return r.payload != nil, err
}

// addPart adds units to a part and tries what can be made of them.
func (s *Store) addPart(r *record, at int, strip ecraft.Strip) (added int, err error) {
	d := r.doubt
	p, first := &d.parts[at], []uint8(nil)
	if at == 0 {
		first = r.first
	}
	added, err = gather(r.h, ecraft.NewAssembly(r.h), &p.have, first, strip)
	if added == 0 {
		return 0, err
	}
	p.strips = append(p.strips, strip)
	s.grow(r, strip.EncodedLen())
	if payload := s.tryParts(r, at); payload != nil {
		s.convict(r, payload)
		s.finish(r, payload)
	} else if d.trials >= maxTrials { // what peers sent is of no use any more
		for _, p := range d.parts[1:] {
			s.grow(r, -p.bytes())
		}
		d.parts = slices.Clone(d.parts[:1])
	}
	return added, err
}

// tryParts tries all sets of peers with the one at a position, small sets first.
func (s *Store) tryParts(r *record, at int) []byte {
	d := r.doubt
	for size := 1; size <= len(d.parts); size++ {
		for set := uint(1); set < 1<<len(d.parts); set++ {
			if set&(1<<at) == 0 || bits.OnesCount(set) != size || d.trials >= maxTrials && set != 1 {
				continue // those of the log alone are tried whatever the work: that happens once
			}
			if payload := s.try(r, set); payload != nil {
				return payload
			}
		}
	}
	return nil
}

// try decodes the units of a set of peers, if they are enough.
func (s *Store) try(r *record, set uint) []byte {
	var have ecraft.Set
	for i, p := range r.doubt.parts {
		if set&(1<<i) != 0 {
			have = have.Union(p.have)
		}
	}
	if have.Len() < r.h.D {
		return nil
	}
	r.doubt.trials++
	s.counts.Decodes++
	units := ecraft.NewAssembly(r.h)
	for i, p := range r.doubt.parts {
		for _, strip := range p.strips {
			if set&(1<<i) != 0 {
				_, _ = units.Add(strip) // bad units are left out
			}
		}
	}
	payload, err := units.Payload()
	if err != nil {
		s.counts.Failed++
		return nil
	}
	return payload
}

// convict counts the peers whose units are not those of the payload.
func (s *Store) convict(r *record, payload []byte) {
	c := ecraft.NewCodeword(r.h, payload)
	defer c.Free()
	for _, p := range r.doubt.parts[1:] {
		if slices.ContainsFunc(p.strips, func(strip ecraft.Strip) bool { return !truthful(c, strip) }) {
			r.doubt.liars = append(r.doubt.liars, p.from)
			s.reject(p.from)
		}
	}
}

// truthful reports whether the units of a strip, as far as their checksums are
// right, are those of a codeword.
func truthful(c *ecraft.Codeword, strip ecraft.Strip) bool {
	right := c.Strip(strip.Slot, strip.First, strip.Count)
	for i := range strip.Count {
		is, bad := strip.Unit(i)
		want, _ := right.Unit(i) // just made
		if bad == nil && !bytes.Equal(is, want) {
			return false
		}
	}
	return true
}
