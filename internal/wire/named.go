// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// sumLen is the length of a checksum; minName and maxName bound the length of a name.
const (
	sumLen  = 8
	minName = 4 + sumLen
	maxName = 4*10 + sumLen
)

func (b Named) kind() Kind {
	if b.Run.Count > 0 {
		return KindRun
	}
	return KindNamed
}

func (b Named) class() Class { return b.Raft.class() }

func (b Named) size() int { return 2*10 + maxName*(1+len(b.Names)) + b.Raft.size() }

func (b Named) encode(e *encoder) {
	e.uvarint(b.Number)
	if r := b.Run; r.Count > 0 {
		e.uvarint(r.Count)
		e.uvarint(r.Relay)
		e.uvarint(r.Length)
		e.arena = binary.LittleEndian.AppendUint64(e.arena, r.Sum)
		b.Raft.encode(e)
		return
	}
	e.uvarint(uint64(len(b.Names)))
	for _, n := range b.Names {
		e.uvarint(n.Entry)
		e.uvarint(n.Boot | n.Relay) // one of them; a batch's sequence is not 0
		e.uvarint(n.Sequence)
		e.uvarint(n.Length)
		e.arena = binary.LittleEndian.AppendUint64(e.arena, n.Sum)
	}
	b.Raft.encode(e)
}

func decodeNamed(d *decoder) Named {
	b := Named{Number: d.uvarint()}
	count := d.uvarint()
	if count == 0 || count > min(MaxEntries, uint64(len(d.b)/minName)) {
		d.fail("%d names, want 1 to %d, and at least %d bytes for each", count, MaxEntries, minName)
		return Named{}
	}
	b.Names = make([]Name, count)
	for i := range b.Names {
		n := Name{Entry: d.uvarint(), Boot: d.uvarint(), Sequence: d.uvarint(), Length: d.uvarint()}
		if n.Sequence == 0 {
			n.Boot, n.Relay = 0, n.Boot
		}
		if n.Length == 0 || n.Length > MaxFrame {
			d.fail("the name of %d bytes, want 1 to %d", n.Length, MaxFrame)
		}
		n.Sum = d.sum()
		b.Names[i] = n
	}
	b.Raft = d.proto(d.rest())
	return b
}

func (d *decoder) sum() uint64 {
	if len(d.b) < sumLen {
		d.fail("a checksum is cut off")
		return 0
	}
	v := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[sumLen:]
	return v
}

func decodeRun(d *decoder) Named {
	b := Named{Number: d.uvarint(), Run: Run{Count: d.uvarint(), Relay: d.uvarint(), Length: d.uvarint(), Sum: d.sum()}}
	if r := b.Run; r.Count == 0 || r.Count > MaxRun || r.Relay == 0 || r.Length == 0 || r.Length > MaxFrame {
		d.fail("a run of %d entries and %d bytes at node %d, want 1 to %d entries, and 1 to %d bytes at a node", r.Count, r.Length, r.Relay, MaxRun, MaxFrame)
		return Named{}
	}
	b.Raft = d.proto(d.rest())
	return b
}

func (b Fill) size() int {
	n := 3 * 10
	for _, data := range b.Data {
		n += 10 + len(data)
	}
	return n
}

func (Lack) size() int { return 2 * 10 }

func (b Lack) encode(e *encoder) {
	e.uvarint(b.Term)
	e.uvarint(b.Number)
}

func (b Fill) encode(e *encoder) {
	e.uvarint(b.Term)
	e.uvarint(b.Number)
	e.uvarint(uint64(len(b.Data)))
	for _, data := range b.Data {
		e.bytes(data)
	}
}

func (b Want) size() int { return 3*10 + 2*10*len(b.Entries) }

// encode writes an entry as the distance to the index before, and as the term, which is that of the message mostly.
func (b Want) encode(e *encoder) {
	e.uvarint(b.Term)
	e.uvarint(b.Number)
	e.uvarint(uint64(len(b.Entries)))
	before := uint64(0)
	for _, at := range b.Entries {
		e.uvarint(at.Index - before)
		e.uvarint(b.Term - at.Term)
		before = at.Index
	}
}

func decodeWant(d *decoder) Want {
	b := Want{Term: d.uvarint(), Number: d.uvarint()}
	count := d.uvarint()
	if count == 0 || count > min(MaxEntries, uint64(len(d.b)/2)) {
		d.fail("%d entries wanted, want 1 to %d, and at least 2 bytes for each", count, MaxEntries)
		return Want{}
	}
	b.Entries = make([]EntryAt, count)
	before := uint64(0)
	for i := range b.Entries {
		at := EntryAt{Index: before + d.uvarint(), Term: b.Term - d.uvarint()}
		if at.Index <= before {
			d.fail("entry %d wanted behind entry %d", at.Index, before)
			return Want{}
		}
		b.Entries[i], before = at, at.Index
	}
	return b
}

func decodeFill(d *decoder) Fill {
	b := Fill{Term: d.uvarint(), Number: d.uvarint()}
	count := d.uvarint()
	if count > min(MaxEntries, uint64(len(d.b))) {
		d.fail("the data of %d entries, want at most %d, and a byte for each", count, MaxEntries)
		return Fill{}
	}
	b.Data = make([][]byte, count)
	for i := range b.Data {
		b.Data[i] = d.bytes()
	}
	if count == 0 {
		b.Data = nil
	}
	return b
}
