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

// TestPromptWhenIdle: on an idle network, with eager gossip, no follower waits
// for a payload that it knows to be committed. That is so while sending a
// follower's units takes no longer than a message's delay; so large payloads
// have a longer way here.
func TestPromptWhenIdle(t *testing.T) {
	for _, voters := range []int{3, 5, 7} {
		for size, delay := range map[int]time.Duration{4 << 10: time.Millisecond, 64 << 10: time.Millisecond, 1 << 20: 10 * time.Millisecond} {
			cfg := Gossip{
				Loads: []float64{0}, Time: time.Second,
				Group: Group{Voters: []int{voters}, Size: size, Delay: delay, Sides: GossipSides(), Seed: 1, Progress: io.Discard},
			}
			rows, err := cfg.rows(t.Context())
			require.NoError(t, err)
			require.Len(t, rows, len(cfg.Sides))
			for i, row := range rows {
				require.Greater(t, row.Calls, 9)
				require.Len(t, row.Wait, row.Calls*(voters-1))
				name := []any{"%s, N=%d, %s", row.Side, voters, lab.Bytes(size)}
				switch side := cfg.Sides[i]; {
				case !side.Coded: // the last to get its copy may have to sync it
					require.LessOrEqual(t, lab.Quantile(row.Wait, 1), Sync, name...)
				case !side.Deferred:
					require.InDelta(t, 1, row.Prompt, 1e-9, name...)
				}
			}
		}
	}
}
