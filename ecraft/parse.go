// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Envelope is the Data of an entry as a node stores the entry. All fields except the Header share
// the memory of Data.
type Envelope struct {
	Header
	Prefix  []byte // the clear prefix
	Payload []byte // if the node's envelope has the payload; its CRC is right
	Own     Strip  // the units that the header assigns to the node
	// RiderUnits are, for each rider, its units for the node. An empty strip: left out by the
	// sender, or the node is not raised.
	RiderUnits []Strip
}

// Parse takes apart the Data of an entry that node stores, with a clear prefix of this many bytes.
// The body must have exactly the form that the header demands for node. Parse checks the CRC of a
// payload; the CRCs of units are checked at the use of the units.
//
// Errors wrap ErrMalformed; errors of payloads with a wrong CRC also wrap ErrCorrupt.
func Parse(data []byte, prefix int, node uint64) (*Envelope, error) {
	e := new(Envelope)
	body, err := parseHeader(data, prefix, &e.Header)
	if err != nil {
		return nil, err
	}
	if body, err = e.parseUnits(body, node); err != nil {
		return nil, err
	}
	if !e.Whole(node) {
		if len(body) != 0 {
			return nil, malformed("%d bytes behind the units of node %d", len(body), node)
		}
		return e.withPrefix(data[:prefix:prefix])
	}
	if len(body) != e.PayloadLen {
		return nil, malformed("a payload of %d bytes, the header says %d", len(body), e.PayloadLen)
	}
	if sum := Checksum(body); sum != e.PayloadCRC {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, corrupt("CRC %#x of a payload, the header says %#x", sum, e.PayloadCRC))
	}
	e.Payload = body[:len(body):len(body)]
	return e.withPrefix(data[:prefix:prefix])
}

// ParseHeader returns the header of an entry's Data, and the body behind the header, which is not
// checked. The header shares no memory with data.
func ParseHeader(data []byte, prefix int) (h *Header, body []byte, err error) {
	h = new(Header)
	if body, err = parseHeader(data, prefix, h); err != nil {
		return nil, nil, err
	}
	return h, body, nil
}

// parseUnits reads the node's own units and the units of riders, and returns the bytes after them.
func (e *Envelope) parseUnits(body []byte, node uint64) (rest []byte, err error) {
	base := e.BaseOf(node)
	if e.Kind == Coded && base > 0 && !e.Whole(node) {
		if e.Own, body, err = ParseStrip(body); err != nil {
			return nil, err
		}
		if s := e.Own; s.Slot != e.SlotOf(node) || s.First != 0 || s.Count != base || s.UnitLen != e.UnitLen() {
			return nil, malformed("units %d+%d of slot %d, %d bytes each, where node %d has %d of slot %d, %d bytes each",
				s.First, s.Count, s.Slot, s.UnitLen, node, base, e.SlotOf(node), e.UnitLen())
		}
	}
	if len(e.Riders) > 0 {
		e.RiderUnits = make([]Strip, len(e.Riders))
	}
	for i := range e.Riders {
		s, rest, err := ParseStrip(body)
		if err != nil {
			return nil, err
		}
		totals := e.Riders[i].Totals
		if s.Count > 0 && (s.Slot >= len(totals) || s.First+s.Count != int(totals[s.Slot])) {
			return nil, malformed("rider %d with units %d+%d of slot %d; totals are %v", i, s.First, s.Count, s.Slot, totals)
		}
		e.RiderUnits[i], body = s, rest
	}
	return body, nil
}

// withPrefix takes the clear prefix and checks the prefix as far as this node can: against the
// payload if the node has the payload, and for zeros after the payload's end.
func (e *Envelope) withPrefix(prefix []byte) (*Envelope, error) {
	n := min(len(prefix), len(e.Payload))
	if !bytes.Equal(prefix[:n], e.Payload[:n]) {
		return nil, malformed("a clear prefix of %d bytes that is not the payload's", len(prefix))
	}
	for _, b := range prefix[min(len(prefix), e.PayloadLen):] {
		if b != 0 {
			return nil, malformed("a clear prefix of %d bytes goes on behind a payload of %d bytes", len(prefix), e.PayloadLen)
		}
	}
	e.Prefix = prefix
	return e, nil
}

