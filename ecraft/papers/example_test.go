// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers_test

import (
	"fmt"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/papers"
)

// RS-Paxos and CRaft assign the units of an entry in a group of five.
func Example() {
	round := &ecraft.Round{Index: 1, Size: 1 << 20, Voters: 5, Layout: ecraft.NewLayout(5, 4)}
	for id := uint64(2); id <= 5; id++ {
		round.Followers = append(round.Followers, ecraft.Member{ID: id, Healthy: true})
	}
	for _, policy := range []papers.SetPolicy{papers.RSPaxos{}, papers.CRaft{}} {
		plan := policy.AssignSets(round, make([]ecraft.Set, len(round.Followers)))
		fmt.Printf("%s: %d units decode, a quorum is %d servers, %d may fail\n", policy.Name(), plan.D, plan.Quorum, plan.Survives)
	}
	// Output:
	// rs-paxos: 3 units decode, a quorum is 4 servers, 1 may fail
	// craft: 3 units decode, a quorum is 5 servers, 2 may fail
}
