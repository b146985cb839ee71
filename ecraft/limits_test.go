// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// TestLayout holds the choice of D to the table in the documentation, and to
// its bounds for every size of group.
func TestLayout(t *testing.T) {
	for voters, d := range map[int]int{1: 0, 2: 0, 3: 2, 4: 2, 5: 6, 6: 6, 7: 12, 8: 12, 9: 24} {
		require.Equal(t, ecraft.Layout{D: d, Slots: voters - 1}, ecraft.NewLayout(voters, voters-1), "%d voters", voters)
	}
	for voters := 0; voters < 40; voters++ {
		for slots := 0; slots < 300; slots++ {
			l := ecraft.NewLayout(voters, slots)
			require.LessOrEqual(t, l.D*l.Slots, ecraft.MaxUnits)
			require.Equal(t, l, ecraft.NewLayout(voters, slots))
			if l.D != 0 {
				require.GreaterOrEqual(t, l.D, 2)
			}
		}
	}
	require.Zero(t, ecraft.NewLayout(5, 129).D) // nothing can be cut in two
	require.Equal(t, 2, ecraft.NewLayout(5, 128).D)
	require.Zero(t, ecraft.NewLayout(-1, -1))
}

// TestBytes shows that a level costs, to 2 in 100, its theoretical cost: as many payloads as the
// level has followers, divided by the level.
func TestBytes(t *testing.T) {
	for _, n := range []int{3, 4, 5, 6, 7, 8, 9} {
		l := ecraft.NewLayout(n, n-1)
		for level := 1; level <= ecraft.Levels(n); level++ {
			followers := level + n/2 - 1 // the healthy followers at this level
			units, sum := make([]int, followers), 0
			l.Spread(level, 3, units)
			for _, u := range units {
				sum += u
			}
			least := float64(followers) / float64(level)
			require.LessOrEqual(t, float64(sum)/float64(l.D), 1.02*least, "N=%d level=%d", n, level)
		}
	}
}

// TestSpread turns the shortfall around the holders, for any number of holders.
func TestSpread(t *testing.T) {
	l := ecraft.NewLayout(9, 8)
	sum := make([]int, 8)
	for turn := range 8 {
		units := make([]int, 8)
		l.Spread(5, turn, units)
		for i, u := range units {
			sum[i] += u
		}
	}
	require.Equal(t, []int{39, 39, 39, 39, 39, 39, 39, 39}, sum)
	for holders := range 12 {
		for level := -1; level < 40; level++ {
			units := make([]int, holders)
			l.Spread(level, math.MaxInt/2, units)
			if level >= 1 && holders >= level {
				require.True(t, ecraft.Covered(l.D, level, units), "%d holders, level %d: %v", holders, level, units)
			}
		}
	}
}

// TestReduce keeps each holder's share, and the shares of lower levels.
func TestReduce(t *testing.T) {
	for _, c := range []struct {
		n     int
		units []int
		d     int
		want  []int
	}{
		{5, []int{2, 2, 2, 2}, 6, []int{2, 2, 2, 2}},
		{5, []int{3, 3, 3, 3}, 2, []int{1, 1, 1, 1}},
		{5, []int{3, 0, 6, 3}, 2, []int{1, 0, 2, 1}},
		{5, []int{6, 6, 0, 0}, 2, []int{2, 2, 0, 0}},
		{5, []int{6, 6, 6, 6}, 2, []int{2, 2, 2, 2}},
		{5, []int{0, 0, 0, 0}, 2, []int{0, 0, 0, 0}},
		{5, []int{3, 2, 6, 3}, 6, []int{3, 2, 6, 3}},
		{7, []int{6, 6, 6, 6, 6, 6}, 2, []int{1, 1, 1, 1, 1, 1}},
		{7, []int{4, 4, 4, 4, 4, 4}, 6, []int{2, 2, 2, 2, 2, 2}},
		{7, []int{3, 3, 3, 3, 3, 3}, 12, []int{3, 3, 3, 3, 3, 3}},
		{9, []int{6, 6, 6, 6, 6, 6, 6, 6}, 12, []int{3, 3, 3, 3, 3, 3, 3, 3}},
		{9, []int{5, 5, 5, 5, 5, 5, 5, 5}, 20, []int{4, 4, 4, 4, 4, 4, 4, 4}},
		{9, []int{5, 4, 5, 0, 5, 5, 5, 5}, 20, []int{4, 4, 4, 0, 4, 4, 4, 4}},
		{9, []int{5, 4, 4, 5, 5, 5, 5, 5}, 24, []int{5, 4, 4, 5, 5, 5, 5, 5}}, // 5 of the holders may lack a unit
		{2, []int{0}, 0, []int{0}},
	} {
		l := ecraft.NewLayout(c.n, len(c.units)).Reduce(c.units)
		require.Equal(t, c.d, l.D, "%v", c.want)
		require.Equal(t, c.want, c.units)
		require.Equal(t, len(c.units), l.Slots)
	}
}

