// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// group is an entry of a group of n voters and each voter's units of the entry. Voter 0 is the
// leader; voter v > 0 has slot v-1.
type group struct {
	n       int
	payload []byte
	h       *ecraft.Header
	units   [][]ecraft.Strip // all units, in strips of a single unit, by slot
	strips  [][]ecraft.Set   // the first so many units, by slot
	decoded map[ecraft.Set]bool
}

func newGroup(t *testing.T, n int) *group {
	g := &group{n: n, payload: payload(uint64(n), 500), decoded: map[ecraft.Set]bool{}}
	g.h = atLevel(n, 1, g.payload)
	c := ecraft.NewCodeword(g.h, g.payload)
	defer c.Free()
	for slot := range n - 1 {
		s := c.Strip(slot, 0, g.h.D)
		require.NoError(t, s.Verify())
		var one []ecraft.Strip
		for k := range g.h.D {
			one = append(one, s.Sub(k, 1))
		}
		g.units = append(g.units, one)
		var sets []ecraft.Set
		for count := range g.h.D + 1 {
			sets = append(sets, g.h.Strip(slot, count))
		}
		g.strips = append(g.strips, sets)
	}
	return g
}

// decodes reports whether these voters, a set of bits, can decode the entry, by decoding real
// units.
func (g *group) decodes(t *testing.T, voters uint, held []int) bool {
	if voters&1 != 0 && held[0] == g.h.D {
		return true // the leader, durable, has the whole payload
	}
	var units ecraft.Set
	for v := 1; v < g.n; v++ {
		if voters&(1<<v) != 0 {
			units = units.Union(g.strips[v-1][held[v]])
		}
	}
	if known, ok := g.decoded[units]; ok {
		return known
	}
	a := ecraft.NewAssembly(g.h)
	defer a.Free()
	for slot := range g.units {
		for k, u := range g.units[slot] {
			if units.Has(g.h.Unit(slot, k)) {
				_, err := a.Add(u)
				require.NoError(t, err)
			}
		}
	}
	got, err := a.Payload()
	if err != nil {
		require.ErrorIs(t, err, ecraft.ErrIncomplete)
	} else if !bytes.Equal(got, g.payload) {
		t.Fatalf("units %v decode something else", units)
	}
	g.decoded[units] = err == nil
	return err == nil
}

// check compares Covered, and CoveredSets for the same units, with the sets of `need` voters that
// can really decode. need is the number of voters left when as many fail as Raft survives; for even
// n any half, as the commit rule demands.
func (g *group) check(t *testing.T, held []int) (covered bool) {
	need := (g.n + 1) / 2
	truth := true
	for voters := uint(0); truth && voters < 1<<g.n; voters++ {
		if bits.OnesCount(voters) == need {
			truth = g.decodes(t, voters, held)
		}
	}
	if got := ecraft.Covered(g.h.D, need, held); got != truth {
		t.Fatalf("N=%d, D=%d, held %v: Covered is %v, but it is %v that any %d can decode", g.n, g.h.D, held, got, truth, need)
	}
	if g.n <= 7 {
		sets := make([]ecraft.Set, g.n)
		for k := range held[0] {
			sets[0].Add(ecraft.MaxUnits - 1 - k) // the leader's units, which belong to no other voter
		}
		for v := 1; v < g.n; v++ {
			sets[v] = g.strips[v-1][held[v]]
		}
		require.Equal(t, truth, ecraft.CoveredSets(g.h.D, need, sets))
	}
	return truth
}

// TestCoverage compares the rule with real codewords, for any holdings and any remaining voters:
// every holding in groups of up to six, every holding of whole levels in groups of seven, random
// holdings beyond. A voter that has not acknowledged holds no units. So the rule never covers an
// entry that some majority cannot decode, and covers an entry as soon as any rule could for these
// units.
func TestCoverage(t *testing.T) {
	for n := 3; n <= 9; n++ {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			g := newGroup(t, n)
			count, yes := 0, 0
			run := func(held []int) {
				count++
				if g.check(t, held) {
					yes++
				}
			}
			if n <= 6 || n == 7 && !testing.Short() {
				everyHolding(g, make([]int, n), 0, run)
			}
			rng := rand.New(rand.NewPCG(7, uint64(n)))
			rounds := 10000
			if n == 9 || testing.Short() { // many sets to decode
				rounds = 1000
			}
			for range rounds {
				run(randomHolding(g, rng))
			}
			require.NotZero(t, yes)
			require.NotEqual(t, count, yes)
			t.Logf("%d holdings, %d of them covered; %d sets of units decoded", count, yes, len(g.decoded))
		})
	}
}

