// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// TestSilenceIsLearnt checks that recent silences decide which silence is too long. A long silence
// that was not a loss counts little, and is forgotten.
func TestSilenceIsLearnt(t *testing.T) {
	w := newWorld(5, fast, four(wire{trip: 10 * time.Millisecond})...)
	every := 20 * time.Millisecond
	p := w.load(64<<10, every, 300*time.Millisecond)
	require.Zero(t, p.Silence, "too few answers")
	p = w.load(64<<10, every, 3*time.Second)
	usual := p.Silence
	require.Equal(t, inSeconds(silenceFloor), usual, "answers come when they are due")

	w.links[0].dead = true
	w.load(64<<10, every, time.Second)
	w.links[0].dead = false
	p = w.load(64<<10, every, 100*time.Millisecond)
	require.Greater(t, p.Silence, usual)
	require.Less(t, p.Silence, 5*usual)
	p = w.load(64<<10, every, 10*time.Second)
	require.InEpsilon(t, usual, p.Silence, 0.1)
}

// TestBusyLinkIsNotSilent checks that the time of a large entry is no silence, after few entries.
func TestBusyLinkIsNotSilent(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	p := w.load(2<<20, 40*time.Millisecond, 800*time.Millisecond)
	require.Equal(t, 3, p.Level)
	require.Positive(t, p.Silence)
	require.Less(t, p.Silence, p.Predicted/2)
}

// TestSilentFollowerGetsNoUnits checks that a follower that is silent for too long gets no units, long before
// the follower counts as gone, and gets units again after its first answer.
func TestSilentFollowerGetsNoUnits(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	every := 2 * time.Millisecond
	w.load(64<<10, every, 2*time.Second)
	w.links[2].dead = true
	p := w.load(64<<10, every, 20*time.Millisecond)
	require.Zero(t, w.units[2])
	require.Positive(t, w.units[1])
	require.True(t, ecraft.Enough(w.r, w.units))
	require.Less(t, p.Level, 3)
	w.links[2].dead = false
	w.load(64<<10, every, 50*time.Millisecond)
	require.Positive(t, w.units[2])
}

// TestLostIsLeftOutOnceTheOthersAreFaster checks that the entry behind one that a lost follower held up
// goes to the others: these take less than the silence at their best level, though not for full copies.
func TestLostIsLeftOutOnceTheOthersAreFaster(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	w.load(2<<20, 40*time.Millisecond, 800*time.Millisecond)
	w.links[3].dead = true
	w.propose(2 << 20)
	w.run(w.now + 30*time.Millisecond)
	p := w.propose(2 << 20)
	require.Equal(t, 2, p.Level)
	require.Zero(t, w.units[3])
}

// TestLostIsKeptWhereTheRestIsSlow checks that the policy waits for a silent follower, until the
// follower is gone, if only a slow follower is left.
func TestLostIsKeptWhereTheRestIsSlow(t *testing.T) {
	w := newWorld(3, fast, near, wire{trip: near.trip, rate: fast / 80})
	every := 5 * time.Millisecond
	w.load(64<<10, every, 2*time.Second)
	require.Positive(t, w.units[0])
	w.links[0].dead = true
	w.load(64<<10, every, 20*time.Millisecond)
	require.Positive(t, w.units[0], "the other takes 42 ms for an entry")
	w.load(64<<10, every, time.Second)
	require.Zero(t, w.units[0])
	require.Positive(t, w.units[1])
}
