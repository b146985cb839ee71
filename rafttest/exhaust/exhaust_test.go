// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	deviations = flag.Int("deviations", 1, "how often in a path something may happen that need not")
	states     = flag.Int("states", 0, "end each exploration after so many states; 0: no bound")
	lasting    = flag.Duration("lasting", 0, "end each exploration after this time; 0: no bound")
	progress   = flag.Bool("progress", false, "print a line for every 200,000 states")
)

// TestNothingIsWrongInAnyScenario explores all scenarios. With -v it prints what was covered.
func TestNothingIsWrongInAnyScenario(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			bounds := bounds{Deviations: *deviations, States: *states, Time: *lasting}
			if testing.Short() {
				bounds.States = 2000
			}
			if *progress {
				bounds.Progress = os.Stderr
			}
			r := explore(s, bounds)
			t.Log(r)
			if r.Wrong != "" {
				t.Fatalf("VIOLATION %s\n%s", r.Wrong, r.Path)
			}
			require.True(t, r.Complete || bounds.States > 0 || bounds.Time > 0)
			require.NotZero(t, r.Ends, "no path came to an end")
		})
	}
}

// TestNodeIsAFunctionOfItsInputs gives new cores the inputs that led to the last states, and looks
// at each state on the way. A core that comes to another state has a choice of its own, which no
// path of an exploration repeats.
func TestNodeIsAFunctionOfItsInputs(t *testing.T) {
	for _, s := range scenarios {
		x := explored(s, 1000)
		last, looked := maps.Clone(x.states), map[*state]bool{}
		maps.DeleteFunc(last, func(_ uint64, st *state) bool { return !st.up })
		up := len(last)
		for _, st := range x.states {
			if st.up && st.in.kind != inStart {
				delete(last, st.before.key)
			}
		}
		for _, st := range last {
			way := []*state{st}
			for way[0].in.kind != inStart {
				way = slices.Insert(way, 0, way[0].before)
			}
			c := must2(start(s, uint64(st.node+1), st.boots, &way[0].before.disk, way[0].in.at))
			for _, at := range way {
				if c.take(at.in); !looked[at] {
					looked[at] = true
					require.Equal(t, at.key, x.keyOf(c), "%s: node %d after %v", s.Name, st.node+1, at.in)
				}
			}
		}
		require.Len(t, looked, up)
	}
}

// TestStatesThatAreFoldedBehaveAlike looks at states that were reached in two ways, and
// gives a core that went the second way the inputs that the first was given.
func TestStatesThatAreFoldedBehaveAlike(t *testing.T) {
	compared := 0
	for _, s := range scenarios {
		x := explored(s, 1000)
		for _, before := range x.states {
			for in, e := range before.edges {
				st := e.to
				if in.kind == inStart || in.kind == inCrash || in.kind == inTorn || !before.up || !st.up || st.before == before && st.in == in {
					continue
				}
				for further, want := range st.edges {
					if further.kind == inCrash || !want.to.up {
						continue
					}
					c := x.alone(before)
					c.take(in)
					got := c.take(further)
					require.Equal(t, want.to.key, x.keyOf(c), "%s: node %d, %v behind %v", s.Name, st.node+1, further, in)
					require.Len(t, got.sent, len(want.out))
					compared++
				}
			}
		}
	}
	t.Logf("%d comparisons", compared)
	require.NotZero(t, compared)
}

// explored returns an exploration of so many states.
func explored(s *scenario, states int) *explorer {
	return run(s, bounds{Deviations: 1, States: states})
}

// alone returns a new core in a state.
func (x *explorer) alone(st *state) *core {
	for _, at := range x.cores {
		at.live = nil
	}
	x.cores = nil
	return x.revive(st)
}

// TestPrintTellsFieldsApart changes values behind pointers, in maps and in slices.
func TestPrintTellsFieldsApart(t *testing.T) {
	type inner struct{ n int }
	type outer struct {
		p *inner
		m map[uint64]*inner
		s []inner
	}
	print := func(o *outer) uint64 {
		p := newPrinter()
		p.value(reflect.ValueOf(o))
		return p.h
	}
	fresh := func() *outer {
		return &outer{p: &inner{1}, m: map[uint64]*inner{1: {2}, 2: {3}, 3: {4}}, s: []inner{{5}}}
	}
	want := print(fresh())
	require.Equal(t, want, print(fresh()))
	for _, change := range []func(*outer){
		func(o *outer) { o.p.n++ }, func(o *outer) { o.p = nil }, func(o *outer) { o.m[2].n++ }, func(o *outer) { delete(o.m, 3) },
		func(o *outer) { o.m[1], o.m[2] = o.m[2], o.m[1] }, func(o *outer) { o.s[0].n++ }, func(o *outer) { o.s = append(o.s, inner{0}) },
	} {
		o := fresh()
		change(o)
		require.NotEqual(t, want, print(o))
	}
}
