// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func sum(s uint64) *uint64 { return &s }

// told returns what three voters and a learner, 4, have found out after the digests.
func told(digests ...Digest) *Difference {
	var c Comparison
	c.Begin(9, Check{Voters: []uint64{1, 2, 3}})
	for _, d := range digests {
		d.Format, d.Check = format, 9
		c.Answer(d)
	}
	return c.Difference()
}

func TestVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		digests []Digest
		want    *Difference
	}{
		"nobody has answered": {},
		"all are equal":       {[]Digest{{Node: 1, State: sum(7)}, {Node: 2, State: sum(7)}, {Node: 3, State: sum(7)}}, nil},
		"one voter differs": {
			[]Digest{{Node: 1, State: sum(7)}, {Node: 2, State: sum(8)}, {Node: 3, State: sum(7)}},
			&Difference{Index: 9, States: true, Members: []uint64{2}},
		},
		"a learner differs": {
			[]Digest{{Node: 1, State: sum(7)}, {Node: 4, State: sum(8)}, {Node: 3, State: sum(7)}},
			&Difference{Index: 9, States: true, Members: []uint64{4}},
		},
		"learners are no majority": {
			[]Digest{{Node: 1, State: sum(7)}, {Node: 4, State: sum(8)}, {Node: 5, State: sum(8)}},
			&Difference{Index: 9, States: true},
		},
		"two of three have answered": {
			[]Digest{{Node: 1, State: sum(7)}, {Node: 2, State: sum(8)}},
			&Difference{Index: 9, States: true},
		},
		"results differ": {
			[]Digest{{Node: 1, From: 5, Results: 1, State: sum(7)}, {Node: 2, From: 5, Results: 1}, {Node: 3, From: 5, Results: 2, State: sum(7)}},
			&Difference{Index: 9, From: 5, Members: []uint64{3}},
		},
		"states and results differ": {
			[]Digest{{Node: 1, From: 5, Results: 1, State: sum(7)}, {Node: 2, From: 5, Results: 1, State: sum(7)}, {Node: 3, From: 5, Results: 2, State: sum(8)}},
			&Difference{Index: 9, From: 5, States: true, Members: []uint64{3}},
		},
		"a replica that missed a part of the window is not compared by results": {
			[]Digest{{Node: 1, From: 5, Results: 1}, {Node: 2, Results: 3}, {Node: 3, From: 5, Results: 1}}, nil,
		},
		"the first word of a node counts": {
			[]Digest{{Node: 1, State: sum(7)}, {Node: 2, State: sum(7)}, {Node: 2, State: sum(8)}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, told(test.digests...)) })
	}
}

func TestDigestsOfOtherChecksAndFormatsAreLeftOut(t *testing.T) {
	var c Comparison
	require.False(t, c.Answer(Digest{Format: format, Check: 0, Node: 1}), "there was no check yet")
	c.Begin(9, Check{Voters: []uint64{1}})
	require.False(t, c.Answer(Digest{Format: format, Check: 8, Node: 1}))
	require.False(t, c.Answer(Digest{Format: format + 1, Check: 9, Node: 1}))
	require.True(t, c.Answer(Digest{Format: format, Check: 9, Node: 1}))
}

func TestDifferenceIsSettled(t *testing.T) {
	before := &Difference{Members: []uint64{3}}
	var c Comparison
	c.Begin(9, Check{Voters: []uint64{1, 2, 3}})
	for _, node := range []uint64{1, 2, 3} {
		require.False(t, c.Settles(before), "not all have answered")
		c.Answer(Digest{Format: format, Check: 9, Node: node, State: sum(7)})
	}
	require.True(t, c.Settles(before))
	require.False(t, c.Settles(nil))
	c.Begin(12, Check{Voters: []uint64{1, 2, 3}})
	for _, node := range []uint64{1, 2, 3} {
		c.Answer(Digest{Format: format, Check: 12, Node: node, From: 9})
	}
	require.False(t, c.Settles(before), "equal results do not make states equal")
	c.Begin(15, Check{Voters: []uint64{1, 2, 4}})
	require.True(t, c.Settles(before), "the one that differed is no voter any more")
}

type pair struct {
	Name  string
	words []string
	n     float64
	any   *int
}

// Each of the results differs from all others, and equal results have equal sums.
func TestWindowTellsResultsApart(t *testing.T) {
	one, other := 1, 1
	results := []any{
		nil, 0, 1, int8(3), uint64(4), true, "a", []byte("b"), errors.New("c"), 1.5,
		pair{Name: "a"}, pair{Name: "b"}, pair{words: []string{"a"}}, pair{n: 2}, []string{"x", "y"}, []string{"xy"}, [2]int{1, 2},
	}
	seen := map[uint64]any{}
	for _, r := range results {
		sums := [2]uint64{}
		for i := range sums {
			w := Window{}
			w.Begin(4)
			w.Add([]byte("command"), r)
			sums[i] = w.sum
		}
		require.Equal(t, sums[0], sums[1], "%#v", r)
		require.NotContains(t, seen, sums[0], "%#v", r)
		seen[sums[0]] = r
	}
	a, b := Window{}, Window{}
	a.Add(nil, pair{any: &one})
	b.Add(nil, pair{any: &other})
	require.Equal(t, a, b, "what a pointer refers to is not looked at")
	a.Add([]byte("x"), (*pathError)(nil))
}

type pathError struct{ path string }

func (e *pathError) Error() string { return e.path }

// The order of commands counts, and a window that has missed something says so.
func TestWindowSumsUpAllSinceItsCheck(t *testing.T) {
	var a, b Window
	a.Add([]byte("lost"), 1)
	require.Zero(t, a.Digest(1, 3).From)
	a.Begin(3)
	b.Begin(3)
	a.Add([]byte("x"), 1)
	a.Add([]byte("y"), 2)
	b.Add([]byte("y"), 2)
	b.Add([]byte("x"), 1)
	require.NotEqual(t, a.Digest(1, 9).Results, b.Digest(1, 9).Results)
	require.EqualValues(t, 3, a.Digest(1, 9).From)
	a.Lose()
	require.Zero(t, a.Digest(1, 9).From)
}

func TestSumEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := NewSum(ctx)
	_, err := s.Write([]byte("a"))
	require.NoError(t, err)
	cancel()
	_, err = s.Write([]byte("a"))
	require.ErrorIs(t, err, context.Canceled)
}

// Whatever bytes are in the log, they are read without a panic, or refused.
func FuzzDecode(f *testing.F) {
	f.Add(encode(Check{Voters: []uint64{1, 2}}))
	f.Add(encode(Digest{Format: 1, Check: 9, Node: 1, From: 3, State: sum(4)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := decodeCheck(b); err == nil {
			again, err := decodeCheck(encode(c))
			require.NoError(t, err)
			require.Equal(t, c, again)
		}
		if d, err := decodeDigest(b); err == nil {
			again, err := decodeDigest(encode(d))
			require.NoError(t, err)
			require.Equal(t, d, again)
		}
	})
}

func BenchmarkWindow(b *testing.B) {
	command := make([]byte, 128)
	var w Window
	b.ReportAllocs()
	for b.Loop() {
		w.Add(command, 7)
	}
}
