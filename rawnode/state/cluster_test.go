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
