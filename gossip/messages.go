// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/weftraft/weft/ecraft"
)

// ErrMalformed is wrapped by the errors of messages that no correct node sends.
var ErrMalformed = errors.New("gossip: malformed")

// A Want is a question to a peer for units of one entry.
type Want struct {
	ecraft.ID
	Need    int // units that the asker still needs
	OwnHeld int // first unit of the asker's own slot that it lacks
	Theirs  int // first unit of the responder's own slot that it lacks
}

// Answer returns a node's units for a peer that asks. With the payload, as a codeword,
// the units are of the asker's own slot: no other node holds these, so they never
// overlap with other answers. An asker without a slot gets units of self's. Without the
// payload, c is nil, and the units are those of the node's own slot. The strips share
// the memory of own, or are c's.
func Answer(h *ecraft.Header, self, asker uint64, w Want, own []ecraft.Strip, c *ecraft.Codeword) []ecraft.Strip {
	if h.Kind != ecraft.Coded || w.Need < 1 {
		return nil
	}
	if c != nil {
		slot, first := h.SlotOf(asker), w.OwnHeld
		if slot < 0 {
			slot, first = h.SlotOf(self), w.Theirs
		}
		if slot < 0 || first < 0 || first >= h.D {
			return nil
		}
		return []ecraft.Strip{c.Strip(slot, first, min(w.Need, h.D-first))}
	}
	var strips []ecraft.Strip
	next, left := w.Theirs, w.Need
	for _, s := range own {
		// From the first unit that the asker lacks, and that no other strip had, to the
		// last possible one.
		s = s.Sub(next, ecraft.MaxUnits)
		if s = s.Sub(s.First, left); s.Count > 0 {
			strips = append(strips, s)
			next, left = s.First+s.Count, left-s.Count
		}
	}
	return strips
}

// Messages begin with their version. A node that does not know the version refuses the
// message, as if the message had been lost.
const (
	unitsVersion = 1
	askVersion   = 1
)

// maxStrips bounds the strips of an entry in a message: more than any node holds,
// riders included.
const maxStrips = 32

// AppendUnits appends the encoding of the units of one entry: version, number of
// strips, and the strips as package ecraft encodes them.
func AppendUnits(dst []byte, strips ...ecraft.Strip) []byte {
	strips = strips[:min(len(strips), maxStrips)]
	dst = append(dst, unitsVersion, byte(len(strips)))
	for _, s := range strips {
		dst = ecraft.AppendStrip(dst, s)
	}
	return dst
}

// ParseUnits is the inverse of AppendUnits; no data at all stands for no units.
// The strips share data's memory, and their units are not verified yet:
// Store.Add does that. A strip that is a small part of data has memory of its own: a store
// counts what it keeps, and kept a few bytes would keep all of data.
func ParseUnits(data []byte) (strips []ecraft.Strip, err error) {
	switch {
	case len(data) == 0:
		return nil, nil
	case len(data) < 2:
		return nil, malformed("units in %d bytes, at least 2", len(data))
	case data[0] != unitsVersion:
		return nil, malformed("units of version %d, want %d", data[0], unitsVersion)
	case data[1] > maxStrips:
		return nil, malformed("%d strips, at most %d", data[1], maxStrips)
	}
	count, rest := int(data[1]), data[2:]
	for i := range count {
		s, after, err := ecraft.ParseStrip(rest)
		if err != nil {
			return nil, fmt.Errorf("%w: strip %d of %d: %w", ErrMalformed, i, count, err)
		}
		if s.Count == 0 {
			return nil, malformed("strip %d of %d is empty", i, count)
		}
		if n := s.EncodedLen(); n < len(data)/maxStrips { // of no correct node
			s, _, _ = ecraft.ParseStrip(bytes.Clone(rest[:n]))
		}
		strips, rest = append(strips, s), after
	}
	if len(rest) > 0 {
		return nil, malformed("%d bytes after %d strips", len(rest), count)
	}
	return strips, nil
}

// askLen is the length of a Want without the entry's ID, which the message has
// elsewhere.
const askLen = 4

// AppendAsk appends the encoding of w, but for its ID: version, Need, OwnHeld
// and Theirs, a byte each.
func AppendAsk(dst []byte, w Want) []byte {
	return append(dst, askVersion, countByte(w.Need), countByte(w.OwnHeld), countByte(w.Theirs))
}

// countByte is a count of units, of which a slot has at most 255.
func countByte(n int) byte { return byte(min(max(n, 0), ecraft.MaxUnits-1)) }

// ParseAsk is the inverse of AppendAsk.
func ParseAsk(id ecraft.ID, data []byte) (Want, error) {
	switch {
	case len(data) != askLen:
		return Want{}, malformed("an ask of %d bytes, want %d", len(data), askLen)
	case data[0] != askVersion:
		return Want{}, malformed("an ask of version %d, want %d", data[0], askVersion)
	case data[1] == 0:
		return Want{}, malformed("an ask for 0 units, at least 1")
	}
	return Want{ID: id, Need: int(data[1]), OwnHeld: int(data[2]), Theirs: int(data[3])}, nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
