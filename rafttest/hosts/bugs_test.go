// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlantedBugs breaks each rule once and looks whether it shows, within a
// number of seeds.
func TestPlantedBugs(t *testing.T) {
	for _, tt := range []struct {
		bug    Bug
		kind   Kind
		within uint64
	}{
		{NeedsContext, EtcdLike, 3},
		{NeedsBeatContext, CockroachLike, 3},
		{OwnFirstByte, CockroachLike, 3},
		{CodesVetoed, CockroachLike, 5},
		{HandsOutCoded, EtcdLike, 3},
		{HandsOutCoded, CockroachLike, 3},
		{RewritesStored, EtcdLike, 3},
		{RewritesStored, CockroachLike, 3},
		{LocalsFirst, CockroachLike, 3},
		{CountsAnswers, EtcdLike, 5},
		{CountsAnswers, CockroachLike, 5},
		{SendsNewTypes, CockroachLike, 3},
		{MatchAhead, EtcdLike, 3},
		{MatchAhead, CockroachLike, 3},
		{HoldsBack, EtcdLike, 5},
		{MarshalsAgain, EtcdLike, 20},
		{MarshalsAgain, CockroachLike, 20},
		{TrustsOrder, EtcdLike, 200}, // of 300 seeds, 3 to 5 find it
	} {
		t.Run(fmt.Sprintf("%v/%v", tt.bug, tt.kind), func(t *testing.T) {
			for seed := uint64(1); seed <= tt.within; seed++ {
				if r := Run(seed, Options{Kind: tt.kind, Library: Weft(), Bug: tt.bug}); r.Err != nil {
					t.Log(r.Err)
					return
				}
			}
			require.Failf(t, "not found", "within %d seeds", tt.within)
		})
	}
}
