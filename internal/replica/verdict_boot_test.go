// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// A node starts, and its clock was set back since its last start. The leader, which
// remembers that one by a proposal that it refused, says so; the log does not.
func TestBootBehindARefusedOne(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		leader := c.elect(1)
		n := c.nodes[2]
		later := wire.CommandID{Origin: 2, Boot: 1000, Sequence: 1}
		_ = leader.r.inbox.receive(2, wire.Proposal{ID: later, Number: 1, Term: 99, Data: encodeBatch(later, 1, [][]byte{[]byte("refused")})})
		c.settle()
		n.boots = 5
		c.start(n)
		c.run(2)
		// The first sending is lost, so that its fate is open until the term ends. Nothing waits for that.
		c.lose = func(m wire.Message) bool { return m.Kind() == wire.KindProposal }
		lost := c.propose(2, "lost")
		c.run(1)
		c.lose = func(wire.Message) bool { return false }
		c.run(2 * n.r.cfg.ElectionTick)
		require.ErrorIs(t, c.result(lost).Err, ErrUnknown)
		var calls []Call
		for range 3 {
			calls = append(calls, c.propose(2, "x"))
			c.run(1)
		}
		c.run(30)
		for _, call := range calls {
			require.NoError(t, c.result(call).Err)
		}
		require.Equal(t, []string{"x", "x", "x"}, c.agree())
	})
}
