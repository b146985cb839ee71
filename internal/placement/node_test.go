// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clocked is a node with a clock that a test sets.
type clocked struct {
	*Node
	now time.Duration
}

func newClocked(t *testing.T, weight int) *clocked {
	c := &clocked{}
	n, err := NewNode(NodeConfig{ID: 1, Timeout: timeout, Clock: func() time.Duration { return c.now }, Weight: weight})
	require.NoError(t, err)
	c.Node = n
	return c
}

func TestBucketsGrowByAboutAFifth(t *testing.T) {
	for d := time.Microsecond; d < time.Hour; d += d/100 + 1 {
		low, high := least(bucketOf(d)), least(bucketOf(d)+1)
		require.LessOrEqual(t, low, d)
		require.Greater(t, high, d)
		if d >= 8*time.Microsecond {
			require.LessOrEqual(t, float64(high)/float64(low), 1.26)
		}
	}
	require.Equal(t, buckets-1, bucketOf(1<<62))
	require.Equal(t, 0, bucketOf(-1))
}

// A figure is that of the slow part of the time: of many fast writes and few slow writes, if the slow writes
// take a quarter of the time; and a spike is no figure. It ends with its window.
func TestFigureIsThatOfAQuarterOfTheTime(t *testing.T) {
	about := func(want, got time.Duration) {
		t.Helper()
		require.InEpsilon(t, float64(want), float64(got), 0.26)
	}
	n := newClocked(t, 0)
	require.False(t, n.Own().Known())
	for range 500 {
		n.Synced(time.Millisecond)
	}
	n.now += timeout
	about(time.Millisecond, n.Own().Sync)
	n.Synced(300 * time.Millisecond)
	n.now += timeout / 10
	about(time.Millisecond, n.Own().Sync)
	for range 50 {
		n.Synced(10 * time.Millisecond)
	}
	n.now += timeout / 10
	about(10*time.Millisecond, n.Own().Sync)
	n.now += timeout
	n.Own()
	n.now += timeout
	require.False(t, n.Own().Known(), "windows end")
}

// A process that stands still for most of the time, as in a container beyond its share, has turns as
// short as any: hardly one is under way when the process is stopped. Its ticks are late.
func TestLateTicksAreWaits(t *testing.T) {
	for late, wait := range map[time.Duration]time.Duration{16 * time.Millisecond: 12 * time.Millisecond, 50 * time.Microsecond: 0} {
		n := newClocked(t, 0)
		for range 1000 {
			n.Turned(100*time.Microsecond, 100*time.Microsecond)
		}
		for range 10 {
			n.Ticked(late)
		}
		n.now += timeout
		require.Greater(t, n.Own().Wait, wait)
		require.Less(t, n.Own().Wait, late+200*time.Microsecond)
	}
}

// A process that stands still five times in an election timeout limps, and alarms its groups for as long as that. Many groups
// that wait in one pause show one pause, and short waits none.
func TestProcessThatStandsStillAgainAndAgainLimps(t *testing.T) {
	for name, tt := range map[string]struct {
		groups      int
		every, wait time.Duration
		limps       bool
	}{
		"one group":                 {1, 20 * time.Millisecond, 18 * time.Millisecond, true},
		"many groups":               {100, timeout / 10, timeout / 20, true},
		"five times in longer":      {100, timeout / 3, timeout / 4, false},
		"short waits, all the time": {100, worth, worth - time.Microsecond, false},
	} {
		n := newClocked(t, 0)
		for n.now = timeout; n.now < 2*timeout; n.now += tt.every {
			for i := range tt.groups {
				n.Turned(tt.wait-time.Duration(i)*time.Microsecond, time.Microsecond)
			}
		}
		n.Own()
		require.Equal(t, tt.limps, n.Limps(), name)
		require.Equal(t, tt.limps, n.Alarmed(), name)
		n.now += timeout + time.Millisecond
		n.Own()
		require.False(t, n.Limps() || n.Alarmed(), name)
	}
	n := newClocked(t, 0)
	for n.now = timeout; n.now < 4*timeout; n.now += 20 * time.Millisecond {
		n.Ticked(18 * time.Millisecond)
		n.Own()
	}
	require.True(t, n.Limps())
	require.False(t, n.Alarmed(), "the groups know")
}

