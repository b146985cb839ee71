// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/lab"
)

func TestLeast(t *testing.T) {
	for _, c := range []struct {
		voters, failed int
		want           float64
	}{
		{3, 0, 1}, {3, 1, 1}, {5, 0, 4. / 3}, {5, 1, 1.5}, {5, 2, 2}, {9, 0, 1.6}, {9, 4, 4}, {4, 0, 1.5}, {8, 3, 4},
	} {
		require.InDelta(t, c.want, least(c.voters, c.failed), 1e-9, "%+v", c)
	}
}

// TestBounds holds a part of the table to what is promised: what the leader sends
// is within 2% of the least from 64 KB on, no more than with any other way that
// has the same guarantee, and all together send each payload to each that is
// healthy, and once.
func TestBounds(t *testing.T) {
	sides := Sides()
	cfg := Bytes{
		Sizes: []int{4 << 10, 64 << 10}, Bytes: 4 << 20, MinCalls: 60, MaxCalls: 200, Models: Papers(),
		Group: Group{Voters: []int{3, 5}, Sides: sides, Seed: 1, Progress: io.Discard},
	}
	cells, err := cfg.cells(t.Context())
	require.NoError(t, err)
	cfg.Voters, cfg.Sizes = []int{9}, []int{64 << 10}
	more, err := cfg.cells(t.Context())
	require.NoError(t, err)
	cells = append(cells, more...)
	each := len(sides) + len(Papers())
	require.Len(t, cells, ((2+3)*2+5)*each)
	for row := range slices.Chunk(cells, each) {
		sent := row[0].Leader
		for _, c := range row[1:len(sides)] {
			sent = min(sent, c.Leader)
		}
		for _, c := range row {
			name := fmt.Sprintf("%s, N=%d, %d failed, %s", c.Side, c.Voters, c.Failed, lab.Bytes(c.Size))
			healthy := float64(c.Voters - c.Failed)
			switch c.Side {
			case full:
				require.InEpsilon(t, healthy-1, c.Leader, 0.02, name)
				require.InEpsilon(t, healthy-1, c.Network, 0.02, name)
			case "ours":
				// Envelopes that let the dead catch up are some bytes.
				require.LessOrEqual(t, c.Leader, sent*1.002, name)
				if c.Size >= 64<<10 {
					require.InEpsilon(t, c.Least, c.Leader, 0.02, name)
					require.InEpsilon(t, healthy-1, c.Network, 0.05, name)
				}
			case "rs-paxos":
				quorum := (c.Voters + c.Voters/2 + 2) / 2
				require.Equal(t, int(healthy) < quorum, c.Stuck, name)
			case "flexraft":
				if c.Size >= 64<<10 {
					require.InEpsilon(t, c.Least, c.Leader, 0.02, name)
				}
			}
		}
	}
}
