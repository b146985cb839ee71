// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/ecraft"
)

// model is what a Store should know, said as simply as possible: sets of units,
// nothing of budgets.
type model struct {
	expected map[ecraft.ID]bool
	held     map[ecraft.ID]map[[2]int]bool // slot, unit
	put      map[ecraft.ID]bool
	stale    map[ecraft.ID]bool // early units of what is applied go some time
	applied  uint64
}

func (m *model) add(id ecraft.ID, strip ecraft.Strip) {
	if m.held[id] == nil {
		m.held[id] = map[[2]int]bool{}
	}
	for k := range strip.Count {
		m.held[id][[2]int{strip.Slot, strip.First + k}] = true
	}
}

func (m *model) complete(e *entry) bool {
	return m.put[e.ID] || m.expected[e.ID] && len(m.held[e.ID]) >= e.h.D
}

// sure reports whether the model says exactly what the store has of an entry.
func (m *model) sure(id ecraft.ID) bool { return !m.stale[id] }

func (m *model) known(id ecraft.ID) bool { return m.put[id] || m.expected[id] }

func (m *model) forget(id ecraft.ID) {
	delete(m.expected, id)
	delete(m.put, id)
	delete(m.held, id)
}

// supersede forgets entries of other terms at an index.
func (m *model) supersede(id ecraft.ID, terms uint64) {
	for term := uint64(1); term <= terms; term++ {
		if other := (ecraft.ID{Term: term, Index: id.Index}); other != id && m.known(other) {
			m.forget(other)
		}
	}
}

// oldest returns the lowest index above applied that is expected or put.
func (m *model) oldest() (low uint64) {
	for _, set := range []map[ecraft.ID]bool{m.expected, m.put} {
		for id := range set {
			if id.Index > m.applied && (low == 0 || id.Index < low) {
				low = id.Index
			}
		}
	}
	return low
}

