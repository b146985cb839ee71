// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/internal/rounds"
)

// paperPolicies are the policies whose choice depends on health alone.
func paperPolicies(n int) []SetPolicy {
	list := []SetPolicy{RSPaxos{}, CRaft{}, HRaft{}, FlexRaft{}}
	for c := 1; c <= n-(n-1)/2; c++ {
		list = append(list, Crossword{C: c})
	}
	return list
}

// TestPapersCosts compares the leader's bytes for each payload byte with the figures in the
// FlexRaft paper (table 1, k = 3).
func TestPapersCosts(t *testing.T) {
	for _, c := range []struct {
		policy SetPolicy
		cost   [3]float64 // by failed followers
	}{
		{CRaft{}, [3]float64{4. / 3, 3, 2}},
		{HRaft{}, [3]float64{4. / 3, 5. / 3, 2}},
		{FlexRaft{}, [3]float64{4. / 3, 3. / 2, 2}},
		{Crossword{C: 1}, [3]float64{4. / 3, 2, 2}},
	} {
		for failed, want := range c.cost {
			r := rounds.Of(5, 3000, 1<<failed-1)
			sets := make([]ecraft.Set, 4)
			p := c.policy.AssignSets(r, sets)
			units := 0
			for i, m := range r.Followers {
				if m.Healthy {
					units += sets[i].Len()
				}
			}
			require.InDelta(t, want, float64(units)/float64(p.D), 1e-9, "%s with %d failed", c.policy.Name(), failed)
		}
	}
}

// TestPapersSurvive walks all patterns of health and answers: an entry that may commit can be
// decoded after any Survives failures, and an entry answered by all healthy servers commits if the
// policy claims to survive this number of failures.
func TestPapersSurvive(t *testing.T) {
	for n := 3; n <= 9; n++ {
		for _, policy := range paperPolicies(n) {
			t.Run(fmt.Sprintf("N=%d/%s", n, policy.Name()), func(t *testing.T) {
				committed := 0
				for dead := uint(0); dead < 1<<(n-1); dead++ {
					if bits.OnesCount(dead) > (n-1)/2 {
						continue
					}
					r := rounds.Of(n, 6000, dead)
					sets := make([]ecraft.Set, n-1)
					p := policy.AssignSets(r, sets)
					for answers := uint(0); answers < 1<<(n-1); answers++ {
						answered := make([]bool, n-1)
						for i := range answered {
							answered[i] = answers>>i&1 == 1
						}
						if !p.Commits(sets, answered) {
							alive := answers == ^dead&(1<<(n-1)-1)
							require.False(t, alive && bits.OnesCount(dead) <= n-p.Quorum, "dead %b: all others answered", dead)
							continue
						}
						committed++
						require.True(t, survives(p, sets, answered), "dead %b answered %b", dead, answers)
					}
				}
				require.Positive(t, committed)
			})
		}
	}
}

// survives reports whether the units left after every choice of failures can be decoded: of the
// followers that answered, Survives-1 fail, and the leader fails, too.
func survives(p SetPlan, sets []ecraft.Set, answered []bool) bool {
	if p.Survives == 0 {
		return true
	}
	var held []ecraft.Set
	for i, yes := range answered {
		if yes {
			held = append(held, sets[i])
		}
	}
	return ecraft.CoveredSets(p.D, len(held)-(p.Survives-1), held)
}

// TestRSPaxosIsWeaker shows that at N = 5 two failures right after a commit lose the entry.
func TestRSPaxosIsWeaker(t *testing.T) {
	r := rounds.Of(5, 3000, 0)
	sets := make([]ecraft.Set, 4)
	p := RSPaxos{}.AssignSets(r, sets)
	require.Equal(t, 4, p.Quorum)
	require.True(t, p.Commits(sets, []bool{true, true, true, false}))
	require.Equal(t, 1, p.Survives)
	require.False(t, ecraft.CoveredSets(p.D, 2, []ecraft.Set{sets[0], sets[1], sets[2]}), "the leader and one more gone")
}

// TestCrosswordLine checks that the published chooser finds the line through its samples, and picks
// by the line.
func TestCrosswordLine(t *testing.T) {
	c := NewCrosswordAdaptive()
	r := rounds.Of(5, 300_000, 0)
	sets := make([]ecraft.Set, 4)
	require.Equal(t, 1, c.AssignSets(r, sets).Level, "no samples: full copies")
	for _, m := range r.Followers {
		c.Joined(m.ID, true, 0)
	}
	// 1 ms and 100 ns a byte: bytes decide.
	for i := range 100 {
		at := time.Duration(i) * 10 * time.Millisecond
		size := 1000 * (i % 7)
		for _, m := range r.Followers {
			c.Sent(m.ID, uint64(i), size, at)
			c.Acked(m.ID, uint64(i), 0, at+time.Millisecond+time.Duration(size)*100)
		}
	}
	r.Now = 2 * time.Second
	p := c.AssignSets(r, sets)
	require.Equal(t, 3, p.Level)
	require.InDelta(t, 0.011, p.Predicted.Seconds(), 1e-4)
	// A follower far away: two of the other followers are enough for full copies.
	r.Now += time.Second
	for i := range 100 {
		at := r.Now + time.Duration(i)*10*time.Millisecond
		for j, m := range r.Followers {
			delay := time.Millisecond
			if j == 3 {
				delay = time.Second
			}
			c.Sent(m.ID, uint64(200+i), 100, at)
			c.Acked(m.ID, uint64(200+i), 0, at+delay)
		}
	}
	r.Now += 2 * time.Second
	r.Size = 3000
	require.Less(t, c.AssignSets(r, sets).Level, 3)
}
