// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// Groups that share a budget refuse when all of them together have too much, and
// each gives back what it took, however its calls end.
func TestBudgetIsShared(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		budget := NewBudget(100)
		var groups []*cluster
		for range 2 {
			c := newCluster(t, core, 1, 2, 3)
			c.nodes[1].cfg.Budget = budget
			c.start(c.nodes[1])
			c.elect(2)
			groups = append(groups, c)
		}
		a, b := groups[0], groups[1]
		cut := func(wire.Message) bool { return true }
		a.lose, b.lose = cut, cut
		first := a.propose(1, strings.Repeat("a", 60))
		a.settle()
		second := b.propose(1, strings.Repeat("b", 60))
		b.settle()
		require.ErrorIs(t, b.result(second).Err, ErrOverloaded)
		require.ErrorIs(t, b.result(second).Err, ErrRefused)
		require.ErrorContains(t, b.result(second).Err, "60 bytes of commands over all groups, the bound is 100")
		require.Equal(t, int64(60), budget.Used())
		require.Equal(t, uint64(1), budget.Refused())

		third := b.propose(1, strings.Repeat("c", 40))
		b.settle()
		require.Equal(t, int64(100), budget.Used())
		b.lose = func(wire.Message) bool { return false }
		b.run(15)
		require.NoError(t, b.result(third).Err)
		require.Equal(t, int64(60), budget.Used())
		a.nodes[1].r.StopCalls()
		a.settle()
		require.ErrorIs(t, a.result(first).Err, ErrStopped)
		require.Zero(t, budget.Used())
	})
}

// A command that is larger than the whole budget can never be taken, so its error gives no
// advice to try again. A command of exactly the budget is taken.
func TestCommandAboveTheWholeBudgetIsTooLarge(t *testing.T) {
	c := newCluster(t, Weft, 1)
	n := c.nodes[1]
	n.cfg.Budget = NewBudget(100)
	c.start(n)
	c.elect(1)
	large := c.propose(1, strings.Repeat("x", 101))
	fits := c.propose(1, strings.Repeat("x", 100))
	c.settle()
	err := c.result(large).Err
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorIs(t, err, ErrTooLarge)
	require.NotErrorIs(t, err, ErrOverloaded)
	require.ErrorContains(t, err, "101 bytes, the budget of all groups is 100; split the command")
	require.NoError(t, c.result(fits).Err)
	require.Equal(t, uint64(1), n.cfg.Budget.Refused())
	require.Zero(t, n.cfg.Budget.Used())
}

// Any number of calls may be cancelled in a turn.
func TestCancelMany(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	for range 5000 {
		c.propose(1, "x")
	}
	for call := range c.calls {
		c.nodes[1].r.Cancel(call+1, ErrStopped)
	}
	c.settle()
	require.Len(t, c.done, 5000)
	require.ErrorIs(t, c.result(77).Err, ErrRefused)
	require.ErrorIs(t, c.result(77).Err, ErrStopped)
	require.Zero(t, c.nodes[1].r.Status().Queued)
}
