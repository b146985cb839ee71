// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"encoding/binary"
	"slices"
)

// The envelope's header, in little endian. The variable part follows the fixed part: members,
// units, riders, and the CRC-32C of the clear prefix and the whole header before the CRC.
const (
	atVersion    = 8
	atKind       = 9
	atPrefixLen  = 10
	atHeaderLen  = 12
	atPayloadLen = 16
	atPayloadCRC = 20
	atEncoder    = 24
	atD          = 32
	atSlots      = 33
	atRiders     = 34
	fixedLen     = 36

	riderLen = 17 // without its totals

	version = 1
)

// magic is the beginning of every envelope, behind the clear prefix.
const magic = "\xc3\x9dWEFT\x8e\xa1"

// IsEnvelope reports whether data, behind a clear prefix of this many bytes, begins with the magic,
// or differs from the magic in at most one byte. No plain payload begins so, because the leader
// puts such payloads into an envelope of kind Whole. So one damaged byte never turns an envelope
// into a plain payload.
func IsEnvelope(data []byte, prefix int) bool {
	if len(data)-prefix < len(magic) {
		return false
	}
	wrong := 0
	for i := range len(magic) {
		if data[prefix+i] != magic[i] {
			wrong++
		}
	}
	return wrong <= 1
}

// Seal appends an entry's Data for node to: the header, the node's assigned units or the payload,
// and the units of riders. The header is valid and c is its codeword, nil for a carrier. riders[i]
// is the codeword of the entry that h.Riders[i] tops up, or nil to leave out its units. The first
// prefix bytes of the payload stand clear in front.
func Seal(dst []byte, h *Header, to uint64, prefix int, c *Codeword, riders []*Codeword) []byte {
	whole := h.Whole(to)
	if size := SealedLen(h, to, prefix, riders); whole && dst == nil {
		// append need not clear the memory for the payload.
		dst = make([]byte, 0, size-h.PayloadLen)
	} else {
		dst = slices.Grow(dst, size)
	}
	dst = appendHeader(dst, h, prefix, c)
	if slot := h.SlotOf(to); slot >= 0 && !whole && h.Units[slot] > 0 {
		dst = c.AppendStrip(dst, slot, 0, int(h.Units[slot]))
	}
	for i := range h.Riders {
		if rc, slot, first, count := rides(h, i, riders, to); count > 0 {
			dst = rc.AppendStrip(dst, slot, first, count)
		} else {
			dst = appendStripHeader(dst, 0, 0, 0, 0)
		}
	}
	if whole {
		dst = append(dst, c.payload...)
	}
	return dst
}

// SealedLen returns the bytes that Seal appends.
func SealedLen(h *Header, to uint64, prefix int, riders []*Codeword) int {
	n := prefix + headerLen(h)
	if h.Whole(to) {
		n += h.PayloadLen
	} else if base := h.BaseOf(to); h.Kind == Coded && base > 0 {
		n += Strip{Count: base, UnitLen: h.UnitLen()}.EncodedLen()
	}
	for i := range h.Riders {
		s := Strip{}
		if rc, _, _, count := rides(h, i, riders, to); count > 0 {
			s = Strip{Count: count, UnitLen: rc.h.UnitLen()}
		}
		n += s.EncodedLen()
	}
	return n
}

// rides returns the units that rider i brings to a node: all above the base
// units of the older entry, whatever other riders brought.
func rides(h *Header, i int, riders []*Codeword, to uint64) (c *Codeword, slot, first, count int) {
	if i >= len(riders) || riders[i] == nil {
		return nil, 0, 0, 0
	}
	c = riders[i]
	slot = c.h.SlotOf(to)
	if slot < 0 || slot >= len(h.Riders[i].Totals) {
		return nil, 0, 0, 0
	}
	first = int(c.h.Units[slot])
	return c, slot, first, min(int(h.Riders[i].Totals[slot]), c.h.D) - first
}

func headerLen(h *Header) int {
	n := fixedLen + 9*h.Slots + crcLen
	for i := range h.Riders {
		n += riderLen + len(h.Riders[i].Totals)
	}
	return n
}

// AppendHeader appends the header alone, as it stands in an envelope without a
// clear prefix. ParseHeader takes it apart.
func AppendHeader(dst []byte, h *Header) []byte { return appendHeader(dst, h, 0, nil) }

// appendHeader appends the clear prefix and the header.
func appendHeader(dst []byte, h *Header, prefix int, c *Codeword) []byte {
	start := len(dst)
	if c != nil {
		dst = append(dst, c.payload[:min(prefix, len(c.payload))]...)
	}
	for len(dst) < start+prefix {
		dst = append(dst, 0)
	}
	dst = append(dst, magic...)
	dst = append(dst, version, byte(h.Kind))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(prefix))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(headerLen(h)))
	dst = appendFields(dst, h)
	return binary.LittleEndian.AppendUint32(dst, Checksum(dst[start:]))
}

// appendFields appends the fields of the header, as in the envelope from the payload's
// length on.
func appendFields(dst []byte, h *Header) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.PayloadLen))
	dst = binary.LittleEndian.AppendUint32(dst, h.PayloadCRC)
	dst = binary.LittleEndian.AppendUint64(dst, h.Encoder)
	dst = append(dst, byte(h.D), byte(h.Slots))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(h.Riders)))
	for _, id := range h.Members {
		dst = binary.LittleEndian.AppendUint64(dst, id)
	}
	dst = append(dst, h.Units...)
	for i := range h.Riders {
		r := &h.Riders[i]
		dst = binary.LittleEndian.AppendUint64(dst, r.Index)
		dst = binary.LittleEndian.AppendUint64(dst, r.Term)
		dst = append(append(dst, byte(len(r.Totals))), r.Totals...)
	}
	return dst
}

// Fingerprint returns a hash of the header's fields. Logs that match at an entry have
// the same fingerprint there.
func (h *Header) Fingerprint() uint64 {
	var buf [256]byte
	const prime = 1099511628211 // FNV-1a
	sum := uint64(14695981039346656037)
	for _, b := range appendFields(append(buf[:0], byte(h.Kind)), h) {
		sum = (sum ^ uint64(b)) * prime
	}
	return sum
}
