// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpansOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b Span
		want bool
	}{
		{Span{}, Span{}, true},
		{Span{}, KeySpan("k"), true},
		{Span{End: "b"}, Span{Start: "b"}, false},
		{Span{Start: "a", End: "b\x00"}, KeySpan("b"), true},
		{KeySpan("a"), KeySpan("a\x00"), false},
		{Span{Start: "x"}, Span{Start: "y", End: "z"}, true},
	} {
		require.Equal(t, c.want, c.a.overlaps(c.b), "%v %v", c.a, c.b)
		require.Equal(t, c.want, c.b.overlaps(c.a), "%v %v", c.b, c.a)
	}
}

// touches answers as a plain list of all entries does.
func TestTouchesAnswersLikeAList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var x touches
		var plain [][]Span // of the entries from 1 on
		touched := func(i Index, s Span) bool { return plain[i-1] == nil || s.overlapsAny(plain[i-1]) }
		forgotten := Index(0)
		for range 60 {
			switch n := Index(len(plain)); r.IntN(8) {
			case 0:
				to := forgotten
				if n > forgotten {
					to += Index(r.Uint64N(uint64(n - forgotten + 1)))
				}
				plain = plain[:to]
				x.cut(to)
			case 1:
				forgotten += Index(r.Uint64N(uint64(n-forgotten) + 1))
				x.forget(forgotten)
			default:
				var spans []Span
				if r.IntN(3) > 0 {
					spans = []Span{}
				}
				for range r.IntN(3) {
					spans = append(spans, keyOf(r.IntN(keyCount)))
				}
				plain = append(plain, spans)
				x.note(n+1, spans)
			}
			n := Index(len(plain))
			s := keyOf(r.IntN(keyCount))
			after := forgotten + Index(r.Uint64N(uint64(n-forgotten)+1))
			first, ok := x.first(after, s, n)
			want := after + 1
			for want <= n && !touched(want, s) {
				want++
			}
			require.Equal(t, want <= n, ok)
			if ok {
				require.Equal(t, want, first)
			}
			last := n
			for last > forgotten && !touched(last, s) {
				last--
			}
			require.Equal(t, last, x.last(n, s, forgotten))
		}
	}
}

// The memory for keys is bounded; entries beyond count as touching every key.
func TestKeysOfTooManyEntriesAreNotKept(t *testing.T) {
	var x touches
	for i := range Index(touchLimit + 10) {
		x.note(i+1, []Span{KeySpan("a")})
	}
	require.Len(t, x.list, touchLimit)
	require.Equal(t, Index(touchLimit+10), x.last(touchLimit+10, KeySpan("b"), 0))
	require.Equal(t, Index(0), x.last(touchLimit, KeySpan("b"), 0))
}

func roster(seq Seq, spans ...Assignment) *Roster {
	return &Roster{ID: RosterID{Term: 1, Seq: seq}, Leader: 1, Voters: Voters{Incoming: []NodeID{1, 2, 3}}, Spans: spans}
}

func TestRosterServesWholeSpans(t *testing.T) {
	r := roster(1,
		Assignment{Span: Span{Start: "b", End: "d"}, Responders: []Responder{{Node: 2, Barrier: 5}}},
		Assignment{Span: Span{Start: "d", End: "f"}, Responders: []Responder{{Node: 2, Barrier: 9}, {Node: 3, Barrier: 1}}},
		Assignment{Span: Span{Start: "m"}, Responders: []Responder{{Node: 3, Barrier: 4}}})
	for _, c := range []struct {
		node    NodeID
		span    Span
		barrier Index
		ok      bool
	}{
		{2, KeySpan("c"), 5, true},
		{2, Span{Start: "b", End: "f"}, 9, true},
		{2, Span{Start: "c", End: "e"}, 9, true},
		{2, Span{Start: "a", End: "c"}, 0, false},
		{2, Span{Start: "c", End: "g"}, 0, false},
		{2, Span{}, 0, false},
		{3, Span{Start: "c", End: "e"}, 0, false},
		{3, Span{Start: "z"}, 4, true},
		{3, Span{Start: "e"}, 0, false},
		{4, KeySpan("c"), 0, false},
	} {
		barrier, ok := r.serves(c.node, c.span)
		require.Equal(t, c.ok, ok, "node %d, %v", c.node, c.span)
		require.Equal(t, c.barrier, barrier, "node %d, %v", c.node, c.span)
	}
	require.True(t, r.names(3))
	require.False(t, r.names(1))
}

