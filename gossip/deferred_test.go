// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// due takes everything that is due off the queue.
func due(d *Deferred, commit uint64, now int) (list []uint64) {
	for {
		id, ok := d.Next(commit, now)
		if !ok {
			return list
		}
		list = append(list, id.Index)
	}
}

func at(index uint64) ecraft.ID { return ecraft.ID{Term: 1, Index: index} }

func TestEagerPushesAreDueAtOnce(t *testing.T) {
	d := NewDeferred(0, 0)
	d.Add(at(1), 100, 5)
	d.Add(at(2), 100, 5)
	require.Equal(t, []uint64{1, 2}, due(d, 0, 5))
	require.Zero(t, len(d.queue))
}

func TestGapIsBytesCommittedBehind(t *testing.T) {
	d := NewDeferred(250, 1000)
	for i := uint64(1); i <= 6; i++ {
		d.Add(at(i), 100, 0)
	}
	require.Empty(t, due(d, 3, 1), "behind entry 1 are 200 bytes")
	require.Equal(t, []uint64{1}, due(d, 4, 1))
	require.Equal(t, []uint64{2, 3}, due(d, 6, 1))
	require.Empty(t, due(d, 60, 1), "what is not here is not counted")
	require.Equal(t, 3, len(d.queue))
}

// The last entries before a pause have nothing behind them.
func TestDelayEndsEveryWait(t *testing.T) {
	d := NewDeferred(1<<30, 3)
	d.Add(at(1), 100, 10)
	d.Add(at(2), 100, 12)
	require.Empty(t, due(d, 2, 12))
	require.Equal(t, []uint64{1}, due(d, 2, 13))
	require.Empty(t, due(d, 2, 14))
	require.Equal(t, []uint64{2}, due(d, 0, 15), "committed or not")
}

func TestCutForgetsPushes(t *testing.T) {
	d := NewDeferred(150, 1000)
	for i := uint64(1); i <= 3; i++ {
		d.Add(at(i), 100, 0)
	}
	d.Cut(2)
	require.Equal(t, 1, len(d.queue))
	d.Add(ecraft.ID{Term: 2, Index: 2}, 100, 0)
	require.Empty(t, due(d, 2, 0), "the bytes that were cut are not behind entry 1")
	d.Add(ecraft.ID{Term: 2, Index: 3}, 100, 0)
	require.Equal(t, []uint64{1}, due(d, 3, 0))
	d.Add(ecraft.ID{Term: 3, Index: 2}, 100, 0)
	require.Equal(t, 1, len(d.queue), "an entry takes the place of those from its index on")
}

func TestDeferredIsBounded(t *testing.T) {
	d := NewDeferred(1<<30, 1<<30)
	for i := range uint64(maxDeferred + 3) {
		d.Add(at(i+1), 1, 0)
	}
	require.Equal(t, []uint64{1, 2, 3}, due(d, 0, 0))
	require.Equal(t, maxDeferred, len(d.queue))
}

func TestWhatIsAppliedIsPushedAnyway(t *testing.T) {
	d := NewDeferred(1<<30, 1000)
	d.Add(at(1), 100, 0)
	d.Add(at(2), 100, 0)
	id, ok := d.NextUpTo(1)
	require.True(t, ok)
	require.Equal(t, at(1), id)
	_, ok = d.NextUpTo(1)
	require.False(t, ok)
	require.Equal(t, []uint64{2}, due(d, 2, 1000))
}
