// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"encoding/binary"
	"hash/crc32"
)

// Strip is a run of units of a slot: First, First+1, ... Each unit has its own checksum, which also
// covers the unit's place, so that a damaged unit costs only this unit. The zero Strip has no
// units.
type Strip struct {
	Slot, First, Count, UnitLen int
	// raw is, for each unit, its bytes and its CRC-32C.
	raw []byte
}

const (
	stripHeaderLen = 12
	crcLen         = 4
)

// zeros pads the last units of a payload.
var zeros [MaxD]byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of a payload, which stands in its header.
func Checksum(payload []byte) uint32 { return crc32.Checksum(payload, castagnoli) }

// unitCRC returns the checksum of unit k of a slot: the CRC-32C of two bytes,
// slot and k, and the unit.
func unitCRC(slot, k int, unit []byte) uint32 {
	return crc32.Update(sumPlace(slot, k), castagnoli, unit)
}

// appendUnit appends unit k of a slot with its checksum. Bytes beyond the end of data are zero.
func appendUnit(dst []byte, slot, k, unitLen int, data []byte) []byte {
	at := len(dst)
	dst = append(dst, data...)
	dst = append(dst, zeros[:unitLen-len(data)]...)
	return binary.LittleEndian.AppendUint32(dst, unitCRC(slot, k, dst[at:]))
}

// Unit returns unit First+i of the slot, which belongs to the strip. If its
// checksum is wrong, the error wraps ErrCorrupt.
func (s Strip) Unit(i int) ([]byte, error) {
	if i < 0 || i >= s.Count {
		return nil, malformed("unit %d of a strip of %d", i, s.Count)
	}
	at := i * (s.UnitLen + crcLen)
	unit := s.raw[at : at+s.UnitLen : at+s.UnitLen]
	if unitCRC(s.Slot, s.First+i, unit) != binary.LittleEndian.Uint32(s.raw[at+s.UnitLen:]) {
		return nil, corrupt("unit %d of slot %d", s.First+i, s.Slot)
	}
	return unit, nil
}

// Verify returns the error of the first unit whose checksum is wrong.
func (s Strip) Verify() error {
	for i := range s.Count {
		if _, err := s.Unit(i); err != nil {
			return err
		}
	}
	return nil
}

// Sub returns the part of the strip with count units of the slot, from first on. The part shares
// the memory of s.
func (s Strip) Sub(first, count int) Strip {
	from := max(first, s.First)
	to := min(first+count, s.First+s.Count)
	if from >= to {
		return Strip{}
	}
	stride := s.UnitLen + crcLen
	return Strip{
		Slot: s.Slot, First: from, Count: to - from, UnitLen: s.UnitLen,
		raw: s.raw[(from-s.First)*stride : (to-s.First)*stride],
	}
}

// Bytes returns the bytes of the units, without checksums.
func (s Strip) Bytes() int { return s.Count * s.UnitLen }

// EncodedLen returns the number of bytes that AppendStrip appends.
func (s Strip) EncodedLen() int { return stripHeaderLen + s.Count*(s.UnitLen+crcLen) }

// AppendStrip appends the encoding of a strip, the same in envelopes and in
// messages.
func AppendStrip(dst []byte, s Strip) []byte {
	return append(appendStripHeader(dst, s.Slot, s.First, s.Count, s.UnitLen), s.raw...)
}

func appendStripHeader(dst []byte, slot, first, count, unitLen int) []byte {
	at := len(dst)
	dst = append(dst, byte(slot), byte(first), byte(count), 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(unitLen))
	return binary.LittleEndian.AppendUint32(dst, Checksum(dst[at:]))
}

// ParseStrip returns the strip at the beginning of data, and the bytes after the strip. The strip
// shares data's memory. Its units are not verified yet.
func ParseStrip(data []byte) (s Strip, rest []byte, err error) {
	if len(data) < stripHeaderLen {
		return Strip{}, nil, malformed("a strip of %d bytes, at least %d", len(data), stripHeaderLen)
	}
	head, body := data[:stripHeaderLen], data[stripHeaderLen:]
	if sum := binary.LittleEndian.Uint32(head[8:]); sum != Checksum(head[:8]) {
		return Strip{}, nil, malformed("CRC %#x of a strip's header is wrong", sum)
	}
	unitLen := binary.LittleEndian.Uint32(head[4:])
	s = Strip{Slot: int(head[0]), First: int(head[1]), Count: int(head[2])}
	switch {
	case head[3] != 0:
		return Strip{}, nil, malformed("byte 3 of a strip is %d, want 0", head[3])
	case s.Count == 0:
		if s.Slot != 0 || s.First != 0 || unitLen != 0 {
			return Strip{}, nil, malformed("an empty strip of slot %d, unit %d, %d bytes", s.Slot, s.First, unitLen)
		}
		return s, body, nil
	case s.Slot >= MaxSlots || s.First+s.Count > MaxD:
		return Strip{}, nil, malformed("units %d+%d of slot %d: %d units at most, %d slots", s.First, s.Count, s.Slot, MaxD, MaxSlots)
	case unitLen == 0 || unitLen > MaxPayload:
		return Strip{}, nil, malformed("units of %d bytes, 1 to %d", unitLen, MaxPayload)
	}
	s.UnitLen = int(unitLen)
	if s.Count > len(body)/(s.UnitLen+crcLen) {
		return Strip{}, nil, malformed("%d units of %d bytes in %d bytes", s.Count, s.UnitLen, len(body))
	}
	size := s.Count * (s.UnitLen + crcLen)
	s.raw = body[:size:size]
	return s, body[size:], nil
}
