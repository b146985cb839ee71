// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"hash/crc32"
	"net"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
)

// referBytes is the length from which a payload is referred to rather than
// copied: below, one more buffer in a writev costs more than the copy.
const referBytes = 4 << 10

// encoder builds the bytes of a frame: small things in an arena, large ones by
// reference, in between.
type encoder struct {
	arena []byte
	cuts  []cut
	refer int // bytes in cuts
	// outgoing are referred to by cuts, beside messages.
	outgoing []*ecraft.Outgoing
}

// cut is a payload that stands behind the first at bytes of the arena.
type cut struct {
	at   int
	data []byte
	sum  ecraft.PieceSum // if it is summed
	// summed says that the checksum is known already.
	summed bool
}

func (e *encoder) reset() {
	clear(e.cuts)
	for _, o := range e.outgoing {
		o.Free()
	}
	clear(e.outgoing)
	*e = encoder{arena: append(e.arena[:0], make([]byte, HeaderLen)...), cuts: e.cuts[:0], outgoing: e.outgoing[:0]}
}

func (e *encoder) len() int { return len(e.arena) + e.refer }

func (e *encoder) byte(b byte)      { e.arena = append(e.arena, b) }
func (e *encoder) uvarint(v uint64) { e.arena = binary.AppendUvarint(e.arena, v) }
func (e *encoder) bool(b bool)      { e.uvarint(protowire.EncodeBool(b)) }

// tail appends bytes without their length.
func (e *encoder) tail(b []byte) { e.cut(cut{data: b}) }

// Copy implements [ecraft.Sink].
func (e *encoder) Copy(b []byte) { e.arena = append(e.arena, b...) }

// Refer implements [ecraft.Sink].
func (e *encoder) Refer(b []byte, sum ecraft.PieceSum) {
	e.cut(cut{data: b, sum: sum, summed: true})
}

func (e *encoder) cut(c cut) {
	if len(c.data) < referBytes {
		e.Copy(c.data)
		return
	}
	c.at = len(e.arena)
	e.cuts = append(e.cuts, c)
	e.refer += len(c.data)
}

func (e *encoder) bytes(b []byte) {
	e.uvarint(uint64(len(b)))
	e.tail(b)
}

func (e *encoder) text(s string) {
	if len(s) > maxReasonLen {
		s = s[:maxReasonLen]
	}
	e.bytes([]byte(s))
}

// seal returns the whole as buffers, and the checksum of all behind the header.
func (e *encoder) seal(bufs net.Buffers) (net.Buffers, uint32) {
	var crc uint32
	from := 0
	arena := func(to int) {
		if to > from {
			bufs = append(bufs, e.arena[from:to])
			crc = crc32.Update(crc, castagnoli, e.arena[max(from, HeaderLen):max(to, HeaderLen)])
		}
		from = to
	}
	for _, c := range e.cuts {
		arena(c.at)
		bufs = append(bufs, c.data)
		if c.summed {
			crc = c.sum.After(crc)
		} else {
			crc = crc32.Update(crc, castagnoli, c.data)
		}
	}
	arena(len(e.arena))
	return bufs, crc
}

// joined returns the whole behind the room for a header as one piece.
func (e *encoder) joined() []byte {
	b, from := make([]byte, 0, e.len()-HeaderLen), HeaderLen
	for _, c := range e.cuts {
		b = append(append(b, e.arena[from:c.at]...), c.data...)
		from = c.at
	}
	return append(b, e.arena[from:]...)
}

// AppendMessage adds a message to the frame.
func (f *Frame) AppendMessage(m Message) {
	if len(f.enc.arena) == 0 {
		f.enc.reset()
	}
	e := &f.enc
	e.byte(byte(m.Kind()))
	e.uvarint(m.Group)
	e.uvarint(m.From)
	e.uvarint(m.To)
	// The length stands in front and is known behind: leave room for four
	// bytes of uvarint, always written in full.
	at := len(e.arena)
	e.arena = append(e.arena, 0, 0, 0, 0)
	before := e.len()
	m.Body.encode(e)
	n := e.len() - before
	for i := range 3 {
		e.arena[at+i] = byte(n>>(7*i)) | 0x80
	}
	e.arena[at+3] = byte(n >> 21)
}

// maxBody is the limit of the four bytes.
const maxBody = 1<<28 - 1

// The maximal sizes of the fixed fields of a Raft message and of an entry, with tags,
// and with the lengths of the parts that have one.
const (
	raftOverhead  = 8*11 + 2*3 + 6
	entryOverhead = 6 + 3 + 2*11 + 6
)

// size is a bound from above, because each queue asks for the size, and the exact size
// would cost a walk by reflection each time.
func (b Raft) size() int {
	m := b.Message
	n := raftOverhead + digestLen - b.Saves + len(m.GetContext()) + len(m.ProtoReflect().GetUnknown())
	if b.Settings != 0 {
		n += digestLen
	}
	for _, e := range m.GetEntries() {
		n += entryOverhead + len(e.GetData()) + len(e.ProtoReflect().GetUnknown())
	}
	if m.Snapshot != nil {
		n += 6 + proto.Size(m.Snapshot)
	}
	for _, r := range m.GetResponses() {
		n += 6 + proto.Size(r)
	}
	return n
}
