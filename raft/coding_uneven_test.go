// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// uneven assigns as it says, whoever is healthy.
type uneven []int

func (u uneven) Assign(_ *ecraft.Round, units []int) ecraft.Plan {
	copy(units, u)
	return ecraft.Plan{}
}

// Members that were assigned nothing complete entries by pushes alone, also of
// members that were assigned the whole payload. No tick passes.
func TestPushesReachWhoeverWasAssignedLess(t *testing.T) {
	for _, units := range []uneven{{6, 6, 0, 0}, {0, 6, 3, 3}, {6, 0, 1, 5}, {2, 2, 2, 2}} {
		t.Run(fmt.Sprint(units), func(t *testing.T) {
			g := newGroup(t, 5)
			g.policy = func() ecraft.Policy { return units }
			for _, id := range g.ids() {
				g.start(id)
			}
			g.elect(1)
			g.tick(2) // everybody is known to be capable
			var want [][]byte
			for i := range 3 {
				want = append(want, payload(i, 40000))
				g.propose(1, want[i])
			}
			g.requireApplied(want, g.ids()...)
			require.Zero(t, g.events[raft.CodingAsked])
			require.NotZero(t, g.events[raft.CodingPushed])
			require.Zero(t, g.events[raft.CodingRejected])
		})
	}
}
