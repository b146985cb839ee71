// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func Example() {
	nodes := []uint64{1, 2, 3}
	groups := []Group{
		{ID: 10, Leader: 1, Candidates: nodes},
		{ID: 11, Leader: 1, Candidates: nodes},
		{ID: 12, Leader: 1, Candidates: nodes},
	}
	for _, m := range Plan(groups, Options{MaxMoves: 10}) {
		fmt.Printf("group %d: from node %d to node %d\n", m.Group, m.From, m.To)
	}
	// Output:
	// group 10: from node 1 to node 2
	// group 11: from node 1 to node 3
}

func carryOut(groups []Group, moves []Move) {
	for _, m := range moves {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.ID == m.Group })
		groups[i].Leader = m.To
	}
}

func loads(groups []Group) map[uint64]uint64 {
	load := map[uint64]uint64{}
	for _, g := range groups {
		load[g.Leader] += g.weight()
		for _, id := range g.Candidates {
			load[id] += 0
		}
	}
	return load
}

func highest(load map[uint64]uint64) (top uint64) {
	for _, l := range load {
		top = max(top, l)
	}
	return top
}

func drawGroups(t *rapid.T, weights uint64) []Group {
	nodes := rapid.Uint64Range(1, 7).Draw(t, "nodes")
	groups := make([]Group, rapid.IntRange(0, 30).Draw(t, "groups"))
	for i := range groups {
		g := Group{ID: uint64(i + 1), Leader: rapid.Uint64Range(1, nodes).Draw(t, "leader"), Weight: rapid.Uint64Range(0, weights).Draw(t, "weight")}
		for id := uint64(1); id <= nodes; id++ {
			if rapid.IntRange(0, 9).Draw(t, "candidate") > 0 {
				g.Candidates = append(g.Candidates, id)
			}
		}
		g.Hold = rapid.IntRange(0, 9).Draw(t, "hold") == 0
		groups[i] = g
	}
	return groups
}

// Plans are allowed, come to an end, never make the highest load higher, and do
// not depend on the order in which groups are given.
func TestPlansEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := drawGroups(t, 50)
		opts := Options{Hysteresis: rapid.IntRange(0, 60).Draw(t, "hysteresis"), MaxMoves: rapid.IntRange(0, 5).Draw(t, "moves")}
		for round := 0; ; round++ {
			require.Less(t, round, 500, "plans without end")
			turned := slices.Clone(groups)
			slices.Reverse(turned)
			moves := Plan(groups, opts)
			require.Equal(t, moves, Plan(turned, opts))
			require.LessOrEqual(t, len(moves), max(opts.MaxMoves, 1))
			if len(moves) == 0 {
				return
			}
			before := highest(loads(groups))
			for _, m := range moves {
				g := groups[m.Group-1]
				require.False(t, g.Hold)
				require.Equal(t, g.Leader, m.From)
				require.Contains(t, g.Candidates, m.To)
				require.NotEqual(t, m.From, m.To)
			}
			carryOut(groups, moves)
			require.LessOrEqual(t, highest(loads(groups)), before)
		}
	})
}

// With groups of one weight that any node can lead, the numbers end up even.
func TestPlansAreEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := []uint64{1, 2, 3, 4, 5}[:rapid.IntRange(1, 5).Draw(t, "nodes")]
		groups := make([]Group, rapid.IntRange(1, 40).Draw(t, "groups"))
		for i := range groups {
			groups[i] = Group{ID: uint64(i + 1), Leader: rapid.SampledFrom(nodes).Draw(t, "leader"), Candidates: nodes}
		}
		for moves := Plan(groups, Options{}); len(moves) > 0; moves = Plan(groups, Options{}) {
			carryOut(groups, moves)
		}
		load := loads(groups)
		least := ^uint64(0)
		for _, l := range load {
			least = min(least, l)
		}
		require.LessOrEqual(t, highest(load)-least, uint64(1), "%v", load)
	})
}

// Small differences move nothing if there is some hysteresis, large ones do.
func TestHysteresis(t *testing.T) {
	nodes := []uint64{1, 2}
	groups := []Group{
		{ID: 1, Leader: 1, Candidates: nodes, Weight: 50},
		{ID: 2, Leader: 1, Candidates: nodes, Weight: 8},
		{ID: 3, Leader: 2, Candidates: nodes, Weight: 40},
	}
	require.Equal(t, []Move{{Group: 2, From: 1, To: 2}}, Plan(groups, Options{}))
	require.Empty(t, Plan(groups, Options{Hysteresis: 30}))
	groups[2].Weight = 10
	require.Equal(t, []Move{{Group: 2, From: 1, To: 2}}, Plan(groups, Options{Hysteresis: 30}))
}

func TestNothingMovesWithoutALeader(t *testing.T) {
	nodes := []uint64{1, 2, 3}
	groups := []Group{{ID: 1, Leader: 1, Candidates: nodes}, {ID: 2, Leader: 1, Candidates: nodes}, {ID: 3, Candidates: nodes}}
	require.Empty(t, Plan(groups, Options{}))
	require.Empty(t, Plan(nil, Options{}))
}

func TestOptionsNameEveryMistake(t *testing.T) {
	err := Options{Hysteresis: -1, MaxMoves: -2}.Validate()
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "Hysteresis is -1")
	require.ErrorContains(t, err, "MaxMoves is -2")
}