// parseHeader fills h, and returns the body.
func parseHeader(data []byte, prefix int, h *Header) (body []byte, err error) {
	if prefix < 0 || prefix > MaxPrefix {
		return nil, malformed("a clear prefix of %d bytes, 0 to %d", prefix, MaxPrefix)
	}
	if len(data) < prefix+fixedLen+crcLen {
		return nil, malformed("an envelope of %d bytes, at least %d", len(data), prefix+fixedLen+crcLen)
	}
	env := data[prefix:]
	if string(env[:len(magic)]) != magic {
		return nil, malformed("an envelope begins with %x, want %x", env[:len(magic)], magic)
	}
	if v := env[atVersion]; v != version {
		return nil, malformed("an envelope of version %d, want %d", v, version)
	}
	n := uint64(binary.LittleEndian.Uint32(env[atHeaderLen:]))
	if n < fixedLen+crcLen || n > uint64(len(env)) {
		return nil, malformed("a header of %d bytes in %d", n, len(env))
	}
	end := int(n) - crcLen
	if sum := binary.LittleEndian.Uint32(env[end:]); sum != Checksum(data[:prefix+end]) {
		return nil, malformed("CRC %#x of a header is wrong", sum)
	}
	if p := binary.LittleEndian.Uint16(env[atPrefixLen:]); int(p) != prefix {
		return nil, malformed("an envelope with a clear prefix of %d bytes, want %d", p, prefix)
	}
	if err := h.parseFields(env[:end]); err != nil {
		return nil, err
	}
	return env[n:], h.Validate()
}

// parseFields reads a header that ends at the beginning of its CRC.
func (h *Header) parseFields(env []byte) error {
	slots, riders := int(env[atSlots]), int(binary.LittleEndian.Uint16(env[atRiders:]))
	rest := env[fixedLen:]
	if len(rest) < 9*slots+riders*riderLen || riders > MaxRiders {
		return malformed("%d slots and %d riders in %d bytes, at most %d riders", slots, riders, len(rest), MaxRiders)
	}
	payloadLen := binary.LittleEndian.Uint32(env[atPayloadLen:])
	if payloadLen > MaxPayload {
		return malformed("a payload of %d bytes, at most %d", payloadLen, MaxPayload)
	}
	h.Kind = Kind(env[atKind])
	h.PayloadLen = int(payloadLen)
	h.PayloadCRC = binary.LittleEndian.Uint32(env[atPayloadCRC:])
	h.Encoder = binary.LittleEndian.Uint64(env[atEncoder:])
	h.Layout = Layout{D: int(env[atD]), Slots: slots}
	// A single allocation for all counts of units in a header.
	counts := make([]uint8, 0, len(rest)-8*slots-riders*riderLen)
	if slots > 0 {
		h.Members = make([]uint64, slots)
		for i := range h.Members {
			h.Members[i] = binary.LittleEndian.Uint64(rest[8*i:])
		}
		h.Units, counts = take(counts, rest[8*slots:9*slots])
	}
	if rest = rest[9*slots:]; riders > 0 {
		h.Riders = make([]Rider, riders)
	}
	for i := range h.Riders {
		if len(rest) < riderLen || len(rest) < riderLen+int(rest[riderLen-1]) {
			return malformed("rider %d of %d ends behind the header", i, riders)
		}
		r, n := &h.Riders[i], riderLen+int(rest[riderLen-1])
		r.Index, r.Term = binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])
		r.Totals, counts = take(counts, rest[riderLen:n])
		rest = rest[n:]
	}
	if len(rest) != 0 {
		return malformed("%d bytes behind the last rider", len(rest))
	}
	return nil
}

// take returns a copy of src in memory after counts, and counts extended by the copy.
func take(counts, src []uint8) (taken, all []uint8) {
	at := len(counts)
	counts = append(counts, src...)
	return counts[at:len(counts):len(counts)], counts
}
