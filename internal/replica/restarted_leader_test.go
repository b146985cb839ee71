// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// A leader appends a proposal and restarts, and the network brings the proposal once more. An
// answer that this node does not lead the term would be true, and would be taken for a refusal of
// the command in the log.
func TestRestartedLeaderDoesNotRefuseWhatItAppendedBefore(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		var sent []wire.Message
		c.lose = func(m wire.Message) bool {
			if m.Kind() == wire.KindProposal {
				sent = append(sent, m)
			}
			return m.To == 2 || m.From == 3 // which gets the entry, so that it is not lost
		}
		call := c.propose(2, "x")
		c.settle()
		require.Len(t, sent, 1)
		require.NotContains(t, c.done, call)
		c.start(c.nodes[1])
		c.lose = func(m wire.Message) bool { return m.Class() == wire.ClassAppend }
		require.NoError(t, c.nodes[1].r.Receive(sent[0]))
		c.settle()
		c.nodes[2].r.Cancel(call, nil)
		c.settle()
		require.ErrorIs(t, c.result(call).Err, ErrUnknown)
		c.lose = func(wire.Message) bool { return false }
		c.run(60)
		require.Equal(t, []string{"x"}, c.agree())
	})
}
