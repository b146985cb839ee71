// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// A leader that is cut off believes in its lease for up to two of its own election timeouts; the other
// members elect after one of theirs. So a read is stale with equal settings, and for much longer with
// an ElectionTick of the leader's that is larger.
func TestNoReadIsStaleByALeaseOfTicks(t *testing.T) {
	for name, ticks := range map[string]int{"equal settings": 10, "a leader with a longer timeout": 40} {
		t.Run(name, func(t *testing.T) {
			bothCores(t, func(t *testing.T, core NewCore) {
				c := newCluster(t, core, 1, 2, 3)
				for _, id := range c.ids() {
					cfg := &c.nodes[id].cfg
					cfg.ReadOnly = raft.ReadOnlyLeaseBased
					if id == 1 {
						cfg.ElectionTick = ticks
					}
					if err := cfg.Validate(); err != nil {
						require.ErrorIs(t, err, ErrInvalid)
						require.ErrorContains(t, err, "ReadOnly is 1, want 0 (ReadOnlySafe): reads by ReadOnlyLeaseBased miss acknowledged commands")
						return
					}
					c.start(c.nodes[id])
				}
				c.elect(1)
				c.run(2)
				c.lose = func(m wire.Message) bool { return m.From == 1 || m.To == 1 }
				for i := 0; c.nodes[2].r.Leader() != 2 && c.nodes[3].r.Leader() != 3; i++ {
					require.Less(t, i, 40, "a new leader")
					c.run(1)
				}
				written := c.propose(c.nodes[2].r.Leader(), "x")
				c.settle()
				require.NoError(t, c.result(written).Err)
				read := c.read(1, ReadIndex{})
				c.settle()
				if d, ended := c.done[read]; ended && d.Err == nil {
					require.GreaterOrEqual(t, d.Index, c.result(written).Index, "the read misses a command that was acknowledged before it")
				}
			})
		})
	}
}
