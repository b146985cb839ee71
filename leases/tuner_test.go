// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func tunerOf(spans int) *tuner { return newTuner(TunerConfig{Spans: spans, Least: 100}) }

// wants is what the tuner decides, without its reasons.
func (t *tuner) wants(wanted []Want) []Want {
	next, _ := t.decide(wanted)
	return next
}

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
	require.Equal(t, []Want{{Span: KeySpan("a"), Nodes: []NodeID{1, 2}, Tuned: true}}, x.wants(nil))
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
		if list := x.wants(has); len(list) > 0 {
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
	require.Equal(t, []Want{fixed, {Span: KeySpan("x"), Nodes: []NodeID{1}, Tuned: true}}, x.wants([]Want{fixed}))
}

// A new leader knows of no reads yet, and keeps the old leader's choices for two windows.
func TestTunerOfANewLeaderWaits(t *testing.T) {
	x := tunerOf(10)
	has := []Want{{Span: KeySpan("a"), Nodes: []NodeID{2}, Tuned: true}}
	for range 2 {
		require.Equal(t, has, x.wants(has))
		x.windows++
	}
	require.Empty(t, x.wants(has))
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
	got := x.wants(nil)
	require.Contains(t, got, Want{Span: KeySpan("hot"), Nodes: []NodeID{2}, Tuned: true})
	require.LessOrEqual(t, len(got), 3)
	x.windows = 5
	for range 40 {
		x.group.halve()
	}
	require.Empty(t, x.group.cells)
	require.Empty(t, x.wants(got))
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

// readAt has clients of a member read a key.
func (s *stage) readAt(id NodeID, key, times int) {
	for range times {
		s.member(id).lease.CountRead(keyOf(key))
	}
}

// tunerOf returns what the status of a member says of the tuner.
func (s *stage) tunerOf(id NodeID) TunerStatus {
	return s.member(id).lease.Status(s.member(id).reading()).Tuner
}

// Nodes without Config.Tuner count from when an operator has the tuner watch, which names
// nobody and says whom it would name and why. Switched on it names them, and switched
// off they are responders no more; what an operator named stays.
func TestOperatorSwitchesTheTuner(t *testing.T) {
	s := newStage(t, 3, 3, nil, nil)
	lead := s.member(1).lease
	byHand := Want{Span: Span{Start: "c"}, Nodes: []NodeID{2}}
	set := func(mode ...TunerMode) {
		require.NoError(t, lead.SetWanted(s.member(1).reading(), []Want{byHand}, mode...))
		s.until("all know", time.Second, func() bool {
			return !slices.ContainsFunc(s.members, func(m *member) bool { return m.lease.wish.tuner != lead.wish.tuner })
		})
	}
	set()
	s.readAt(3, 0, 500)
	require.Equal(t, TunerStatus{Mode: TunerOff}, s.tunerOf(1))
	require.False(t, s.member(3).lease.Tunes())

	permit := lead.Permit(nil)
	require.False(t, permit.Tuned)
	require.NoError(t, lead.SetWanted(s.member(1).reading(), []Want{byHand}, TunerWatch))
	require.True(t, lead.Permit(permit).Tuned, "reads by permits count from now on, too")

	set(TunerWatch)
	s.readAt(3, 0, 500)
	s.readAt(1, 1, 50)
	s.readAt(3, 2, 200) // which an operator has
	s.pass(11 * time.Second)
	require.Equal(t, TunerStatus{Mode: TunerWatch, Windows: 1, Choices: []TunerChoice{
		{Span: keyOf(0), Reads: 500, By: []NodeReads{{3, 500}}, Nodes: []NodeID{3}, Why: TunerNames},
		{Span: keyOf(2), Reads: 200, By: []NodeReads{{3, 200}}, Why: TunerTaken},
		{Span: keyOf(1), Reads: 50, By: []NodeReads{{1, 50}}, Why: TunerFew},
	}}, s.tunerOf(1))
	require.Equal(t, TunerStatus{Mode: TunerWatch}, s.tunerOf(3), "its leader decides")
	require.False(t, s.serves(3, keyOf(0)))
	require.True(t, s.serves(2, keyOf(2)))

	set(TunerOn)
	s.readAt(3, 0, 500)
	s.until("the tuner's responder serves", 12*time.Second, func() bool { return s.serves(3, keyOf(0)) })
	set() // without a mode all stays
	require.True(t, s.serves(3, keyOf(0)))
	require.True(t, s.serves(2, keyOf(2)))

	set(TunerOff)
	s.pass(time.Second)
	require.False(t, s.serves(3, keyOf(0)))
	require.True(t, s.serves(2, keyOf(2)))
	require.Equal(t, []Want{byHand}, lead.wish.wanted)
	require.False(t, lead.Tunes())

	require.ErrorContains(t, lead.SetWanted(s.member(1).reading(), nil, TunerOn, TunerOff), "2 modes of the tuner, at most one")
	require.ErrorContains(t, lead.SetWanted(s.member(1).reading(), nil, TunerMode(9)), "TunerMode(9), want")
	require.ErrorIs(t, s.member(2).lease.SetWanted(s.member(2).reading(), nil, TunerOn), ErrNotLeader)
}

// The next leader goes by the operator's word, and keeps the spans of the tuner of before
// until its own tuner has counted for two windows.
func TestNextLeaderHasTheTunerOfTheOneBefore(t *testing.T) {
	s := newStage(t, 3, 3, nil, nil)
	lead := s.member(1).lease
	require.NoError(t, lead.SetWanted(s.member(1).reading(), nil, TunerOn))
	s.pass(time.Second)
	s.readAt(3, 0, 500)
	s.until("the tuner's responder serves", 12*time.Second, func() bool { return s.serves(3, keyOf(0)) })
	s.sever([]NodeID{1}, []NodeID{2, 3})
	var next *member
	s.until("another leads", 3*time.Second, func() bool {
		for _, id := range []NodeID{2, 3} {
			if m := s.member(id); m.leads {
				next = m
			}
		}
		return next != nil
	})
	s.until("the responder serves", time.Second, func() bool { return s.serves(3, keyOf(0)) })
	require.Equal(t, TunerStatus{Mode: TunerOn}, s.tunerOf(next.id))
	require.True(t, next.lease.Tunes())
	s.pass(31 * time.Second)
	require.Empty(t, next.lease.wish.wanted, "nobody reads any more")
}

func TestTunerModeIsReadFromText(t *testing.T) {
	for m := TunerConfigured; m <= TunerOn; m++ {
		got, err := ParseTunerMode(m.String())
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	_, err := ParseTunerMode("On")
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorContains(t, err, `tuner "On", want configured, off, watch or on`)
	require.Equal(t, "TunerMode(4)", TunerMode(4).String())
	for w := TunerNames; w <= TunerFull; w++ {
		require.NotEmpty(t, w.String())
	}
	require.Equal(t, "TunerReason(7)", TunerReason(7).String())
}