// TestRecutDecodesAlike checks that a set of holders decodes after a payload was cut anew if and
// only if the set decoded before.
func TestRecutDecodesAlike(t *testing.T) {
	changed := 0
	for voters := 3; voters <= 16; voters++ {
		l := ecraft.NewLayout(voters, voters-1)
		for level := 1; level <= ecraft.Levels(voters); level++ {
			for turn := range 3 {
				before := make([]int, voters-1)
				l.Spread(level, turn, before)
				after := slices.Clone(before)
				r := l.Reduce(after)
				if r.D < 1 || l.D%r.D != 0 {
					changed++
				}
				for set := range 1 << (voters - 1) {
					b, a := 0, 0
					for i := range before {
						if set>>i&1 == 1 {
							b, a = b+before[i], a+after[i]
						}
					}
					if b >= l.D != (a >= r.D) {
						t.Fatalf("%d voters, level %d: %v of %d, then %v of %d", voters, level, before, l.D, after, r.D)
					}
				}
			}
		}
	}
	require.Positive(t, changed)
}

// TestValidate checks that each forbidden value of a header is refused and named.
func TestValidate(t *testing.T) {
	p := payload(1, 100)
	riders := func(ids ...uint64) (out []ecraft.Rider) {
		for _, id := range ids {
			out = append(out, ecraft.Rider{ID: ecraft.ID{Term: 1, Index: id}, Totals: []uint8{1}})
		}
		return out
	}
	for want, change := range map[string]func(h *ecraft.Header){
		"kind 0, want 1 to 3":                             func(h *ecraft.Header) { h.Kind = 0 },
		"kind 9, want 1 to 3":                             func(h *ecraft.Header) { h.Kind = 9 },
		"payload of 1073741825 bytes":                     func(h *ecraft.Header) { h.PayloadLen = ecraft.MaxPayload + 1 },
		"payload of -1 bytes":                             func(h *ecraft.Header) { h.PayloadLen = -1 },
		"an empty payload is coded":                       func(h *ecraft.Header) { h.PayloadLen = 0 },
		"a carrier with a payload of 100 bytes":           func(h *ecraft.Header) { h.Kind = ecraft.Carrier },
		"whole, but D 6 and 4 slots":                      func(h *ecraft.Header) { h.Kind = ecraft.Whole },
		"4 slots, but 3 members and units for 4":          func(h *ecraft.Header) { h.Members = h.Members[1:] },
		"4 slots, but 4 members and units for 3":          func(h *ecraft.Header) { h.Units = h.Units[1:] },
		"D 0 and 4 slots":                                 func(h *ecraft.Header) { h.D = 0 },
		"D 33 and 4 slots: both at least 1, D at most 32": func(h *ecraft.Header) { h.D = 33 },
		"rider with a total of 33 units, at most 32":      func(h *ecraft.Header) { h.Riders = riders(5); h.Riders[0].Totals[0] = 33 },
		"slot 1 is of node 0":                             func(h *ecraft.Header) { h.Members[1] = 0 },
		"slot 1 is of node 1; the encoder is 1":           func(h *ecraft.Header) { h.Members[1] = 1 },
		"node 2 has two slots":                            func(h *ecraft.Header) { h.Members[3] = 2 },
		"7 units for slot 2, at most 6":                   func(h *ecraft.Header) { h.Units[2] = 7 },
		"1025 riders, at most 1024":                       func(h *ecraft.Header) { h.Riders = make([]ecraft.Rider, 1025) },
		"a rider for index 5 after 5":                     func(h *ecraft.Header) { h.Riders = riders(5, 5) },
		"a rider for index 4 after 5":                     func(h *ecraft.Header) { h.Riders = riders(5, 4) },
		"a rider for index 0 after 0":                     func(h *ecraft.Header) { h.Riders = riders(0) },
		"a rider for index 5 of term 0":                   func(h *ecraft.Header) { h.Riders = riders(5); h.Riders[0].Term = 0 },
		"a rider with totals for 0 slots, 1 to 255":       func(h *ecraft.Header) { h.Riders = riders(5); h.Riders[0].Totals = nil },
	} {
		h := atLevel(5, 3, p)
		require.NoError(t, h.Validate())
		change(h)
		err := h.Validate()
		require.ErrorIs(t, err, ecraft.ErrMalformed)
		require.ErrorContains(t, err, want)
	}
}

