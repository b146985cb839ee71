// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"slices"
	"sync"
)

// Assembly gathers units of a coded entry until there are enough to decode. Only one goroutine at a
// time may use an Assembly.
type Assembly struct {
	h     *Header
	units [][]byte // by unit of the codeword; nil: not held
	count int
}

var assemblies = sync.Pool{New: func() any { return new(Assembly) }}

// NewAssembly returns an Assembly without units. The header is valid and of
// kind Coded.
func NewAssembly(h *Header) *Assembly {
	a := assemblies.Get().(*Assembly)
	a.h = h
	a.units = slices.Grow(a.units[:0], h.D*h.Slots)[:h.D*h.Slots]
	return a
}

// Free lets the memory be used for another Assembly. This Assembly must not be used afterwards. A
// forgotten call costs an allocation.
func (a *Assembly) Free() {
	clear(a.units)
	*a = Assembly{units: a.units[:0]}
	assemblies.Put(a)
}

// Add takes in the new units of a strip, and returns their number. The Assembly keeps the strip's
// memory. Units with a wrong checksum are left out, with an error that wraps ErrCorrupt; a strip of
// another layout is refused with an error that wraps ErrMalformed.
func (a *Assembly) Add(s Strip) (added int, err error) {
	if s.Count == 0 {
		return 0, nil
	}
	if s.Slot < 0 || s.Slot >= a.h.Slots || s.First < 0 || s.First+s.Count > a.h.D || s.UnitLen != a.h.UnitLen() {
		return 0, malformed("units %d+%d of slot %d, %d bytes each, of an entry with %d slots, D %d, %d bytes each",
			s.First, s.Count, s.Slot, s.UnitLen, a.h.Slots, a.h.D, a.h.UnitLen())
	}
	for i := range s.Count {
		u := a.h.Unit(s.Slot, s.First+i)
		if a.units[u] != nil {
			continue
		}
		unit, bad := s.Unit(i)
		if bad != nil {
			err = bad
			continue
		}
		a.units[u] = unit
		a.count++
		added++
	}
	return added, err
}

// Missing returns how many units are lacking to decode.
func (a *Assembly) Missing() int { return max(a.h.D-a.count, 0) }

// Has reports whether unit k of a slot is held.
func (a *Assembly) Has(slot, k int) bool { return a.units[a.h.Unit(slot, k)] != nil }

// Bytes returns the bytes of the units held.
func (a *Assembly) Bytes() int { return a.count * a.h.UnitLen() }

// Payload decodes and checks the payload, in newly allocated memory. The error is ErrIncomplete if
// units are missing, and wraps ErrCorrupt if the payload does not match the header.
func (a *Assembly) Payload() ([]byte, error) { return a.AppendPayload(nil) }

// AppendPayload is Payload into memory of the caller's.
func (a *Assembly) AppendPayload(dst []byte) ([]byte, error) {
	if a.Missing() > 0 || a.h.D == 0 {
		return dst, ErrIncomplete
	}
	d, n := a.h.D, a.h.UnitLen()
	at := len(dst)
	dst = slices.Grow(dst, d*n)
	out := dst[at : at+d*n : at+d*n]
	if err := a.decode(out); err != nil {
		return dst, err
	}
	out = out[:a.h.PayloadLen:a.h.PayloadLen]
	if sum := Checksum(out); sum != a.h.PayloadCRC {
		return dst, corrupt("CRC %#x of a decoded payload, the header says %#x", sum, a.h.PayloadCRC)
	}
	return dst[: at+a.h.PayloadLen : at+a.h.PayloadLen], nil
}

// decode writes the data units one after another: held data units are copied, missing ones are
// computed from the first D held units, data units before parity.
func (a *Assembly) decode(out []byte) error {
	d, n := a.h.D, a.h.UnitLen()
	var in Set
	var buf [32][]byte
	shards := buf[:0]
	missing := false
	for u, unit := range a.units {
		if len(shards) == d {
			break
		}
		if unit == nil {
			missing = missing || u < d
			continue
		}
		in.Add(u)
		shards = append(shards, unit)
		if u < d {
			copy(out[u*n:], unit)
		}
	}
	if !missing {
		return nil
	}
	for u := range d {
		if !in.Has(u) {
			shards = append(shards, out[u*n:(u+1)*n:(u+1)*n])
		}
	}
	coder, err := decoderFor(d, in)
	if err != nil {
		return err
	}
	return coder.code(shards)
}
