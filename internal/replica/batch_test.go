// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// While few batches are under way each leaves at once; then the next waits until
// it is full, one ends, or a moment has passed since the last one.
func TestBatchesWaitForEachOther(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	n := c.elect(1)
	n.r.cfg.EagerBatches, n.r.cfg.MaxBatchBytes = 2, 10
	c.lose = func(m wire.Message) bool { return m.Class() == wire.ClassAppend }
	batches := func() int { c.settle(); return len(n.r.outbox.batches) }
	for i := range 5 {
		c.propose(1, "x")
		require.Equal(t, min(i+1, 2), batches())
	}
	require.Equal(t, 3, n.r.outbox.unbatched)
	c.propose(1, "0123456")
	require.Equal(t, 3, batches(), "it is full")
	require.Zero(t, n.r.outbox.unbatched)
	c.now += eagerEvery - 1
	c.propose(1, "y")
	require.Equal(t, 3, batches())
	c.now++
	c.propose(1, "y")
	require.Equal(t, 4, batches(), "the last one left a moment ago")
	c.propose(1, "y")
	require.Equal(t, 4, batches())
	n.r.cfg.Busy, n.r.cfg.Tick = func() float64 { return busyFrom }, tick
	c.now += busyEvery - 1
	require.Equal(t, 4, batches(), "processors are busy")
	c.now++
	c.turn(n)
	require.Equal(t, 5, batches(), "not for a tick: there may be few calls, and slow disks")
	n.r.cfg.Tick = busyEvery / 2
	c.propose(1, "z")
	c.now += busyEvery / 2
	c.turn(n)
	require.Equal(t, 6, batches(), "ticks are short")
	c.lose = func(wire.Message) bool { return false }
	c.run(15)
	require.Len(t, c.agree(), 10)
	require.Zero(t, n.r.outbox.unbatched)
}

// Under overload a command that would not be applied in time is refused, and not
// sent: it would be work for nobody.
func TestLateCommandsAreRefused(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	n := c.elect(1)
	n.r.cfg.EagerBatches = 1
	n.r.outbox.typical = 5 * tick
	begin := func(left int) Call {
		c.calls++
		n.r.Propose(c.calls, []byte("x"), c.now+tick/2+tick*Deadline(left))
		return c.calls
	}
	alone := begin(3)
	c.settle()
	require.NoError(t, c.result(alone).Err, "nothing is under way, so nobody knows better")
	c.lose = func(m wire.Message) bool { return m.Class() == wire.ClassAppend }
	first := begin(30)
	c.turn(n)
	late, early := begin(4), begin(12)
	c.run(2)
	require.ErrorIs(t, c.result(late).Err, ErrRefused)
	require.ErrorIs(t, c.result(late).Err, ErrOverloaded)
	require.Equal(t, uint64(1), n.r.count.RefusedLate)
	c.lose = func(wire.Message) bool { return false }
	c.run(5)
	require.NoError(t, c.result(first).Err)
	require.NoError(t, c.result(early).Err)
	require.Less(t, n.r.outbox.typical, 5*tick)
	require.Zero(t, n.r.Status().Queued)
	require.Len(t, c.agree(), 3)
}