// TestMostRiders has as many riders and slots as there can be.
func TestMostRiders(t *testing.T) {
	h := &ecraft.Header{Kind: ecraft.Carrier}
	for i := range ecraft.MaxRiders {
		h.Riders = append(h.Riders, ecraft.Rider{
			ID: ecraft.ID{Term: 1, Index: uint64(i + 1)}, Totals: make([]uint8, ecraft.MaxSlots),
		})
	}
	e, err := ecraft.Parse(ecraft.Seal(nil, h, 1, ecraft.MaxPrefix, nil, nil), ecraft.MaxPrefix, 1)
	require.NoError(t, err)
	require.Equal(t, *h, e.Header)
	_, err = ecraft.Parse(nil, ecraft.MaxPrefix+1, 1)
	require.ErrorContains(t, err, "a clear prefix of 4097 bytes, 0 to 4096")
	_, err = ecraft.Parse(nil, -1, 1)
	require.ErrorIs(t, err, ecraft.ErrMalformed)
}

// TestWrongLayout refuses strips of another layout than the entry's.
func TestWrongLayout(t *testing.T) {
	p := payload(1, 600)
	h := atLevel(5, 1, p)
	a := ecraft.NewAssembly(h)
	for _, other := range []struct{ n, size int }{{5, 700}, {7, 1200}, {9, 2400}} {
		q := payload(1, other.size)
		c := ecraft.NewCodeword(atLevel(other.n, 1, q), q)
		for slot := range other.n - 1 {
			added, err := a.Add(c.Strip(slot, 1, c.Header().D-1))
			require.ErrorIs(t, err, ecraft.ErrMalformed)
			require.Zero(t, added)
		}
	}
	added, err := a.Add(ecraft.Strip{})
	require.NoError(t, err)
	require.Zero(t, added)
	_, err = ecraft.Strip{}.Unit(0)
	require.ErrorIs(t, err, ecraft.ErrMalformed)
}

// TestSub takes parts of a strip, by the place in the slot.
func TestSub(t *testing.T) {
	p := payload(1, 600)
	c := ecraft.NewCodeword(atLevel(5, 1, p), p)
	s := c.Strip(2, 1, 4)
	for first := -1; first < 8; first++ {
		for count := -1; count < 8; count++ {
			from, to := max(first, 1), min(first+count, 5)
			sub := s.Sub(first, count)
			if from >= to {
				require.Zero(t, sub)
				continue
			}
			require.Equal(t, c.Strip(2, from, to-from), sub)
			require.NoError(t, sub.Verify())
			require.Equal(t, (to-from)*100, sub.Bytes())
		}
	}
}
