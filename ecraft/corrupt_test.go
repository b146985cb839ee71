// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// sample is an entry as a node stores the entry, and the possible results there.
type sample struct {
	name    string
	data    []byte
	prefix  int
	node    uint64
	h       *ecraft.Header // with the units of its riders
	old     []*ecraft.Header
	payload []byte
	units   int // of its own and of riders
}

// samples are envelopes of every kind and every form of body.
func samples() (out []sample) {
	const n = 5
	riders := func(totals ...uint8) []ecraft.Rider {
		return []ecraft.Rider{
			{ID: ecraft.ID{Term: 3, Index: 70}, Totals: totals},
			{ID: ecraft.ID{Term: 4, Index: 71}, Totals: []uint8{1, 1, 1, 1}},
		}
	}
	oldPayload := payload(2, 100)
	old := []*ecraft.Codeword{ecraft.NewCodeword(atLevel(n, 3, oldPayload), oldPayload), nil}
	oldHeaders := []*ecraft.Header{old[0].Header(), nil}
	add := func(name string, h *ecraft.Header, p []byte, prefix int, to uint64, units int) {
		var c *ecraft.Codeword
		if h.Kind != ecraft.Carrier {
			c = ecraft.NewCodeword(h, p)
		}
		s := sample{name: name, prefix: prefix, node: to, h: h, old: oldHeaders, payload: p, units: units}
		s.data = ecraft.Seal(nil, h, to, prefix, c, old)
		out = append(out, s)
	}
	p := payload(1, 50)
	for _, prefix := range []int{0, 5} {
		whole := &ecraft.Header{Kind: ecraft.Whole, PayloadLen: len(p), PayloadCRC: ecraft.Checksum(p), Encoder: 1}
		add("whole", whole, p, prefix, 3, 0)
		withRiders := whole.Clone()
		withRiders.Riders = riders(0, 6, 0, 3)
		add("whole, riders", withRiders, p, prefix, 3, 4)
		add("whole, riders, not raised", withRiders, p, prefix, 2, 0)
		carrier := &ecraft.Header{Kind: ecraft.Carrier, Encoder: 1, Riders: riders(3, 4, 5, 6)}
		add("carrier", carrier, nil, prefix, 5, 4)
		units := atLevel(n, 3, p)
		add("units", units, p, prefix, 3, 2)
		add("units of the encoder", units, p, prefix, 1, 0)
		add("units of a later member", units, p, prefix, 9, 0)
		mixed := atLevel(n, 2, p)
		mixed.Units[1], mixed.Units[2] = 0, 6
		mixed.Riders = riders(3, 4, 5, 6)
		add("units, riders", mixed, p, prefix, 2, 4)
		add("no units, riders", mixed, p, prefix, 3, 2)
		add("whole body, riders", mixed, p, prefix, 4, 3)
	}
	return out
}

// use parses an entry as a node does, verifies its units, and returns the number of good units. The
// test fails if wrong data passes.
func (s *sample) use(t *testing.T, data []byte) (units int, err error) {
	t.Helper()
	e, err := ecraft.Parse(data, s.prefix, s.node)
	if err != nil {
		require.ErrorIs(t, err, ecraft.ErrMalformed)
		return 0, err
	}
	require.Equal(t, s.h.Fingerprint(), e.Fingerprint())
	if e.Payload != nil && !bytes.Equal(e.Payload, s.payload) {
		t.Fatalf("%s: a wrong payload", s.name)
	}
	for i, strip := range append([]ecraft.Strip{e.Own}, e.RiderUnits...) {
		h := s.h
		if i > 0 {
			h = s.old[i-1]
		}
		if bad := strip.Verify(); bad != nil {
			require.ErrorIs(t, bad, ecraft.ErrCorrupt)
			err = bad
		} else if strip.Count > 0 {
			a := ecraft.NewAssembly(h)
			added, bad := a.Add(strip)
			require.NoError(t, bad)
			units += added
		}
	}
	return units, err
}

// TestEveryByte changes each byte of each envelope, in every bit and to some other values, and cuts
// the envelope at each length: the result is always an error, never a wrong payload, a wrong unit
// that passes, or data that would be taken for a plain payload.
func TestEveryByte(t *testing.T) {
	for _, s := range samples() {
		t.Run(fmt.Sprintf("%s, prefix %d", s.name, s.prefix), func(t *testing.T) {
			units, err := s.use(t, s.data)
			require.NoError(t, err)
			require.Equal(t, s.units, units)
			for at := range s.data {
				for _, change := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 0xff, 0x55} {
					data := bytes.Clone(s.data)
					data[at] ^= change
					require.True(t, ecraft.IsEnvelope(data, s.prefix))
					_, err := s.use(t, data)
					require.Error(t, err, "byte %d changed by %#x", at, change)
				}
				_, err := s.use(t, s.data[:at])
				require.Error(t, err, "cut at %d", at)
			}
			_, err = s.use(t, append(bytes.Clone(s.data), 0))
			require.Error(t, err)
			_, err = ecraft.Parse(s.data, s.prefix+1, s.node)
			require.ErrorIs(t, err, ecraft.ErrMalformed)
		})
	}
}

