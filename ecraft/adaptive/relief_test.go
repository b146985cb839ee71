// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBacklogIsWorkedOff uses full copies to the two followers nearby that are a seventh more than
// the interface can carry. The backlog stays shorter than the way to the far followers, although
// the leader does not wait for these followers all the time, and seldom changes its level.
func TestBacklogIsWorkedOff(t *testing.T) {
	const size = 16 << 10
	far := wire{trip: 30 * time.Millisecond}
	w := newWorld(5, fast, near, near, far, far)
	every := inSeconds(2 * size / fast / 1.15)
	w.load(size, every, time.Second)
	var longest time.Duration
	var entries, slow, changes int
	for before, end := 0, w.now+4*time.Second; w.now < end; entries++ {
		if entries%256 == 0 {
			w.beat()
		}
		level := w.propose(size).Level
		w.run(w.now + every)
		if longest = max(longest, w.busy-w.now); level > 1 {
			slow++
		}
		if before != 0 && level != before {
			changes++
		}
		before = level
	}
	require.Less(t, longest, far.trip/2)
	require.Positive(t, slow)
	require.Less(t, slow, entries/2)
	require.Less(t, changes, entries/50)
}

// TestHeldBack checks that a follower with a full window takes longer for the next entry, by the
// entries that other followers were already sent.
func TestHeldBack(t *testing.T) {
	const trip = 40 * time.Millisecond
	w := newWorld(5, fast, four(wire{trip: trip})...)
	w.load(4<<10, time.Millisecond, time.Second)
	l, base := w.a.link(2), w.a.link(2).base
	require.Zero(t, w.a.heldBack(l), "nothing waits")
	w.run(w.now + time.Second)
	w.a.Sent(3, w.index+100, 1, w.now)
	require.Zero(t, w.a.heldBack(l), "nothing is on its way, so nothing is known")
	w.a.Sent(2, w.index+50, 1, w.now)
	require.InEpsilon(t, base, w.a.heldBack(l), 0.01, "another fifty must wait for these")
	w.a.Sent(2, w.index+80, 1, w.now)
	require.InEpsilon(t, base/4, w.a.heldBack(l), 0.01)
	w.a.Sent(2, w.index, 1, w.now)
	require.Zero(t, w.a.heldBack(l), "sent again, although it was answered")
	w.a.Reset(w.now)
	require.Zero(t, w.a.heldBack(l))
}
