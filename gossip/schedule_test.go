// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// coded returns a header for slots of nodes 2, 3, ..., made by node 1.
func coded(d int, units ...uint8) *ecraft.Header {
	h := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: d * 8, Encoder: 1,
		Layout: ecraft.Layout{D: d, Slots: len(units)}, Units: units,
	}
	for slot := range units {
		h.Members = append(h.Members, uint64(slot+2))
	}
	return h
}

// pushes returns all pushes of a header by sender and receiver, and what each
// sends.
func pushes(h *ecraft.Header) (sent [][]Push, loads []int) {
	for _, id := range h.Members {
		list := Targets(h, id, 7, Peers{Reader: nobody}, nil)
		n := 0
		for _, p := range list {
			n += p.Count
		}
		sent, loads = append(sent, list), append(loads, n)
	}
	return sent, loads
}

// checkSchedule checks what is promised of every schedule.
func checkSchedule(t *testing.T, h *ecraft.Header) {
	t.Helper()
	sent, loads := pushes(h)
	total := 0
	for _, n := range h.Units {
		total += int(n)
	}
	in := make([][]Push, h.Slots)
	for from, list := range sent {
		for _, p := range list {
			to := h.SlotOf(p.Peer)
			require.NotEqual(t, from, to)
			require.Positive(t, p.Count)
			require.LessOrEqual(t, p.Count, int(h.Units[from]), "nobody sends what it was not assigned: %v", h.Units)
			in[to] = append(in[to], Push{Peer: h.Members[from], Count: p.Count})
		}
	}
	for to, list := range in {
		got := int(h.Units[to])
		for i, p := range list {
			got += p.Count
			require.False(t, slices.ContainsFunc(list[:i], func(q Push) bool { return q.Peer == p.Peer }), "twice: %v", h.Units)
		}
		require.Equal(t, min(h.D, total), max(got, 0), "slot %d of %v", to, h.Units)
		require.ElementsMatch(t, list, expected(h, h.Members[to], nil))
	}
	require.Equal(t, mostEven(h), sumOfSquares(loads), "loads %v for %v", loads, h.Units)
}

func sumOfSquares(loads []int) (sum int) {
	for _, n := range loads {
		sum += n * n
	}
	return sum
}

// mostEven returns the least sum of the squares of what the senders send, by
// another way: unit after unit, each by the cheapest of all chains of
// corrections (as shortest path by Bellman and Ford, with costs that rise by
// each unit a sender sends).
func mostEven(h *ecraft.Header) int {
	n := h.Slots
	sends := make([][]int, n) // by receiver, then sender
	for i := range sends {
		sends[i] = make([]int, n)
	}
	loads := make([]int, n)
	for to := range n {
		for lacks := h.D - int(h.Units[to]); lacks > 0; lacks-- {
			if !oneMore(h, sends, loads, to) {
				break
			}
		}
	}
	return sumOfSquares(loads)
}

// oneMore adds the unit for which the sum grows least.
func oneMore(h *ecraft.Header, sends [][]int, loads []int, to int) bool {
	n := h.Slots
	// Senders that can be reached: first those with units for the receiver, then
	// those that can take over from one that was reached.
	type step struct{ before, receiver int }
	steps := map[int]step{}
	for s := range n {
		if s != to && sends[to][s] < int(h.Units[s]) {
			steps[s] = step{-1, to}
		}
	}
	for grown := true; grown; {
		grown = false
		for s := range n {
			if _, ok := steps[s]; !ok {
				continue
			}
			for t := range n {
				for r := range n {
					if _, ok := steps[t]; !ok && r != t && sends[r][s] > 0 && sends[r][t] < int(h.Units[t]) {
						steps[t] = step{s, r}
						grown = true
					}
				}
			}
		}
	}
	best := -1
	for s := range n {
		if _, ok := steps[s]; ok && (best < 0 || loads[s] < loads[best]) {
			best = s
		}
	}
	if best < 0 {
		return false
	}
	loads[best]++
	for s := best; s >= 0; s = steps[s].before {
		sends[steps[s].receiver][s]++
		if before := steps[s].before; before >= 0 {
			sends[steps[s].receiver][before]--
		}
	}
	return true
}

