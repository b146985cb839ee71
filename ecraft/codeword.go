// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// Codeword makes the units of a complete payload. Data units are parts of the payload. Parity units
// are computed at their first use, into memory that comes from a pool and goes back with Free.
//
// Only one goroutine at a time may use a Codeword. The payload must not change before Free.
type Codeword struct {
	h       *Header
	payload []byte
	// parity[u-D] is unit u, or nil: not computed.
	parity [][]byte
	// data are the inputs for the computation of parity.
	data    [][]byte
	buffers []*buffer
	size    int
	// sums are the CRC-32C of the data units, if Sum was called, and shift the factor by which a
	// unit's length multiplies a sum.
	sums  []uint32
	shift uint32
}

var codewords = sync.Pool{New: func() any { return new(Codeword) }}

// NewCodeword returns the codeword of a payload under its header, which is
// valid and the payload's.
func NewCodeword(h *Header, payload []byte) *Codeword {
	c := codewords.Get().(*Codeword)
	c.h, c.payload = h, payload
	n := max(h.D*h.Slots-h.D, 0)
	c.parity = slices.Grow(c.parity[:0], n)[:n]
	clear(c.parity)
	return c
}

// Header returns the header.
func (c *Codeword) Header() *Header { return c.h }

// Payload returns the payload.
func (c *Codeword) Payload() []byte { return c.payload }

// Size returns the bytes of memory that the codeword uses besides the payload.
func (c *Codeword) Size() int { return c.size }

// Free gives the memory back. The codeword must not be used afterwards; sealed envelopes and
// returned strips stay valid.
func (c *Codeword) Free() {
	for _, b := range c.buffers {
		b.free()
	}
	clear(c.buffers)
	clear(c.parity)
	clear(c.data[:cap(c.data)])
	*c = Codeword{parity: c.parity[:0], data: c.data[:0], buffers: c.buffers[:0], sums: c.sums[:0]}
	codewords.Put(c)
}

// Prepare computes, in one pass, the parity units for sending units[slot] units to each slot. A
// slot with D units gets the payload and needs no parity. The call is optional, but a pass for all
// slots is cheaper than a pass for each slot.
func (c *Codeword) Prepare(units []int) {
	var rows Set
	for slot, n := range units[:min(len(units), c.h.Slots)] {
		if n < c.h.D {
			c.lacking(&rows, slot, 0, n)
		}
	}
	c.compute(rows)
}

// lacking adds the units of a slot that are not computed yet.
func (c *Codeword) lacking(rows *Set, slot, first, count int) {
	for k := first; k < first+count; k++ {
		if u := c.h.Unit(slot, k); u >= c.h.D && c.parity[u-c.h.D] == nil {
			rows.Add(u)
		}
	}
}

// dataUnit returns data unit u as far as the payload reaches.
func (c *Codeword) dataUnit(u int) []byte {
	n := c.h.UnitLen()
	return c.payload[min(u*n, len(c.payload)):min((u+1)*n, len(c.payload))]
}

// unit returns unit u, which has been computed, as far as the payload reaches.
func (c *Codeword) unit(u int) []byte {
	if u < c.h.D {
		return c.dataUnit(u)
	}
	return c.parity[u-c.h.D]
}

func (c *Codeword) compute(rows Set) {
	count := rows.Len()
	if count == 0 {
		return
	}
	coder, err := encoderFor(c.h.D, rows)
	if err != nil {
		panic(fmt.Sprintf("ecraft: invariant broken: a coder for D %d: %v", c.h.D, err))
	}
	// Whole blocks are computed; the bytes after a unit's end are not used.
	n, wide := c.h.UnitLen(), c.wide()
	out := c.buffer(count * wide)
	shards := c.dataUnits()
	for u := range rows.all() {
		c.parity[u-c.h.D] = out[:n:n]
		shards = append(shards, out[:wide:wide])
		out = out[wide:]
	}
	if err := coder.code(shards); err != nil {
		panic(fmt.Sprintf("ecraft: invariant broken: D %d, units of %d bytes: %v", c.h.D, n, err))
	}
	clear(shards[c.h.D:])
	c.data = shards[:c.h.D]
}

// wide is the length of a unit in whole blocks.
func (c *Codeword) wide() int { return (c.h.UnitLen() + blockUnit - 1) &^ (blockUnit - 1) }

// dataUnits returns the data units, in whole blocks: a unit reaches into the next unit, and the
// last units, for which the payload is too short, are copied.
func (c *Codeword) dataUnits() [][]byte {
	if len(c.data) != 0 {
		return c.data
	}
	n, wide := c.h.UnitLen(), c.wide()
	inside := 0
	if len(c.payload) >= wide {
		inside = min((len(c.payload)-wide)/n+1, c.h.D)
	}
	padded := c.buffer((c.h.D - inside) * wide)
	for u := range c.h.D {
		if u < inside {
			c.data = append(c.data, c.payload[u*n:u*n+wide:u*n+wide])
			continue
		}
		clear(padded[copy(padded[:wide], c.dataUnit(u)):wide])
		c.data = append(c.data, padded[:wide:wide])
		padded = padded[wide:]
	}
	return c.data
}

// AppendStrip appends the encoding of count units of a slot from first on.
func (c *Codeword) AppendStrip(dst []byte, slot, first, count int) []byte {
	if count <= 0 {
		return appendStripHeader(dst, 0, 0, 0, 0)
	}
	n := c.h.UnitLen()
	dst = slices.Grow(dst, stripHeaderLen+count*(n+crcLen))
	dst = appendStripHeader(dst, slot, first, count, n)
	return c.appendUnits(dst, slot, first, count)
}

func (c *Codeword) appendUnits(dst []byte, slot, first, count int) []byte {
	var rows Set
	c.lacking(&rows, slot, first, count)
	c.compute(rows)
	n := c.h.UnitLen()
	for k := first; k < first+count; k++ {
		u := c.h.Unit(slot, k)
		if u < c.h.D {
			dst = c.appendDataUnit(dst, slot, k, u)
		} else {
			dst = appendUnit(dst, slot, k, n, c.parity[u-c.h.D])
		}
	}
	return dst
}

// Strip returns count units of a slot from first on, in memory of their own.
func (c *Codeword) Strip(slot, first, count int) Strip {
	if count <= 0 {
		return Strip{}
	}
	n := c.h.UnitLen()
	raw := make([]byte, 0, count*(n+crcLen))
	return Strip{Slot: slot, First: first, Count: count, UnitLen: n, raw: c.appendUnits(raw, slot, first, count)}
}

// buffer returns pooled memory, which Free gives back.
func (c *Codeword) buffer(size int) []byte {
	b := newBuffer(size)
	c.buffers = append(c.buffers, b)
	c.size += cap(b.bytes)
	return b.bytes[:size]
}

// buffer is memory from a pool. Sizes grow by a quarter of a power of two, so that at most a fifth
// is wasted.
type buffer struct {
	bytes []byte
	pool  *sync.Pool
}

var buffers [5 * (bits.UintSize + 1)]sync.Pool

func newBuffer(size int) *buffer {
	power := max(bits.Len(uint(size)), 9) // 256 bytes at least
	quarter := 1 << (power - 3)
	quarters := max((size+quarter-1)/quarter, 4) // 4 to 8
	pool := &buffers[5*power+quarters-4]
	if b, ok := pool.Get().(*buffer); ok {
		return b
	}
	return &buffer{bytes: make([]byte, quarters*quarter), pool: pool}
}

func (b *buffer) free() { b.pool.Put(b) }
