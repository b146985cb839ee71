// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSpansKnowTheCodedEntries compares spans with a list of all coded entries of a log
// that grows, loses its tail, and is looked at from the front.
func TestSpansKnowTheCodedEntries(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var (
			s     spans
			coded []uint64
			end   uint64
		)
		loaded := uint64(rng.IntN(20))
		for ; end < loaded; end++ {
			if rng.IntN(3) == 0 {
				coded = append(coded, end+1)
			}
		}
		s.before = end
		density := 1 + rng.IntN(8)
		for range 300 {
			switch k := rng.IntN(40); {
			case k == 0 && end > loaded:
				cut := loaded + 1 + uint64(rng.IntN(int(end-loaded)))
				s.cut(cut)
				coded, end = slices.DeleteFunc(coded, func(i uint64) bool { return i >= cut }), cut-1
			case k == 1 && s.before > 0:
				found := uint64(0)
				for _, i := range coded {
					if i <= loaded {
						found = i
					}
				}
				s.lookedAt(0, found)
			default:
				end++
				if rng.IntN(density) == 0 {
					s.add(end)
					coded = append(coded, end)
				}
			}
			last := uint64(0)
			if n := len(coded); n > 0 {
				last = coded[n-1]
			}
			require.LessOrEqual(t, len(s.runs), maxRuns)
			require.GreaterOrEqual(t, s.last(), last, "seed %d", seed)
			if known := len(s.runs) < maxRuns || s.last() > s.runs[0].last; known && s.before == 0 {
				require.Equal(t, last, s.last(), "seed %d: %v, %v", seed, coded, s)
			}
			for range 3 {
				index := 1 + uint64(rng.IntN(int(end)+1))
				if i := s.lastUpTo(index); i > 0 && (len(s.runs) < maxRuns || i > s.runs[0].last) {
					require.Contains(t, coded, i, "seed %d: up to %d of %v, %v", seed, index, coded, s)
					require.False(t, slices.ContainsFunc(coded, func(k uint64) bool { return i < k && k <= index }))
				}
			}
		}
	}
}
