// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCellsOfThePageSayWhatDiffersOnly(t *testing.T) {
	for long, want := range map[string]string{
		"run. Weft beside full copies 1.10x to 3.07x, RSPaxos 0.98x. Weft is the best safe side":                                                                                                         "full copies 1.10 to 3.07, RSPaxos 0.98",
		"run, also by processes. Weft beside CRaft 1.02x. Weft is the best safe side, or within 3% (at worst 0.98 of it: a, b)":                                                                          "*real*: CRaft 1.02. Within 3% of the best safe side (0.98: a, b)",
		"run. Weft beside full copies 0.67x, CRaft 0.11x. Weft is at 0.67 of the best safe side at worst (text 8x, full copies): because; at 0.11 of a side with a weaker guarantee at worst (a, CRaft)": "full copies 0.67, CRaft 0.11; **behind** at text 8x, full copies: because; worst at a, CRaft",
		"not run: a reason": "not run: a reason",
	} {
		require.Equal(t, want, brief(long))
	}
}
