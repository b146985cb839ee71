// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// ErrDamaged wraps the description of damage in an encoded table.
var ErrDamaged = errors.New("session: the encoded table is damaged")

// The head, under key 0: version, clock, last id. A record, under its id: version, used, last,
// last-low, count; then for each result the distance of its sequence from the previous result's
// sequence (the first: from low), length and value. All numbers but the version are uvarints.
const version = 1

func (t *Table) encodeHead() []byte {
	b := binary.AppendUvarint([]byte{version}, t.clock)
	return binary.AppendUvarint(b, uint64(t.opened))
}

func (r *record) encode() []byte {
	b := make([]byte, 1, 1+4*binary.MaxVarintLen64+r.bytes+6*len(r.kept))
	b[0] = version
	for _, v := range []uint64{r.used, r.last, r.last - r.low, uint64(len(r.kept))} {
		b = binary.AppendUvarint(b, v)
	}
	before := r.low
	for _, k := range r.kept {
		b = binary.AppendUvarint(b, k.sequence-before)
		b = binary.AppendUvarint(b, uint64(len(k.value)))
		b = append(b, k.value...)
		before = k.sequence
	}
	return b
}

// reader takes an encoding apart; after a mistake a reader yields zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	v := slices.Clone(r.b[:n])
	r.b = r.b[n:]
	return v
}

// newReader checks the version.
func newReader(b []byte) (*reader, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: no bytes", ErrDamaged)
	}
	if b[0] != version {
		return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrDamaged, b[0], version)
	}
	return &reader{b: b[1:]}, nil
}

// decodeRecord is the inverse of encode. The record shares no memory with b.
func decodeRecord(id ID, b []byte) (*record, error) {
	in, err := newReader(b)
	if err != nil {
		return nil, fmt.Errorf("session %d: %w", id, err)
	}
	r := &record{id: id, used: in.uvarint(), last: in.uvarint()}
	above, count := in.uvarint(), in.uvarint()
	if above > r.last || count > uint64(len(in.b)) {
		in.bad = true
	}
	r.low = r.last - above
	at := r.low
	for i := uint64(0); i < count && !in.bad; i++ {
		step := in.uvarint()
		in.bad = in.bad || step == 0 || step > r.last-at
		at += step
		r.kept = append(r.kept, result{at, in.bytes(in.uvarint())})
		r.bytes += len(r.kept[len(r.kept)-1].value)
	}
	// The last command applied is the last whose result is kept.
	if in.bad || len(in.b) > 0 || at != r.last || (r.last > 0) != (count > 0) {
		return nil, fmt.Errorf("%w: session %d", ErrDamaged, id)
	}
	return r, nil
}

// Load makes a table from the pairs that Changes or All yielded, in any order and without the
// removed keys. An empty sequence makes an empty table. Limits below the limits of the written
// table take effect as sessions are used.
func Load(limits Limits, stored iter.Seq2[ID, []byte]) (*Table, error) {
	t, err := New(limits)
	if err != nil {
		return nil, err
	}
	var records []*record
	head := false
	for id, value := range stored {
		if id == 0 {
			head = true
			in, err := newReader(value)
			if err != nil {
				return nil, err
			}
			if t.clock, t.opened = in.uvarint(), ID(in.uvarint()); in.bad || len(in.b) > 0 {
				return nil, fmt.Errorf("%w: its head", ErrDamaged)
			}
			continue
		}
		r, err := decodeRecord(id, value)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b *record) int { return cmp.Compare(a.used, b.used) })
	for i, r := range records {
		if !head || r.id > t.opened || r.used > t.clock || t.rows[r.id] != nil || i > 0 && r.used == records[i-1].used {
			return nil, fmt.Errorf("%w: session %d does not fit the head", ErrDamaged, r.id)
		}
		t.rows[r.id] = t.byUse.PushBack(r)
	}
	return t, nil
}
