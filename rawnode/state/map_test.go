// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
	"github.com/weftraft/weft/rawnode/state"
)

// modelled is a map and what it should have.
type modelled struct {
	m    *state.Map[int, int]
	want map[int]int
}

func (x modelled) check(t *testing.T) {
	t.Helper()
	require.Equal(t, len(x.want), x.m.Len())
	require.Equal(t, x.want, maps.Collect(x.m.All()))
	keys := slices.Sorted(maps.Keys(x.want))
	i := 0
	for k, v := range x.m.All() {
		require.Equal(t, keys[i], k, "keys ascend")
		got, ok := x.m.Get(k)
		require.True(t, ok)
		require.Equal(t, v, got)
		i++
	}
	for _, from := range []int{-1, 0, 7, 500, 2000} {
		at, _ := slices.BinarySearch(keys, from)
		var got []int
		for k := range x.m.From(from) {
			if got = append(got, k); len(got) == 40 {
				break
			}
		}
		require.Equal(t, append([]int(nil), keys[at:min(at+40, len(keys))]...), got)
	}
}

// A map and its forks are each what a Go map would be, however they change beside each other.
func TestMapIsAMapAndForksStayAsTheyAre(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		all := []modelled{{&state.Map[int, int]{}, map[int]int{}}}
		keys := []int{5, 60, 1000}[r.IntN(3)]
		for range 3000 {
			x := &all[r.IntN(len(all))]
			k := r.IntN(keys)
			switch n := r.IntN(1000); {
			case n < 3 && len(all) < 5:
				all = append(all, modelled{x.m.Fork(), maps.Clone(x.want)})
			case n < 6:
				for i := range keys { // a run of deletions empties nodes that stand together
					if i >= k {
						_, had := x.want[i]
						delete(x.want, i)
						require.Equal(t, had, x.m.Delete(i))
					}
				}
			case n < 400:
				_, had := x.want[k]
				delete(x.want, k)
				require.Equal(t, had, x.m.Delete(k))
			default:
				x.m.Set(k, n)
				x.want[k] = n
			}
		}
		for _, x := range all {
			x.check(t)
		}
		for _, x := range all { // and down to nothing
			for _, k := range slices.Collect(maps.Keys(x.want)) {
				require.True(t, x.m.Delete(k))
			}
			x.want = map[int]int{}
			x.check(t)
		}
	}
}

// A fork is read while the original changes; the race detector looks at it.
func TestForkIsReadWhileTheOriginalChanges(t *testing.T) {
	var m state.Map[string, int]
	for i := range 5000 {
		m.Set(fmt.Sprint(i), i)
	}
	var readers sync.WaitGroup
	for round := range 5 {
		fork, want := m.Fork(), 0
		for _, v := range m.All() {
			want += v
		}
		readers.Go(func() {
			sum := 0
			for _, v := range fork.All() {
				sum += v
			}
			if sum != want {
				t.Errorf("round %d: the fork sums up to %d, want %d", round, sum, want)
			}
		})
		for i := range 5000 {
			m.Set(fmt.Sprint(i*7), i)
			m.Delete(fmt.Sprint(i * 3))
		}
	}
	readers.Wait()
}

func TestForkOfAMapCostsTheSameAtAnySize(t *testing.T) {
	for _, size := range []int{0, 100_000} {
		var m state.Map[int, int]
		for i := range size {
			m.Set(i, i)
		}
		require.LessOrEqual(t, testing.AllocsPerRun(10, func() { m.Fork() }), 1.0)
		m.Fork()
		require.LessOrEqual(t, testing.AllocsPerRun(1, func() { m.Fork(); m.Set(size/2, 1) }), 20.0, "one node a level is copied")
	}
}

// BenchmarkFork measures what commands wait for at a checkpoint: Fork, and the first commands after it.
func BenchmarkFork(b *testing.B) {
	for _, size := range []int{10_000, 100_000, 1_000_000} {
		key := func(i int) string { return fmt.Sprintf("key %08d", i) }
		plain, forked := map[string]int{}, &state.Map[string, int]{}
		for i := range size {
			plain[key(i)] = i
			forked.Set(key(i), i)
		}
		b.Run(fmt.Sprintf("copied/keys=%d", size), func(b *testing.B) {
			for b.Loop() {
				_ = maps.Clone(plain)
			}
		})
		b.Run(fmt.Sprintf("forked/keys=%d", size), func(b *testing.B) {
			for b.Loop() {
				_ = forked.Fork()
				forked.Set(key(size/2), 1)
			}
		})
	}
	for name, set := range map[string]func(string){
		"set=map": func() func(string) { m := map[string]int{}; return func(k string) { m[k]++ } }(),
		"set=fork": func() func(string) {
			m := &state.Map[string, int]{}
			return func(k string) { v, _ := m.Get(k); m.Set(k, v+1) }
		}(),
	} {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				set(fmt.Sprintf("key %08d", i*7919%100_000))
				i++
			}
		})
	}
}

// The example's state keeps the contract, with forks.
func TestMachineOnAMapKeepsTheContract(t *testing.T) {
	rawnodetest.TestStateMachine(t, rawnodetest.StateMachineFactory{
		Open: func(d rawnodetest.Dir) (rawnode.StateMachine, error) {
			return state.OpenMemory(newShelf, state.Options{FS: d.FS, Dir: d.Path, CheckpointBytes: 500})
		},
		Command: word,
		Read: func(sm rawnode.StateMachine) (text string, err error) {
			sm.(*state.Memory[shelf]).View(func(s shelf) {
				for key, n := range s.books.All() {
					text += fmt.Sprintf("%q: %d\n", key, n)
				}
			})
			return text, nil
		},
		Flush: func(sm rawnode.StateMachine) error { return sm.(*state.Memory[shelf]).Checkpoint() },
	})
}
