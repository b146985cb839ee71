// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

func payload(seed uint64, size int) []byte {
	var key [32]byte
	key[0] = byte(seed)
	p := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(p) // never fails
	return p
}

// coded returns the header of an entry of node 1, in a group of nodes 1..n, in
// which the others hold the same number of units.
func coded(n, units int, p []byte) *ecraft.Header {
	h := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(p), PayloadCRC: ecraft.Checksum(p),
		Layout: ecraft.NewLayout(n, n-1), Encoder: 1,
	}
	for id := 2; id <= n; id++ {
		h.Members = append(h.Members, uint64(id))
		h.Units = append(h.Units, uint8(units))
	}
	return h
}

// atLevel is coded with the units of a level.
func atLevel(n, level int, p []byte) *ecraft.Header {
	return coded(n, ecraft.NewLayout(n, n-1).UnitsAt(level), p)
}

// TestEveryLevel seals entries of many sizes for every node, at every level, and checks that every
// choice of followers, as many as the level, can decode them.
func TestEveryLevel(t *testing.T) {
	for n := 3; n <= 9; n++ {
		for level := 1; level <= ecraft.Levels(n); level++ {
			for _, size := range []int{1, 2, 7, 30, 255, 256, 1000, 4097, 65536 + n, 300_001} {
				if testing.Short() && size > 1<<16 {
					continue
				}
				p := payload(uint64(level), size)
				h := atLevel(n, level, p)
				t.Run(fmt.Sprintf("N=%d/level=%d/size=%d", n, level, size), func(t *testing.T) {
					testLevel(t, h, p, level)
				})
			}
		}
	}
}

func testLevel(t *testing.T, h *ecraft.Header, p []byte, level int) {
	const prefix = 3
	c := ecraft.NewCodeword(h, p)
	defer c.Free()
	require.NoError(t, h.Validate())
	seal := func(to uint64) *ecraft.Envelope {
		data := ecraft.Seal([]byte("x"), h, to, prefix, c, nil)[1:]
		require.Len(t, data, ecraft.SealedLen(h, to, prefix, nil))
		require.True(t, ecraft.IsEnvelope(data, prefix))
		e, err := ecraft.Parse(data, prefix, to)
		require.NoError(t, err)
		require.Equal(t, *h, e.Header)
		require.Equal(t, append(bytes.Clone(p[:min(prefix, len(p))]), 0, 0, 0)[:prefix], e.Prefix)
		alone, _, err := ecraft.ParseHeader(data, prefix)
		require.NoError(t, err)
		require.Equal(t, h, alone)
		alone, rest, err := ecraft.ParseHeader(append(ecraft.AppendHeader(nil, h), "rest"...), 0)
		require.NoError(t, err)
		require.Equal(t, h, alone)
		require.Equal(t, "rest", string(rest))
		return e
	}
	for _, to := range []uint64{1, 99} { // the encoder, and a member that came later
		require.True(t, h.Whole(to))
		require.Equal(t, p, seal(to).Payload)
	}
	var strips []ecraft.Strip
	for _, to := range h.Members {
		e := seal(to)
		require.Equal(t, level == 1, h.Whole(to))
		if level == 1 {
			require.Equal(t, p, e.Payload)
			require.Equal(t, ecraft.Seal(nil, h, 1, prefix, c, nil), ecraft.Seal(nil, h, to, prefix, c, nil))
			continue
		}
		require.Nil(t, e.Payload)
		require.NoError(t, e.Own.Verify())
		strips = append(strips, e.Own)
	}
	for chosen := uint(0); chosen < 1<<len(strips); chosen++ {
		a, count := ecraft.NewAssembly(h), 0
		for i, s := range strips {
			if chosen&(1<<i) != 0 {
				count++
				added, err := a.Add(s)
				require.NoError(t, err)
				require.Equal(t, s.Count, added)
			}
		}
		got, err := a.Payload()
		if count < level && a.Missing() > 0 {
			require.ErrorIs(t, err, ecraft.ErrIncomplete)
			continue
		}
		require.NoError(t, err)
		if !bytes.Equal(p, got) {
			t.Fatalf("followers %b decode something else", chosen)
		}
	}
}

// TestGenerator compares the units with the documented matrix, computed here by long
// multiplication.
func TestGenerator(t *testing.T) {
	times := func(a, b byte) (product byte) {
		for ; b != 0; b >>= 1 {
			if b&1 != 0 {
				product ^= a
			}
			if a&0x80 != 0 {
				a = a<<1 ^ 0x1d
			} else {
				a <<= 1
			}
		}
		return product
	}
	inverse := func(a byte) byte {
		for b := 1; b < 256; b++ {
			if times(a, byte(b)) == 1 {
				return byte(b)
			}
		}
		t.Fatal("no inverse")
		return 0
	}
	for _, n := range []int{3, 5, 7, 9} {
		l := ecraft.NewLayout(n, n-1)
		p := payload(9, l.D*2)
		c := ecraft.NewCodeword(atLevel(n, 1, p), p)
		for slot := range l.Slots {
			s := c.Strip(slot, 0, l.D)
			for k := range l.D {
				got, err := s.Unit(k)
				require.NoError(t, err)
				want := make([]byte, 2)
				for col := range l.D {
					g := byte(0)
					if row := slot + k*l.Slots; row >= l.D {
						g = inverse(byte(row ^ col))
					} else if row == col {
						g = 1
					}
					want[0] ^= times(g, p[2*col])
					want[1] ^= times(g, p[2*col+1])
				}
				require.Equal(t, want, got, "N=%d slot %d unit %d", n, slot, k)
			}
		}
		c.Free()
	}
}

// TestRiders tops up two older entries in a carrier.
func TestRiders(t *testing.T) {
	const n, prefix = 5, 2
	p := [][]byte{payload(1, 1000), payload(2, 333)}
	old := []*ecraft.Codeword{
		ecraft.NewCodeword(atLevel(n, 3, p[0]), p[0]),
		ecraft.NewCodeword(atLevel(n, 2, p[1]), p[1]),
	}
	h := &ecraft.Header{Kind: ecraft.Carrier, Encoder: 1, Riders: []ecraft.Rider{
		{ID: ecraft.ID{Term: 1, Index: 7}, Totals: []uint8{3, 0, 6, 0}},
		{ID: ecraft.ID{Term: 2, Index: 8}, Totals: []uint8{0, 4, 0, 6}},
	}}
	require.NoError(t, h.Validate())
	for slot := range n - 1 {
		to := uint64(slot + 2)
		data := ecraft.Seal(nil, h, to, prefix, nil, old)
		require.Len(t, data, ecraft.SealedLen(h, to, prefix, old))
		e, err := ecraft.Parse(data, prefix, to)
		require.NoError(t, err)
		require.Equal(t, *h, e.Header)
		require.Nil(t, e.Payload)
		for i, s := range e.RiderUnits {
			base := int(old[i].Header().Units[slot])
			if total := int(h.Riders[i].Totals[slot]); total == 0 {
				require.Zero(t, s.Count)
			} else {
				require.Equal(t, [3]int{slot, base, total - base}, [3]int{s.Slot, s.First, s.Count})
				require.NoError(t, s.Verify())
			}
		}
		// A sender that has released the first entry leaves the entry's units out.
		e, err = ecraft.Parse(ecraft.Seal(nil, h, to, prefix, nil, []*ecraft.Codeword{nil, old[1]}), prefix, to)
		require.NoError(t, err)
		require.Zero(t, e.RiderUnits[0].Count)
	}
}
