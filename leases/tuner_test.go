// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func tunerOf(spans int) *tuner { return newTuner(TunerConfig{Spans: spans, Least: 100}) }

// use counts reads of a span near nodes 1, 2 and so on, and writes.
func (t *tuner) use(key string, writes uint32, reads ...uint32) {
	for i, n := range reads {
		t.group.add(NodeID(i+1), Usage{Span: KeySpan(key), Reads: n})
	}
	t.group.add(1, Usage{Span: KeySpan(key), Writes: writes})
}

func TestTunerNamesNodesNearTheReads(t *testing.T) {
	x := tunerOf(10)
	x.use("a", 49, 600, 300, 100) // 95.3% reads; node 3 is near a tenth of them
	x.use("b", 60, 600, 300, 100) // 94.3%
	x.use("c", 0, 50)             // little is known
	require.Equal(t, []Want{{Span: KeySpan("a"), Nodes: []NodeID{1, 2}, Tuned: true}}, x.decide(nil))
}

func TestTunerDoesNotFlapAtTheEdge(t *testing.T) {
	has := []Want{{Span: KeySpan("a"), Nodes: []NodeID{1, 3}, Tuned: true}}
	for _, c := range []struct {
		writes uint32
		reads  []uint32
		want   []NodeID
	}{
		{1000 * 8 / 92, []uint32{600, 280, 120}, []NodeID{1, 2, 3}}, // 92%: it keeps what it has, and 2 has come near
		{1000 * 8 / 92, []uint32{750, 150, 100}, []NodeID{1}},       // 3 is near a tenth only
		{1000 * 11 / 89, []uint32{600, 280, 120}, nil},              // 89%
	} {
		x := tunerOf(10)
		x.use("a", c.writes, c.reads...)
		var got []NodeID
		if list := x.decide(has); len(list) > 0 {
			got = list[0].Nodes
		}
		require.Equal(t, c.want, got, "%+v", c)
	}
}

// Operators' choices stay, and no span that overlaps with such a choice is
// tuned.
func TestTunerLeavesOperatorsAlone(t *testing.T) {
	x := tunerOf(10)
	x.use("a", 0, 1000)
	x.use("x", 0, 1000)
	fixed := Want{Span: Span{End: "m"}, Nodes: []NodeID{3}}
	require.Equal(t, []Want{fixed, {Span: KeySpan("x"), Nodes: []NodeID{1}, Tuned: true}}, x.decide([]Want{fixed}))
}

// A new leader knows of no reads yet, and keeps the old leader's choices for two windows.
func TestTunerOfANewLeaderWaits(t *testing.T) {
	x := tunerOf(10)
	has := []Want{{Span: KeySpan("a"), Nodes: []NodeID{2}, Tuned: true}}
	for range 2 {
		require.Equal(t, has, x.decide(has))
		x.windows++
	}
	require.Empty(t, x.decide(has))
}

// A span with many reads is found among many spans with few, within bounded memory, and
// forgotten after its reads end.
func TestTunerFindsWhatIsReadOften(t *testing.T) {
	x := tunerOf(64)
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		if r.IntN(2) == 0 {
			x.use("hot", 0, 0, 1)
		} else {
			x.use(fmt.Sprint(r.IntN(1_000_000)), 0, 1)
		}
		require.LessOrEqual(t, len(x.group.cells), 64)
	}
	got := x.decide(nil)
	require.Contains(t, got, Want{Span: KeySpan("hot"), Nodes: []NodeID{2}, Tuned: true})
	require.LessOrEqual(t, len(got), 3)
	x.windows = 5
	for range 40 {
		x.group.halve()
	}
	require.Empty(t, x.group.cells)
	require.Empty(t, x.decide(got))
}

// Nodes report their clients' reads and writes, the leader names the nodes near, and stops when
// the reads stop.
func TestTunerWorksThroughMessages(t *testing.T) {
	s := newStage(t, 3, 3, nil, func(x *settings) {
		x.cfg.Tuner = &TunerConfig{Window: 100 * ms, Spans: 16, Least: 50}
	})
	reads := func(n int, id NodeID) {
		for range n {
			s.member(id).lease.CountRead(keyOf(0))
			s.pass(ms)
		}
	}
	reads(500, 3)
	require.True(t, s.serves(3, keyOf(0)))
	require.False(t, s.serves(3, keyOf(1)))
	require.False(t, s.serves(2, keyOf(0)))
	for range 300 {
		s.member(2).lease.CountWrite(keyOf(0))
		s.member(3).lease.CountRead(keyOf(0))
		s.pass(ms)
	}
	require.False(t, s.serves(3, keyOf(0)), "half are writes")
	reads(600, 2)
	require.True(t, s.serves(2, keyOf(0)))
	s.pass(3 * time.Second)
	require.Empty(t, s.member(1).lease.wish.wanted)
}
