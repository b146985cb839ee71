// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"

	"github.com/weftraft/weft/rawnode/session"
)

// places checks the records of a state, one after the other in the order of the database, and
// reports what is wrong as ErrDamaged. It checks each record for itself, the parts against the
// values and uploads that have them, and the members against their sorted sets. It serves the
// sender of a snapshot as well as the receiver.
type places struct {
	parts map[uint64]*owner
	// sets has what has not come by of each sorted set: members, and their bytes.
	sets map[setNumber]*head
	// typed is how many records are of a level above 1.
	typed int64
	// revisions is how many revisions of keys came by.
	revisions int64
	// indexed is the name in secScore of the member that came last.
	indexed []byte
}

func newPlaces() *places {
	return &places{parts: map[uint64]*owner{}, sets: map[setNumber]*head{}}
}

// owner has the parts of one number.
type owner struct {
	upload UploadID
	size   int64
	want   uint64            // parts that have not come by
	sums   *[maxParts]uint32 // of an upload
}

// check looks at a record.
func (p *places) check(sec section, name, value []byte) error {
	switch sec {
	case secData:
		r, err := openRecord(name, value)
		if err == nil && r.kind > kindLarge {
			return p.place(name, r)
		}
		if err != nil || r.large == nil {
			return err
		}
		l := r.large
		return p.own(l.number, &owner{upload: l.upload, size: l.size, want: 1<<partsOf(l.size) - 1})
	case secUpload:
		u, err := decodeUpload(name, value)
		if err != nil {
			return err
		}
		return p.own(u.number, &owner{upload: u.id, size: u.size, want: u.have, sums: &u.sums})
	case secPart:
		return p.part(name, value)
	case secDeadline:
		_, err := decodeDeadline(name, value)
		return err
	case secMember:
		return p.member(name, value)
	case secRevision:
		p.revisions++
		_, err := decodeRevision(name, value)
		return err
	case secSession, secSystem: // looked at by who loads them
		return nil
	}
	return fmt.Errorf("%w: a record of section %d", ErrDamaged, sec)
}

// place notes a hash or a sorted set.
func (p *places) place(key []byte, r record) error {
	p.typed++
	if r.sorted == nil {
		_, err := hashItems(key, r.value)
		return err
	}
	if p.sets[r.sorted.number] != nil {
		return fmt.Errorf("%w: the sorted set %q has the number %x of another", ErrDamaged, key, r.sorted.number)
	}
	p.sets[r.sorted.number] = r.sorted
	return nil
}

// member takes a member off its set.
func (p *places) member(name, value []byte) error {
	score, err := openMember(name, value)
	if err != nil {
		return err
	}
	number, member := setNumber(name), name[numberBytes:]
	h := p.sets[number]
	if h == nil || h.members == 0 || h.bytes < uint64(scored(member)) {
		return fmt.Errorf("%w: the member %x of the sorted set of number %x belongs to nothing", ErrDamaged, member, number)
	}
	h.drop(member)
	p.indexed = number.scoreName(score, member)
	return nil
}

func (p *places) own(number uint64, o *owner) error {
	if other := p.parts[number]; other != nil {
		return fmt.Errorf("%w: uploads %v and %v have the same number %d", ErrDamaged, other.upload, o.upload, number)
	}
	p.parts[number] = o
	return nil
}

func (p *places) part(name, value []byte) error {
	if len(name) != 9 || name[8] >= maxParts {
		return fmt.Errorf("%w: a part has the key %x", ErrDamaged, name)
	}
	number, part := binary.BigEndian.Uint64(name), int(name[8])
	o := p.parts[number]
	if o == nil || o.want&(1<<part) == 0 {
		return fmt.Errorf("%w: part %d of number %d belongs to nothing", ErrDamaged, part, number)
	}
	if _, err := openPart(o.upload, o.size, part, value); err != nil {
		return err
	}
	if o.sums != nil && o.sums[part] != binary.LittleEndian.Uint32(value) {
		return fmt.Errorf("%w: part %d of upload %v is another than its upload says", ErrDamaged, part, o.upload)
	}
	o.want &^= 1 << part
	return nil
}

