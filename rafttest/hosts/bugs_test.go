// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"testing"
)

// TestPlantedBugs breaks each rule once and looks whether it shows, within a
// number of seeds.
func TestPlantedBugs(t *testing.T) {
	for _, tt := range []struct {
		bug    bug
		kind   kind
		within uint64
	}{
		{needsContext, etcdLike, 3},
		{needsBeatContext, cockroachLike, 3},
		{ownFirstByte, cockroachLike, 3},
		{codesVetoed, cockroachLike, 5},
		{handsOutCoded, etcdLike, 3},
		{handsOutCoded, cockroachLike, 3},
		{rewritesStored, etcdLike, 3},
		{rewritesStored, cockroachLike, 3},
		{sendsLocalsFirst, cockroachLike, 3},
		{countsAnswers, etcdLike, 5},
		{countsAnswers, cockroachLike, 5},
		{sendsNewTypes, cockroachLike, 3},
		{saysMatchAhead, etcdLike, 3},
		{saysMatchAhead, cockroachLike, 3},
		{holdsBack, etcdLike, 5},
		{marshalsAgain, etcdLike, 20},
		{marshalsAgain, cockroachLike, 20},
		{trustsOrder, etcdLike, 200}, // of 300 seeds, 3 to 5 find it
	} {
		t.Run(fmt.Sprintf("%v/%v", tt.bug, tt.kind), func(t *testing.T) {
			_ = hunt(t, tt.within, options{Kind: tt.kind, Library: weft(), Bug: tt.bug})
		})
	}
}
