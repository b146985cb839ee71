// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/lab"
)

// TestFailover: at the median, a new leader with coding commits at most a round trip
// later than a new leader with full copies.
func TestFailover(t *testing.T) {
	cfg := Failover{
		Seeds: 25, Group: Group{Voters: []int{3, 5}, Size: 64 << 10, Load: 0.5, Delay: time.Millisecond, Seed: 1, Sides: Sides(), Progress: io.Discard},
	}
	rows, err := cfg.rows(t.Context())
	require.NoError(t, err)
	base := map[int]lossRow{}
	for _, r := range rows {
		require.Len(t, r.Gaps, cfg.Seeds)
		if r.Side == cfg.Sides[0].Name {
			base[r.Voters] = r
		}
		for _, g := range r.Gaps {
			require.Positive(t, g.Commit)
			require.Less(t, g.Elected+g.Commit, g.Whole+1)
			require.GreaterOrEqual(t, g.Fresh, g.Commit)
		}
		more := r.more(base[r.Voters], commit)
		require.LessOrEqual(t, lab.Quantile(more, 0.5), r.RTT, "%s, N=%d", r.Side, r.Voters)
		if r.Side == "ours" {
			more = r.more(base[r.Voters], fresh)
			require.LessOrEqual(t, lab.Quantile(more, 0.5), r.RTT, "new: N=%d", r.Voters)
		}
	}
}