// TestOtherNode gives each envelope to the other nodes, which must refuse another node's units.
func TestOtherNode(t *testing.T) {
	for _, s := range samples() {
		for node := uint64(1); node < 7; node++ {
			e, err := ecraft.Parse(s.data, s.prefix, node)
			if err != nil {
				require.ErrorIs(t, err, ecraft.ErrMalformed)
			} else if e.Own.Count > 0 {
				require.Equal(t, s.node, node)
			}
		}
	}
}

// TestUnitElsewhere moves units to other places, where their checksums, which
// cover the place, are wrong.
func TestUnitElsewhere(t *testing.T) {
	p := payload(1, 600)
	h := atLevel(5, 1, p)
	c := ecraft.NewCodeword(h, p)
	s := c.Strip(1, 2, 3)
	require.NoError(t, s.Verify())
	for _, move := range []func(*ecraft.Strip){
		func(s *ecraft.Strip) { s.Slot++ },
		func(s *ecraft.Strip) { s.First++ },
	} {
		moved := s
		move(&moved)
		require.ErrorIs(t, moved.Verify(), ecraft.ErrCorrupt)
		a := ecraft.NewAssembly(h)
		added, err := a.Add(moved)
		require.Zero(t, added)
		require.ErrorIs(t, err, ecraft.ErrCorrupt)
	}
}

// TestLyingUnits has a peer send a unit with a right checksum and wrong bytes: the payload's own
// checksum finds the wrong unit, and without this peer's units the other peers' units are enough.
func TestLyingUnits(t *testing.T) {
	p := payload(1, 600)
	h := atLevel(5, 2, p)
	lie := bytes.Clone(p)
	lie[9] ^= 1
	honest, lying := ecraft.NewCodeword(h, p), ecraft.NewCodeword(h, lie)
	a := ecraft.NewAssembly(h)
	for slot, c := range []*ecraft.Codeword{lying, honest} {
		added, err := a.Add(c.Strip(slot, 0, 3))
		require.NoError(t, err)
		require.Equal(t, 3, added)
	}
	_, err := a.Payload()
	require.ErrorIs(t, err, ecraft.ErrCorrupt)
	a = ecraft.NewAssembly(h)
	added, err := a.Add(honest.Strip(1, 0, 3))
	require.NoError(t, err)
	require.Equal(t, [3]int{3, 3, 3 * 100}, [3]int{added, a.Missing(), a.Bytes()})
	require.False(t, a.Has(0, 0))
	require.True(t, a.Has(1, 0))
	_, err = a.Payload()
	require.ErrorIs(t, err, ecraft.ErrIncomplete)
	added, err = a.Add(honest.Strip(3, 0, 6))
	require.NoError(t, err)
	require.Equal(t, 6, added)
	got, err := a.Payload()
	require.NoError(t, err)
	require.Equal(t, p, got)
}

// TestOneBadUnit damages a unit of a strip and loses only this unit.
func TestOneBadUnit(t *testing.T) {
	p := payload(1, 600)
	h := atLevel(5, 1, p)
	c := ecraft.NewCodeword(h, p)
	raw := ecraft.AppendStrip(nil, c.Strip(2, 0, 6))
	raw[12+2*104] ^= 1 // in unit 2
	s, rest, err := ecraft.ParseStrip(raw)
	require.NoError(t, err)
	require.Empty(t, rest)
	a := ecraft.NewAssembly(h)
	added, err := a.Add(s)
	require.ErrorIs(t, err, ecraft.ErrCorrupt)
	require.ErrorContains(t, err, "unit 2 of slot 2")
	require.Equal(t, 5, added)
	added, err = a.Add(c.Strip(2, 0, 6)) // again, whole: the others are there already
	require.NoError(t, err)
	require.Equal(t, 1, added)
	got, err := a.Payload()
	require.NoError(t, err)
	require.Equal(t, p, got)
}

// TestIsEnvelope shows the distance of plain payloads from the magic.
func TestIsEnvelope(t *testing.T) {
	data := append([]byte("ab"), samples()[0].data[:8]...)
	require.True(t, ecraft.IsEnvelope(data, 2))
	require.False(t, ecraft.IsEnvelope(data, 3))
	require.False(t, ecraft.IsEnvelope(data[:9], 2))
	require.False(t, ecraft.IsEnvelope(nil, 0))
	for i := 2; i < 10; i++ {
		data[i]++
		require.True(t, ecraft.IsEnvelope(data, 2))
		for j := i + 1; j < 10; j++ {
			data[j]++
			require.False(t, ecraft.IsEnvelope(data, 2))
			data[j]--
		}
		data[i]--
	}
}