func TestRolesShrink(t *testing.T) {
	all := func(b Index) Assignment { return Assignment{Responders: []Responder{{Node: 2, Barrier: b}}} }
	old := roster(1, Assignment{Span: Span{Start: "b", End: "d"}, Responders: []Responder{{Node: 2, Barrier: 5}}})
	require.False(t, roster(2, all(5)).shrinks(old, 2), "more keys")
	require.False(t, roster(2, all(4)).shrinks(old, 2), "a lower barrier")
	require.True(t, roster(2, all(6)).shrinks(old, 2), "a higher barrier")
	require.True(t, roster(2).shrinks(old, 2), "no keys")
	require.True(t, old.shrinks(roster(2, all(5)), 2), "fewer keys")
	require.False(t, roster(2).shrinks(old, 3), "no role before")
	require.False(t, roster(2).shrinks(old, 1), "the leader")
	other := roster(2, all(5))
	other.Voters = Voters{Incoming: []NodeID{1, 2, 3, 4}}
	require.True(t, other.shrinks(old, 2), "another configuration")
	require.False(t, other.shrinks(roster(1), 2), "no role in another configuration")
}

func TestMajorities(t *testing.T) {
	of := func(ids ...NodeID) func(NodeID) bool {
		return func(id NodeID) bool {
			for _, x := range ids {
				if x == id {
					return true
				}
			}
			return false
		}
	}
	three, joint := Voters{Incoming: []NodeID{1, 2, 3}}, Voters{Incoming: []NodeID{3, 4, 5, 6}, Outgoing: []NodeID{1, 2, 3}}
	require.True(t, three.majority(of(1, 2)))
	require.False(t, three.majority(of(1, 4, 5)))
	require.False(t, joint.majority(of(3, 4, 5)))
	require.False(t, joint.majority(of(1, 2, 3, 4)))
	require.True(t, joint.majority(of(2, 3, 4, 5)))
	require.False(t, Voters{}.majority(of(1, 2, 3)))
	held := func(id NodeID) Index { return Index(id) * 10 }
	require.Equal(t, Index(20), three.committed(held))
	require.Equal(t, Index(20), joint.committed(held))
	require.Equal(t, Index(40), Voters{Incoming: []NodeID{3, 4, 5, 6}}.committed(held))
	require.Zero(t, Voters{}.committed(held))
}

// Rosters that are known stay bounded, and the rosters in use are found.
func TestKnownRostersAreBounded(t *testing.T) {
	var s rosters
	require.Nil(t, s.newest())
	for q := Seq(1000); q > 0; q-- {
		require.True(t, s.add(roster(q)))
	}
	require.False(t, s.add(roster(1000)))
	require.Len(t, s.list, rosterLimit)
	require.Equal(t, Seq(1000), s.newest().ID.Seq)
	s.supersede(990)
	s.supersede(980)
	list, whole := s.inUse()
	require.True(t, whole)
	require.Len(t, list, 11)
	s.drop(func(q Seq) bool { return q == 970 })
	require.Len(t, s.list, 12)
	require.NotNil(t, s.find(970))
	require.Nil(t, s.find(971))
	s.list = append(s.list[:3], s.list[4:]...)
	_, whole = s.inUse()
	require.False(t, whole, "one is missing")
	s.supersede(2000)
	_, whole = s.inUse()
	require.False(t, whole, "the least is not known")
	s.drop(func(Seq) bool { return false })
	require.Equal(t, Seq(1000), s.newest().ID.Seq, "the newest stays")
}
