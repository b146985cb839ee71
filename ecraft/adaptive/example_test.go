// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive_test

import (
	"fmt"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
)

// A policy without measurements assigns units to the followers of an entry.
func Example() {
	policy := adaptive.New(adaptive.Options{})
	policy.Reset(0)
	for id := uint64(2); id <= 5; id++ {
		policy.Joined(id, true, 0)
	}
	round := &ecraft.Round{Index: 1, Size: 1 << 20, Voters: 5, Layout: ecraft.NewLayout(5, 4)}
	for id := uint64(2); id <= 5; id++ {
		round.Followers = append(round.Followers, ecraft.Member{ID: id, Healthy: true})
	}
	units := make([]int, len(round.Followers))
	plan := policy.Assign(round, units)
	fmt.Println("level", plan.Level, "units", units)
	// Output: level 3 units [2 2 2 2]
}
