// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"iter"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/rawnode/session"
)

func newTable(t require.TestingT, l session.Limits) *session.Table {
	table, err := session.New(l)
	require.NoError(t, err)
	return table
}

func TestVerdicts(t *testing.T) {
	table := newTable(t, session.Limits{Sessions: 2, Results: 3, ResultBytes: 10})
	id := table.Open()
	admit := func(id session.ID, sequence uint64, want session.Verdict, value string) {
		t.Helper()
		v, got := table.Admit(id, sequence)
		require.Equal(t, want, v)
		require.Equal(t, value, string(got))
	}
	apply := func(id session.ID, sequence, acknowledged uint64, value string) {
		t.Helper()
		admit(id, sequence, session.Fresh, "")
		require.NoError(t, table.Applied(id, sequence, acknowledged, []byte(value)))
		admit(id, sequence, session.Repeated, value)
	}
	apply(id, 2, 0, "two")
	admit(id, 1, session.Overtaken, "") // 2 came first: 1 never will be applied
	apply(id, 3, 0, "three")
	apply(id, 4, 2, "four") // drops 2, which is acknowledged
	admit(id, 2, session.Forgotten, "")
	admit(id, 1, session.Forgotten, "")
	apply(id, 6, 0, "a result that is larger than all of the bound")
	admit(id, 4, session.Forgotten, "")
	admit(id, 5, session.Overtaken, "")
	admit(77, 1, session.Expired, "")

	second, third := table.Open(), table.Open() // more than Sessions allows by 1
	admit(id, 6, session.Expired, "")
	apply(second, 1, 0, "")
	fourth := table.Open()
	admit(third, 1, session.Expired, "")
	require.True(t, table.End(fourth))
	require.False(t, table.End(fourth))
	require.Equal(t, 1, table.Len())
	require.ErrorIs(t, table.Applied(second, 1, 0, nil), session.ErrInvalid)
	require.ErrorIs(t, table.Applied(fourth, 1, 0, nil), session.ErrInvalid)
}

func TestLimitsErrorNamesEveryMistake(t *testing.T) {
	_, err := session.New(session.Limits{Results: -1, ResultBytes: 1})
	require.ErrorIs(t, err, session.ErrInvalid)
	require.ErrorContains(t, err, "Sessions is 0, want 1 or more")
	require.ErrorContains(t, err, "Results is -1, want 1 or more")
}

// TestTableAgreesWithItsReloadedCopyAndAFullHistory runs random commands at a replica that lives throughout, and at a replica that is
// made anew from its stored records at every turn. The two replicas never differ, and both agree
// with a history that forgets nothing.
func TestTableAgreesWithItsReloadedCopyAndAFullHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := session.Limits{
			Sessions: rapid.IntRange(1, 5).Draw(t, "sessions"), Results: rapid.IntRange(1, 4).Draw(t, "results"),
			ResultBytes: rapid.IntRange(1, 30).Draw(t, "bytes"),
		}
		steady, fresh, stored := newTable(t, limits), newTable(t, limits), map[session.ID][]byte{}
		applied := map[session.ID]map[uint64]string{} // for each opened session
		latest := map[session.ID]uint64{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "open") == 0 {
				id := steady.Open()
				require.Equal(t, id, fresh.Open())
				require.NotContains(t, applied, id)
				applied[id] = map[uint64]string{}
			} else {
				id := session.ID(rapid.IntRange(1, len(applied)+1).Draw(t, "id"))
				sequence := uint64(rapid.IntRange(1, 12).Draw(t, "sequence"))
				verdict, value := steady.Admit(id, sequence)
				again, same := fresh.Admit(id, sequence)
				require.Equal(t, verdict, again)
				require.Equal(t, string(value), string(same))
				was, ever := applied[id][sequence]
				switch verdict {
				case session.Fresh:
					require.False(t, ever, "applied twice")
					require.Greater(t, sequence, latest[id], "out of order")
					value := []byte(fmt.Sprintf("%d.%d", id, sequence))
					acknowledged := uint64(rapid.IntRange(0, 12).Draw(t, "acknowledged"))
					require.NoError(t, steady.Applied(id, sequence, acknowledged, value))
					require.NoError(t, fresh.Applied(id, sequence, acknowledged, value))
					applied[id][sequence], latest[id] = string(value), sequence
				case session.Repeated:
					require.True(t, ever)
					require.Equal(t, was, string(value))
				case session.Overtaken:
					require.False(t, ever)
				}
			}
			store(stored, fresh.Changes())
			var err error
			fresh, err = session.Load(limits, maps.All(stored))
			require.NoError(t, err)
			require.Equal(t, maps.Collect(steady.All()), stored)
			require.LessOrEqual(t, steady.Len(), limits.Sessions)
		}
	})
}

func store(into map[session.ID][]byte, changes iter.Seq2[session.ID, []byte]) {
	for id, value := range changes {
		if value == nil {
			delete(into, id)
		} else {
			into[id] = value
		}
	}
}

func TestLoadRefusesTruncatedTable(t *testing.T) {
	limits := session.Limits{Sessions: 3, Results: 3, ResultBytes: 100}
	table := newTable(t, limits)
	id := table.Open()
	for s := range uint64(5) {
		require.NoError(t, table.Applied(id, 2*s+1, 0, []byte("result")))
	}
	whole := maps.Collect(table.All())
	for key, value := range whole {
		for cut := range value {
			damaged := maps.Clone(whole)
			damaged[key] = value[:cut]
			_, err := session.Load(limits, maps.All(damaged))
			require.ErrorIs(t, err, session.ErrDamaged, "%d bytes of key %d", cut, key)
		}
	}
	delete(whole, 0)
	_, err := session.Load(limits, maps.All(whole))
	require.ErrorIs(t, err, session.ErrDamaged)
}

// FuzzLoad feeds records of any bytes: Load returns an error, or a table that encodes to the bytes
// from which the table was made.
func FuzzLoad(f *testing.F) {
	limits := session.Limits{Sessions: 3, Results: 3, ResultBytes: 100}
	table := newTable(f, limits)
	id := table.Open()
	require.NoError(f, table.Applied(id, 9, 0, []byte("result")))
	whole := maps.Collect(table.All())
	f.Add(whole[0], whole[id])
	f.Fuzz(func(t *testing.T, head, record []byte) {
		loaded, err := session.Load(limits, maps.All(map[session.ID][]byte{0: head, 1: record}))
		if err != nil {
			return
		}
		again, err := session.Load(limits, loaded.All())
		require.NoError(t, err)
		require.Equal(t, maps.Collect(loaded.All()), maps.Collect(again.All()))
		loaded.Admit(1, 1)
		loaded.Open()
	})
}

func Example() {
	table, err := session.New(session.DefaultLimits)
	if err != nil {
		panic(err)
	}
	counter := 0
	add := func(id session.ID, sequence uint64) {
		verdict, result := table.Admit(id, sequence)
		if verdict == session.Fresh {
			counter++
			result = fmt.Append(nil, counter)
			if err := table.Applied(id, sequence, 0, result); err != nil {
				panic(err)
			}
		}
		fmt.Printf("%v: %s\n", verdict, result)
	}
	id := table.Open()
	add(id, 1)
	add(id, 2)
	add(id, 2) // sent again, as its answer got lost
	add(id+1, 1)
	// Output:
	// fresh: 1
	// fresh: 2
	// applied before: 2
	// no such session, or it has expired:
}
