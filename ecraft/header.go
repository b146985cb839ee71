// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"fmt"
	"slices"
)

// Bounds of the values in an envelope.
const (
	MaxSlots   = 255     // members except the leader
	MaxRiders  = 1024    // entries topped up by a single entry
	MaxPayload = 1 << 30 // bytes of a payload
	MaxPrefix  = 4096    // bytes of a clear prefix
)

// Kind is the kind of an envelope's content.
type Kind uint8

// The kinds of an envelope.
const (
	// Whole is a payload that every member stores whole. The payload has an envelope because riders
	// travel with the payload, or because the bare payload would pass for an envelope.
	Whole Kind = iota + 1
	// Coded is a payload of which members hold units.
	Coded
	// Carrier has riders and no payload. Hosts see an empty entry.
	Carrier
)

// String returns the name of the kind.
func (k Kind) String() string {
	switch k {
	case Whole:
		return "whole"
	case Coded:
		return "coded"
	case Carrier:
		return "carrier"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Header is the part of an envelope that is the same on every node, and fixes each member's units
// of the entry.
type Header struct {
	Kind       Kind
	PayloadLen int
	PayloadCRC uint32   // CRC-32C of the payload
	Layout              // of a Coded payload
	Encoder    uint64   // node id of the leader that made the entry and holds the payload
	Members    []uint64 // node id per slot
	Units      []uint8  // units assigned per slot, 0..D; D stands for the whole payload
	Riders     []Rider  // in ascending order of index, all below the entry's own
}

// Rider tops up an older entry: from the entry with the rider on, a slot holds the slot's total of
// units. Slots are the slots of the older entry's header. 0 means not raised.
type Rider struct {
	ID
	Totals []uint8
}

// SlotOf returns the slot of a node, or -1 for the encoder, and for a member that came later.
func (h *Header) SlotOf(node uint64) int { return slices.Index(h.Members, node) }

// BaseOf returns the number of units held by a node that stores the entry, without riders: D for a
// node without a slot.
func (h *Header) BaseOf(node uint64) int {
	if slot := h.SlotOf(node); slot >= 0 {
		return int(h.Units[slot])
	}
	return h.D
}

// UnitLen returns the bytes of a unit.
func (h *Header) UnitLen() int {
	if h.D == 0 {
		return 0
	}
	return (h.PayloadLen + h.D - 1) / h.D
}

// Whole reports whether the envelope of a node has the whole payload. All such envelopes of an
// entry are the same, unless the entry has riders.
func (h *Header) Whole(node uint64) bool {
	return h.Kind == Whole || h.Kind == Coded && h.BaseOf(node) == h.D
}

// IsOf reports whether the header belongs to a payload.
func (h *Header) IsOf(payload []byte) bool {
	return len(payload) == h.PayloadLen && Checksum(payload) == h.PayloadCRC
}

// Clone returns a copy that shares no memory with h.
func (h *Header) Clone() *Header {
	c := *h
	c.Members, c.Units, c.Riders = slices.Clone(h.Members), slices.Clone(h.Units), slices.Clone(h.Riders)
	for i := range c.Riders {
		c.Riders[i].Totals = slices.Clone(c.Riders[i].Totals)
	}
	return &c
}

// Validate returns an error that names a field out of its bounds.
func (h *Header) Validate() error {
	switch {
	case h.Kind < Whole || h.Kind > Carrier:
		return malformed("kind %d, want %d to %d", h.Kind, Whole, Carrier)
	case h.PayloadLen < 0 || h.PayloadLen > MaxPayload:
		return malformed("payload of %d bytes, at most %d", h.PayloadLen, MaxPayload)
	case h.Kind == Carrier && (h.PayloadLen != 0 || h.PayloadCRC != 0):
		return malformed("a carrier with a payload of %d bytes, CRC %#x", h.PayloadLen, h.PayloadCRC)
	case h.Kind != Coded && (h.D != 0 || h.Slots != 0):
		return malformed("%v, but D %d and %d slots", h.Kind, h.D, h.Slots)
	case len(h.Members) != h.Slots || len(h.Units) != h.Slots:
		return malformed("%d slots, but %d members and units for %d", h.Slots, len(h.Members), len(h.Units))
	}
	if h.Kind == Coded {
		if err := h.validateLayout(); err != nil {
			return err
		}
	}
	return h.validateRiders()
}

func (h *Header) validateLayout() error {
	switch {
	case h.D < 1 || h.D > MaxD || h.Slots < 1 || h.Slots > MaxSlots || h.D*h.Slots > MaxUnits:
		return malformed("D %d and %d slots: both at least 1, D at most %d, their product %d", h.D, h.Slots, MaxD, MaxUnits)
	case h.PayloadLen == 0:
		return malformed("an empty payload is coded")
	}
	for slot, id := range h.Members {
		switch {
		case id == 0 || id == h.Encoder:
			return malformed("slot %d is of node %d; the encoder is %d", slot, id, h.Encoder)
		case slices.Contains(h.Members[:slot], id):
			return malformed("node %d has two slots", id)
		case int(h.Units[slot]) > h.D:
			return malformed("%d units for slot %d, at most %d", h.Units[slot], slot, h.D)
		}
	}
	return nil
}

func (h *Header) validateRiders() error {
	if len(h.Riders) > MaxRiders {
		return malformed("%d riders, at most %d", len(h.Riders), MaxRiders)
	}
	last := uint64(0)
	for _, r := range h.Riders {
		switch {
		case r.Index <= last:
			return malformed("a rider for index %d after %d", r.Index, last)
		case r.Term == 0:
			return malformed("a rider for index %d of term 0", r.Index)
		case len(r.Totals) < 1 || len(r.Totals) > MaxSlots:
			return malformed("a rider with totals for %d slots, 1 to %d", len(r.Totals), MaxSlots)
		case slices.Max(r.Totals) > MaxD:
			return malformed("a rider with a total of %d units, at most %d", slices.Max(r.Totals), MaxD)
		}
		last = r.Index
	}
	return nil
}