// A balanced schedule is a ring: the strip goes to the l-1 slots before one's
// own.
func TestBalancedRing(t *testing.T) {
	for voters := 3; voters <= 9; voters++ {
		for learners := range 3 {
			layout := ecraft.NewLayout(voters, voters-1+learners)
			for level := 1; level <= ecraft.Levels(voters); level++ {
				h := coded(layout.D, slices.Repeat([]uint8{uint8(layout.UnitsAt(level))}, layout.Slots)...)
				checkSchedule(t, h)
				sent, loads := pushes(h)
				for from, list := range sent {
					require.Len(t, list, level-1)
					require.Equal(t, loads[0], loads[from])
					for i, p := range list {
						require.Equal(t, (from-i-1+h.Slots)%h.Slots, h.SlotOf(p.Peer))
					}
				}
				require.Empty(t, Targets(h, h.Encoder, 7, Peers{Reader: nobody}, nil), "the leader pushes nothing")
				require.Empty(t, expected(h, h.Encoder, nil))
				require.Empty(t, Targets(h, 99, 7, Peers{Reader: nobody}, nil))
			}
		}
	}
}

// All headers of small groups, and random ones of larger groups.
func TestEverySchedule(t *testing.T) {
	for slots := 1; slots <= 4; slots++ {
		for d := 1; d <= 3; d++ {
			units := make([]uint8, slots)
			for {
				checkSchedule(t, coded(d, slices.Clone(units)...))
				i := 0
				for ; i < slots && int(units[i]) == d; i++ {
					units[i] = 0
				}
				if i == slots {
					break
				}
				units[i]++
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		slots := 2 + rng.IntN(evenSlots-1)
		d := 1 + rng.IntN(min(24, ecraft.MaxUnits/slots))
		units := make([]uint8, slots)
		for i := range units {
			switch rng.IntN(4) {
			case 0:
				units[i] = uint8(d)
			case 1:
			default:
				units[i] = uint8(rng.IntN(d + 1))
			}
		}
		checkSchedule(t, coded(d, units...))
	}
}

// Groups that are too large to be evened out get everything all the same.
func TestScheduleOfLargeGroups(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, slots := range []int{17, 40, 128, 255} {
		d := ecraft.MaxUnits / slots
		units := make([]uint8, slots)
		for i := range units {
			units[i] = uint8(rng.IntN(d + 1))
		}
		h := coded(d, units...)
		for slot, id := range h.Members {
			got := int(units[slot])
			for _, p := range expected(h, id, nil) {
				got += p.Count
			}
			require.Equal(t, d, got)
		}
	}
}

func TestPlainEntriesHaveNoSchedule(t *testing.T) {
	for _, h := range []*ecraft.Header{{Kind: ecraft.Whole, PayloadLen: 5}, {Kind: ecraft.Carrier}} {
		require.Empty(t, Targets(h, 2, 7, Peers{Reader: nobody}, nil))
		require.Empty(t, expected(h, 2, nil))
	}
}

func TestTargetsDoesNotAllocate(t *testing.T) {
	for _, h := range []*ecraft.Header{coded(6, 2, 2, 2, 2), coded(6, 3, 3, 0, 6), coded(12, 12, 12, 0, 0, 4, 1)} {
		dst := make([]Push, 0, 16)
		require.Zero(t, testing.AllocsPerRun(100, func() { dst = Targets(h, 3, 7, Peers{Reader: nobody}, dst[:0]) }), "%v", h.Units)
	}
}

func BenchmarkTargets(b *testing.B) {
	for _, h := range []*ecraft.Header{coded(6, 2, 2, 2, 2), coded(6, 3, 3, 0, 0), coded(24, 6, 6, 6, 6, 6, 6, 0, 24)} {
		b.Run(fmt.Sprintf("D=%d/units=%v", h.D, h.Units), func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]Push, 0, 16)
			for b.Loop() {
				dst = Targets(h, 3, 7, Peers{Reader: nobody}, dst[:0])
			}
		})
	}
}

// expected appends to dst what is due to arrive at the node self by the
// schedule.
func expected(h *ecraft.Header, self uint64, dst []Push) []Push {
	slot := h.SlotOf(self)
	if slot < 0 || h.BaseOf(self) == h.D {
		return dst
	}
	var buf grid
	g := newSchedule(h, h.Slots, &buf)
	for i := 1; i < h.Slots; i++ {
		from := (slot + i) % h.Slots
		if n := g.at(slot, from); n > 0 {
			dst = append(dst, Push{Peer: h.Members[from], Count: int(n)})
		}
	}
	return dst
}