// complete says whether all parts and members came by.
func (p *places) complete() error {
	for number, h := range p.sets {
		if h.members != 0 || h.bytes != 0 {
			return fmt.Errorf("%w: the sorted set of number %x lacks %d members of %d bytes", ErrDamaged, number, h.members, h.bytes)
		}
	}
	for number, o := range p.parts {
		if o.want != 0 {
			return fmt.Errorf("%w: upload %v (number %d) lacks part %d", ErrDamaged, o.upload, number, bits.TrailingZeros64(o.want))
		}
	}
	return nil
}

// builder collects the tables of a state whose records come by.
type builder struct {
	*places
	tables   *tables
	sessions map[session.ID][]byte
}

func newBuilder(position uint64) *builder {
	b := &builder{places: newPlaces(), tables: newTables(), sessions: map[session.ID][]byte{}}
	b.tables.position = position
	return b
}

// add looks at a record and keeps what the tables need of it. The value may be
// kept.
func (b *builder) add(sec section, name, value []byte) error {
	if err := b.check(sec, name, value); err != nil {
		return err
	}
	switch sec {
	case secData:
		if err := checkKey(name); err != nil {
			return err
		}
		if value[0] == kindLarge {
			return b.addLarge(name, value)
		}
		if n := len(value) - inlineHead; n > MaxInlineBytes {
			return fmt.Errorf("%w: a value of %d bytes in one record, want at most %d", ErrInvalid, n, MaxInlineBytes)
		}
	case secUpload:
		if len(b.tables.uploads.byID) >= maxUploads {
			return fmt.Errorf("%w: %d, want at most that", ErrUploads, maxUploads)
		}
		return b.tables.loadUpload(name, value)
	case secSystem:
		if len(name) == 0 || len(value) == 0 || len(b.tables.system) >= maxSystemKeys || b.tables.systemBytes+len(name)+len(value) > maxSystemBytes {
			return fmt.Errorf("%w: system key %q of %d bytes goes beyond the bounds", ErrInvalid, name, len(value))
		}
		b.tables.setSystem(string(name), value)
	case secDeadline:
		b.tables.deadlines++
		return checkKey(name)
	case secRevision:
		return b.addRevision(name, value)
	case secSession:
		if len(name) != 8 || len(b.sessions) > sessionLimits.Sessions {
			return fmt.Errorf("%w: a session has the key %x, and is one of %d", ErrInvalid, name, len(b.sessions)+1)
		}
		b.sessions[session.ID(binary.BigEndian.Uint64(name))] = value
	}
	return nil
}

func (b *builder) addLarge(name, value []byte) error {
	r, err := openRecord(name, value)
	if err != nil {
		return err
	}
	if r.large.number > b.tables.position {
		return fmt.Errorf("%w: the value of key %q has number %d, the state position %d", ErrInvalid, name, r.large.number, b.tables.position)
	}
	b.tables.large[string(name)] = largeRef{number: r.large.number, size: r.large.size}
	return nil
}

func (b *builder) addRevision(name, value []byte) error {
	r, err := decodeRevision(name, value)
	switch {
	case err != nil:
		return err
	case r > b.tables.position:
		return fmt.Errorf("%w: the revision of key %q is %d, the state's %d", ErrInvalid, name, r, b.tables.position)
	case len(name) == 0:
		b.tables.raised = r
		return nil
	}
	return checkKey(name)
}

// finish returns the tables.
func (b *builder) finish() (*tables, error) {
	if err := b.complete(); err != nil {
		return nil, err
	}
	if b.tables.deadlines > 0 && b.tables.level() == 0 {
		return nil, fmt.Errorf("%w: %d deadlines in a state of level 0", ErrInvalid, b.tables.deadlines)
	}
	if b.typed > 0 && b.tables.level() < 2 {
		return nil, fmt.Errorf("%w: %d hashes and sorted sets in a state of level %d", ErrInvalid, b.typed, b.tables.level())
	}
	if has := b.tables.level() >= LevelOfRevisions; has != (b.tables.raised > 0) || !has && b.revisions > 0 {
		return nil, fmt.Errorf("%w: %d revisions of keys, from %d on, in a state of level %d", ErrInvalid, b.revisions, b.tables.raised, b.tables.level())
	}
	b.tables.sorted = int64(len(b.sets))
	var err error
	if b.tables.sessions, err = session.Load(sessionLimits, maps.All(b.sessions)); err != nil {
		return nil, errors.Join(ErrInvalid, err)
	}
	return b.tables, nil
}
