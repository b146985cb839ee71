// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
)

// A client that tries each command again until it is acknowledged, at any node, under
// faults, has each take effect once.
func TestSessionsInACluster(t *testing.T) {
	for seed := range uint64(5) {
		story := run(t, seed)
		if seed == 0 {
			require.Equal(t, story, run(t, seed), "with checkpoints inline, a seed repeats")
		}
	}
}

func run(t *testing.T, seed uint64) (story uint64) {
	c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{
		Seed:   seed,
		Adjust: func(_ uint64, c *rawnode.ReplicaConfig) { c.RetainEntries, c.RetainBytes = 5, 1000 },
		StateMachine: func(m rawnodetest.Member) (rawnode.StateMachine, error) {
			return state.OpenMemory(newTally, state.Options{
				FS: m.Dir.FS, Dir: m.Dir.Path, Identity: fmt.Sprint("node ", m.Node), CheckpointBytes: 1500, Inline: true,
				Sessions: &session.DefaultLimits,
			})
		},
	})
	id := c.MustPropose(1, state.OpenSession()).(session.ID)
	c.Chaos(20*time.Second, rawnodetest.Faults{})
	n := uint64(0)
	for c.Now() < 20*time.Second {
		n++
		command := state.InSession(id, n, n-1, []byte("a"))
		for try := uint64(0); ; try++ {
			got, err := c.Propose((n+try)%3+1, command).Wait()
			if err == nil {
				require.Equal(t, fmt.Sprint(n), got, "seed %d, command %d, try %d", seed, n, try)
				break
			}
			c.Run(50 * time.Millisecond)
		}
	}
	c.Agree(time.Minute, func(sm rawnode.StateMachine) (s string, err error) {
		sm.(*state.Memory[*tally]).View(func(t *tally) { s = t.text() })
		return s, nil
	})
	require.Greater(t, n, uint64(30))
	require.Equal(t, fmt.Sprintf(`{"a":%d}`, n), text(c.StateMachine(1).(*state.Memory[*tally])))
	return c.Story()
}

// A replica with other limits of sessions ends a session that the others keep, and applies again what
// its client repeats. So such replicas have to notice each other before that.
func TestReplicaWithOtherLimitsOfSessionsIsLeftBehind(t *testing.T) {
	limits := map[uint64]*session.Limits{1: &session.DefaultLimits, 2: &session.DefaultLimits, 3: {Sessions: 1, Results: 1, ResultBytes: 100}}
	c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{
		Seed: 1,
		StateMachine: func(m rawnodetest.Member) (rawnode.StateMachine, error) {
			return state.OpenMemory(newTally, state.Options{FS: m.Dir.FS, Dir: m.Dir.Path, Inline: true, CheckpointBytes: 200, Sessions: limits[m.Node]})
		},
	})
	first := c.MustPropose(1, state.OpenSession()).(session.ID)
	again := state.InSession(first, 1, 0, []byte("a"))
	require.Equal(t, "1", c.MustPropose(1, again))
	c.MustPropose(2, state.OpenSession()) // ends the first session where there is room for one
	require.Equal(t, "1", c.MustPropose(2, again))
	c.Run(time.Minute)
	require.Zero(t, c.StateMachine(3).(*state.Memory[*tally]).Applied())
	require.ErrorIs(t, c.Status(3).Settings[1], rawnode.ErrSettings)
	require.ErrorContains(t, c.Status(3).Settings[1], `session limits is "1 sessions of 1 results in 100 bytes" at node 3 and "10000 sessions of 16 results in 65536 bytes" at node 1`)
	_, err := c.Propose(3, state.Plain([]byte("b"))).Wait()
	require.ErrorIs(t, err, rawnode.ErrSettings)

	limits[3] = &session.DefaultLimits
	c.Restart(3, false)
	c.Agree(time.Minute, func(sm rawnode.StateMachine) (string, error) { return text(sm.(*state.Memory[*tally])), nil })
}