// Of little work nothing bad is said, unless it took long.
func TestFigureOfLittleWorkIsItsBest(t *testing.T) {
	n := newClocked(t, 0)
	n.Synced(3 * time.Millisecond)
	n.Synced(200 * time.Millisecond)
	n.now += timeout
	require.Less(t, n.Own().Sync, 4*time.Millisecond)
	n.Synced(600 * time.Millisecond)
	n.now += timeout / 2
	require.Greater(t, n.Own().Sync, 400*time.Millisecond)
}

// The queue to a single slow node is not the sender's fault.
func TestSendFigureIsOfTheNearerHalf(t *testing.T) {
	waits := map[uint64]time.Duration{2: time.Millisecond, 3: 2 * time.Millisecond, 4: time.Minute, 5: time.Minute}
	now := timeout
	n, err := NewNode(NodeConfig{ID: 1, Timeout: timeout, Clock: func() time.Duration { return now }, Queue: func(to uint64) time.Duration { return waits[to] }})
	require.NoError(t, err)
	for id := range waits {
		n.Heard(id, Report{Figure: Figure{}, Weight: 100})
	}
	require.Equal(t, 2*time.Millisecond, n.Own().Send)
}

// A node that writes reports at each tick, so that a long way is known soon.
func TestReportsAreOftenUnderLoad(t *testing.T) {
	n := newClocked(t, 0)
	sent := 0
	for n.now = 0; n.now < 10*timeout; n.now += timeout / 10 {
		n.Synced(time.Millisecond)
		if n.Due() {
			n.Owed([]uint64{1, 2}, func(uint64, Report) { sent++ })
		}
	}
	require.Equal(t, 100, sent)
}

// However many groups there are, each other node gets one report in an election timeout, and nothing is allocated
// when none is due.
func TestReportsBelongToNodesNotToGroups(t *testing.T) {
	n := newClocked(t, 0)
	sent := map[uint64]int{}
	tell := func(to uint64, _ Report) { sent[to]++ }
	const timeouts, tick = 50, timeout / 10
	for n.now = 0; n.now < timeouts*timeout; n.now += tick {
		for range 500 {
			n.Owed([]uint64{1, 2, 3}, tell)
		}
		n.Owed([]uint64{1, 4}, tell)
	}
	for id := uint64(2); id <= 4; id++ {
		require.InDelta(t, timeouts, sent[id], 2, "node %d", id)
	}
	require.Zero(t, sent[1])
	members := []uint64{1, 2, 3}
	require.Zero(t, testing.AllocsPerRun(1000, func() { n.Owed(members, tell) }))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		n.Turned(time.Microsecond, time.Millisecond)
		n.Synced(time.Millisecond)
		n.Ticked(time.Millisecond)
	}))
	require.NoError(t, n.SetWeight(-1))
	before := sent[2]
	n.Owed(members, tell)
	require.Equal(t, before+1, sent[2], "a new weight is told at once")
}

func TestReportsCountForAWhile(t *testing.T) {
	n := newClocked(t, 50)
	require.Equal(t, 50, n.Weight())
	require.True(t, n.even)
	n.Heard(2, Report{Figure: Figure{Sync: time.Millisecond}, Weight: 50})
	require.True(t, n.even)
	n.Heard(2, Report{Figure: Figure{Sync: time.Millisecond}, Weight: 1 << 40})
	require.False(t, n.even)
	f, weight, counts := n.Of(2)
	require.Equal(t, Figure{Sync: time.Millisecond}, f)
	require.Equal(t, MaxWeight, weight)
	require.True(t, counts)
	n.now += reportsLast*timeout + 1
	_, _, counts = n.Of(2)
	require.False(t, counts)
	_, weight, counts = n.Of(9)
	require.Equal(t, DefaultWeight, weight)
	require.False(t, counts)
	n.Stalled()
	require.True(t, n.Seen()[0].Health.Stalled)
	require.Equal(t, []uint64{1, 2}, []uint64{n.Seen()[0].Node, n.Seen()[1].Node})
	n.now += timeout
	require.False(t, n.Own().Stalled)
}

func TestNodeConfigNamesEveryMistake(t *testing.T) {
	_, err := NewNode(NodeConfig{Weight: MaxWeight + 1})
	require.ErrorIs(t, err, ErrInvalid)
	for _, text := range []string{"ID is 0", "Timeout is 0s", "Clock is nil", "Weight is 1001, want at most 1000"} {
		require.ErrorContains(t, err, text)
	}
	require.Equal(t, []int{DefaultWeight, 0, 7}, []int{Weigh(0), Weigh(-3), Weigh(7)})
	require.ErrorContains(t, newClocked(t, 0).SetWeight(2000), "2000")
}