// With room enough, the store is the model. Without, it knows less, but never
// anything else, and it always knows the oldest that was asked for again.
func TestStoreIsTheModel(t *testing.T) {
	if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
		require.NoError(t, f.Value.Set("1")) // the same each time, unless another is asked for
	}
	const indexes, terms = 12, 2
	entries := map[ecraft.ID]*entry{}
	for index := uint64(1); index <= indexes; index++ {
		for term := uint64(1); term <= terms; term++ {
			id := ecraft.ID{Term: term, Index: index}
			entries[id] = newEntry(id, int(100+index*7+term), 4, 2, 1, 3, 4)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.SampledFrom([]int{1 << 20, 6000, 0}).Draw(t, "budget")
		roomy := budget == 1<<20
		s := NewStore(2, budget)
		m := &model{expected: map[ecraft.ID]bool{}, held: map[ecraft.ID]map[[2]int]bool{}, put: map[ecraft.ID]bool{}, stale: map[ecraft.ID]bool{}}
		index := rapid.Uint64Range(1, indexes)
		pick := func(t *rapid.T) *entry {
			return entries[ecraft.ID{Term: rapid.Uint64Range(1, terms).Draw(t, "term"), Index: index.Draw(t, "index")}]
		}
		expect := func(e *entry) {
			m.supersede(e.ID, terms)
			m.expected[e.ID] = true
			m.add(e.ID, e.base(2))
			complete := s.Expect(e.ID, e.h, e.base(2))
			if roomy && m.sure(e.ID) {
				require.Equal(t, m.complete(e), complete)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"expect": func(t *rapid.T) { expect(pick(t)) },
			"add": func(t *rapid.T) {
				e := pick(t)
				if e.Index <= m.applied && !m.known(e.ID) {
					return // dropped at once; early ones of before are dropped some time
				}
				from := rapid.Uint64Range(3, 5).Draw(t, "from")
				slot := rapid.SampledFrom([]uint64{2, from}).Draw(t, "slot")
				first := rapid.IntRange(0, 3).Draw(t, "first")
				strip := e.units(slot, first, rapid.IntRange(1, 4-first).Draw(t, "count"))
				was := m.complete(e)
				m.add(e.ID, strip)
				complete, err := s.Add(e.ID, from, strip)
				require.NoError(t, err)
				if roomy && m.sure(e.ID) {
					require.Equal(t, m.complete(e) && !was, complete)
				}
			},
			"put": func(t *rapid.T) {
				e := pick(t)
				m.supersede(e.ID, terms)
				m.put[e.ID] = true
				s.put(e)
			},
			"cut": func(t *rapid.T) {
				from := index.Draw(t, "from")
				s.Cut(from)
				for id := range entries {
					if id.Index >= from && m.known(id) {
						m.forget(id)
					}
				}
			},
			"apply": func(t *rapid.T) {
				was := m.applied
				m.applied = max(was, index.Draw(t, "to"))
				s.Applied(m.applied)
				for id, e := range entries {
					if id.Index > was && id.Index <= m.applied && !m.complete(e) {
						m.stale[id] = m.stale[id] || !m.known(id) && len(m.held[id]) > 0
						m.forget(id)
					}
				}
			},
			"expect again": func(t *rapid.T) {
				if from, ok := s.Forgot(); ok {
					for i := from; i <= indexes; i++ {
						for term := uint64(1); term <= terms; term++ {
							if e := entries[ecraft.ID{Term: term, Index: i}]; m.put[e.ID] {
								s.put(e)
							} else if m.expected[e.ID] {
								expect(e)
							}
						}
					}
				}
			},
			"": func(t *rapid.T) {
				require.NoError(t, s.Check())
				for id, e := range entries {
					payload := s.Payload(id)
					need, _ := s.Missing(id)
					if payload != nil {
						require.Equal(t, e.payload, payload)
					}
					if roomy && m.sure(id) {
						require.Equal(t, m.known(id), s.Known(id))
						require.Equal(t, m.complete(e), payload != nil)
						if m.known(id) && !m.complete(e) {
							require.Equal(t, e.h.D-len(m.held[id]), need)
						}
					} else if m.sure(id) {
						require.False(t, s.Known(id) && !m.known(id))
					}
				}
				if low := m.oldest(); low != 0 {
					known := s.forgot != 0 && s.forgot <= low // Forgot will say so
					for term := uint64(1); term <= terms; term++ {
						known = known || s.Known(ecraft.ID{Term: term, Index: low})
					}
					require.True(t, known, "the oldest, index %d", low)
				}
			},
		})
	})
}

// What gathering an entry allocates: its account, the assembly, the payload.
// Nothing grows with the units.
func TestGatherAllocates(t *testing.T) {
	for _, d := range []int{2, 6, 12} {
		e := newEntry(at(7), 64<<10, d, uint8(d/2), uint8(d/2), uint8(d/2), uint8(d/2))
		own, other := e.base(2), e.base(3)
		allocs := testing.AllocsPerRun(100, func() {
			s := NewStore(2, 1<<20)
			s.Expect(e.ID, e.h, own)
			if complete, err := s.Add(e.ID, 3, other); !complete || err != nil {
				t.Fatal(complete, err)
			}
		})
		if !raceEnabled { // which empties pools at random
			require.LessOrEqual(t, allocs, float64(16), "D=%d", d)
		}
	}
}

func BenchmarkGather(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(map[int]string{4 << 10: "N=5/level=3/size=4KiB", 64 << 10: "N=5/level=3/size=64KiB", 1 << 20: "N=5/level=3/size=1MiB"}[size], func(b *testing.B) {
			e := newEntry(at(1), size, 6, 2, 2, 2, 2)
			strips := []ecraft.Strip{e.base(2), e.base(3), e.base(4)}
			s := NewStore(2, 64<<20)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for index := uint64(1); b.Loop(); index++ {
				id := at(index)
				s.Expect(id, e.h, strips[0])
				_, _ = s.Add(id, 3, strips[1])
				if complete, err := s.Add(id, 4, strips[2]); !complete || err != nil {
					b.Fatal(complete, err)
				}
				s.Applied(index)
			}
		})
	}
}
