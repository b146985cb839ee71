// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// Outgoing is a member's form of an entry, made as the message leaves: the bytes of [Seal], in
// pieces. Data units are parts of the sender's payload and are not copied; parity is computed
// during WriteTo, into memory that Free gives back.
type Outgoing struct {
	head    []byte // clear prefix and header: the same in all forms
	payload []byte
	h       Header
	slot    int
	word    *Codeword // once the entry is written
}

var outgoings = sync.Pool{New: func() any { return new(Outgoing) }}

// NewOutgoing returns the form of node to, made from own, the form of node from, behind a clear
// prefix of this many bytes. The result is nil if own is the form of node to as well: own is no
// envelope, an envelope that is the same for both nodes, or an envelope with riders or made from
// units, which the core has made already.
//
// The Outgoing shares own's memory until Free.
func NewOutgoing(own []byte, prefix int, from, to uint64) *Outgoing {
	if len(own) < prefix+len(magic) || string(own[prefix:prefix+len(magic)]) != magic {
		return nil
	}
	o := outgoings.Get().(*Outgoing)
	body, err := parseHeader(own, prefix, &o.h)
	if err != nil || !o.h.LeavesLate(from, to) || len(body) != o.h.PayloadLen {
		o.Free() // the receiver will refuse the envelope
		return nil
	}
	o.head, o.payload, o.slot = own[:len(own)-len(body)], body, o.h.SlotOf(to)
	return o
}

// LeavesLate reports whether node to's form of the entry differs from the form of node from, and
// can be made from the latter alone.
func (h *Header) LeavesLate(from, to uint64) bool {
	return h.Kind == Coded && len(h.Riders) == 0 && h.Whole(from) && !h.Whole(to)
}

// Len returns the form's length in bytes.
func (o *Outgoing) Len() int {
	if n := int(o.h.Units[o.slot]); n > 0 {
		return len(o.head) + Strip{Count: n, UnitLen: o.h.UnitLen()}.EncodedLen()
	}
	return len(o.head)
}

// Free ends the Outgoing, and the bytes passed to Sink.Refer.
func (o *Outgoing) Free() {
	if o.word != nil {
		o.word.Free()
	}
	*o = Outgoing{}
	outgoings.Put(o)
}

// Sink takes the pieces of an [Outgoing], in order.
type Sink interface {
	// Copy takes a few bytes, which are valid during the call.
	Copy(b []byte)
	// Refer takes many bytes and their checksum. The bytes are valid until the Outgoing is freed.
	Refer(b []byte, sum PieceSum)
}

// PieceSum is the CRC-32C of some bytes, and their factor for the sum of the bytes
// before.
type PieceSum struct{ sum, shift uint32 }

// After returns the CRC-32C of bytes with checksum crc, followed by the piece.
func (p PieceSum) After(crc uint32) uint32 { return sumTimes(p.shift, crc) ^ p.sum }

// WriteTo gives the form to s.
func (o *Outgoing) WriteTo(s Sink) {
	s.Copy(o.head)
	count, n := int(o.h.Units[o.slot]), o.h.UnitLen()
	if count == 0 {
		return
	}
	var buf [stripHeaderLen]byte
	s.Copy(appendStripHeader(buf[:0], o.slot, 0, count, n))
	if o.word == nil {
		o.word = NewCodeword(&o.h, o.payload)
	}
	var rows Set
	o.word.lacking(&rows, o.slot, 0, count)
	o.word.compute(rows)
	shift := sumShift(n)
	for k := range count {
		unit := o.word.unit(o.h.Unit(o.slot, k))
		piece := PieceSum{sum: Checksum(unit), shift: shift}
		whole := piece.sum
		if pad := zeros[:n-len(unit)]; len(pad) > 0 {
			piece.shift, whole = sumShift(len(unit)), crc32.Update(whole, castagnoli, pad)
			s.Refer(unit, piece)
			s.Copy(pad)
		} else {
			s.Refer(unit, piece)
		}
		s.Copy(binary.LittleEndian.AppendUint32(buf[:0], sumTimes(shift, sumPlace(o.slot, k))^whole))
	}
}

// Append appends the form.
func (o *Outgoing) Append(dst []byte) []byte {
	a := appender(dst)
	o.WriteTo(&a)
	return a
}

type appender []byte

func (a *appender) Copy(b []byte)              { *a = append(*a, b...) }
func (a *appender) Refer(b []byte, _ PieceSum) { *a = append(*a, b...) }
