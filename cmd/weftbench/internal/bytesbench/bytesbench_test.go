// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bytesbench

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
)

func TestLeast(t *testing.T) {
	for _, c := range []struct {
		voters, failed int
		want           float64
	}{
		{3, 0, 1}, {3, 1, 1}, {5, 0, 4. / 3}, {5, 1, 1.5}, {5, 2, 2}, {9, 0, 1.6}, {9, 4, 4}, {4, 0, 1},
	} {
		require.InDelta(t, c.want, Least(c.voters, c.failed), 1e-9, "%+v", c)
	}
}

// TestBounds holds a part of the table to what is promised.
func TestBounds(t *testing.T) {
	cells, err := Run(t.Context(), Config{
		Voters: []int{3, 5, 7}, Sizes: []int{4 << 10, 64 << 10}, Bytes: 4 << 20, MinCalls: 60, MaxCalls: 400,
		Sides: virtual.Sides(), Models: Papers(), Seed: 1, Progress: io.Discard,
	})
	require.NoError(t, err)
	require.Len(t, cells, (2+3+4)*2*(len(virtual.Sides())+len(Papers())))
	for _, c := range cells {
		name := fmt.Sprintf("%s, N=%d, %d failed, %s", c.Side, c.Voters, c.Failed, virtual.Bytes(c.Size))
		healthy := float64(c.Voters - c.Failed)
		switch {
		case c.Side == "full":
			require.InEpsilon(t, healthy-1, c.Leader, 0.02, name)
			require.InEpsilon(t, healthy-1, c.Network, 0.02, name)
		case c.Side == "rs-paxos":
			quorum := (c.Voters + c.Voters/2 + 2) / 2
			require.Equal(t, int(healthy) < quorum, c.Stuck, name)
		case c.Side == "flexraft" && c.Size >= 64<<10:
			require.InEpsilon(t, c.Least, c.Leader, 0.02, name)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	_, err := Run(t.Context(), Config{Voters: []int{2, 5}, Sizes: []int{7}})
	require.ErrorContains(t, err, "voters: 2, want 3 to 15")
	require.ErrorContains(t, err, "sizes: 7 bytes, want 8")
}