// everyHolding runs all choices of the units that the voters from v on hold.
func everyHolding(g *group, held []int, v int, run func([]int)) {
	if v == g.n {
		run(held)
		return
	}
	choices := []int{0, g.h.D}
	for u := 1; v > 0 && u < g.h.D; u++ {
		if g.n <= 6 || slices.ContainsFunc([]int{2, 3, 4}, func(level int) bool { return u == g.h.UnitsAt(level) }) {
			choices = append(choices, u)
		}
	}
	for _, held[v] = range choices {
		everyHolding(g, held, v+1, run)
	}
}

// randomHolding draws units around the shares of a level, where the rule is
// decided, or from all there are. Some voters have not acknowledged.
func randomHolding(g *group, rng *rand.Rand) []int {
	held := make([]int, g.n)
	share := g.h.UnitsAt(1 + rng.IntN(ecraft.Levels(g.n)))
	wild, silent := rng.IntN(4) == 0, rng.IntN(g.n)
	for v := range held {
		held[v] = min(max(share+rng.IntN(3)-1, 0), g.h.D)
		if wild {
			held[v] = rng.IntN(g.h.D + 1)
		}
		if rng.IntN(g.n) < silent {
			held[v] = 0
		}
	}
	held[0] = g.h.D * min(rng.IntN(8), 1)
	return held
}

// TestLevelsCommit shows the meaning of a level: an entry commits with level + N/2 acknowledgements
// of any voters, the leader's among them, and never with fewer; and no unit of the assignment could
// be left out.
func TestLevelsCommit(t *testing.T) {
	for n := 3; n <= 9; n++ {
		l := ecraft.NewLayout(n, n-1)
		covered := func(units []int, acked uint) bool {
			held := []int{l.D}
			for v := 1; v < n; v++ {
				held = append(held, units[v-1]*int(acked>>v&1))
			}
			return ecraft.Covered(l.D, (n+1)/2, held)
		}
		for level := 1; level <= ecraft.Levels(n); level++ {
			q := level + n/2
			for turn := range n {
				units := make([]int, n-1)
				l.Spread(level, turn, units)
				for acked := uint(1); acked < 1<<n; acked += 2 {
					require.Equal(t, bits.OnesCount(acked) >= q, covered(units, acked), "N=%d level %d %v %b", n, level, units, acked)
				}
				for i := range units {
					units[i]--
					always := true
					for acked := uint(1); acked < 1<<n; acked += 2 {
						always = always && (bits.OnesCount(acked) != q || covered(units, acked))
					}
					require.False(t, always, "N=%d level %d: a unit less is enough: %v", n, level, units)
					units[i]++
				}
			}
		}
	}
}

// TestCoveredSets compares with a look at every choice of members.
func TestCoveredSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	yes := 0
	for range 3000 {
		n := 1 + rng.IntN(8)
		held := make([]ecraft.Set, n)
		for i := range held {
			for range rng.IntN(12) {
				held[i].Add(rng.IntN(16) * 17)
			}
		}
		d, need := rng.IntN(10), rng.IntN(n+2)
		truth := need >= 1 && need <= n
		for members := range uint(1) << n {
			if bits.OnesCount(members) != need {
				continue
			}
			distinct := 0
			for u := 0; u < ecraft.MaxUnits; u += 17 {
				if slices.ContainsFunc(indexes(members), func(i int) bool { return held[i].Has(u) }) {
					distinct++
				}
			}
			truth = truth && distinct >= d
		}
		if d == 0 {
			truth = true
		}
		require.Equal(t, truth, ecraft.CoveredSets(d, need, held), "d=%d need=%d %v", d, need, held)
		if truth {
			yes++
		}
	}
	require.Greater(t, yes, 300)
	require.Less(t, yes, 2700)
}

// indexes returns the positions of the set bits.
func indexes(set uint) (out []int) {
	for ; set != 0; set &= set - 1 {
		out = append(out, bits.TrailingZeros(set))
	}
	return out
}
