// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// revisionOf is what Store.KeyRevision and comparisons say of a key, which is the same.
func revisionOf(t require.TestingT, s *Store, key string) uint64 {
	r, err := s.KeyRevision(key)
	require.NoError(t, err)
	for _, c := range []struct {
		compare Compare
		want    bool
	}{
		{Compare{Kind: CompareRevision, Key: key, Revision: r}, true},
		{Compare{Kind: CompareRevision, Key: key, Revision: r + 1}, false},
		{Compare{Kind: CompareChanged, Key: key, Revision: r}, false},
		{Compare{Kind: CompareChanged, Key: key, Revision: r - min(r, 1)}, r > 0},
	} {
		require.Equal(t, c.want, apply(t, s, txn([]Compare{c.compare}, nil))[0].Txn.Succeeded, "%+v", c.compare)
	}
	return r
}

func TestRevisionOfAKeyIsThatOfItsLastEvent(t *testing.T) {
	s := openLevel(t, 3)
	from := s.Revision() + 1
	for _, commands := range [][][]byte{
		{put("k", "v")}, {put("k", "w")}, {put("other", "x")}, {del("k")}, {put("k", "y")},
		{txn(nil, []Action{{Kind: ActAdd, Key: "n", Delta: 1}, {Kind: ActHashSet, Key: "h", Value: list("f", "1")}})},
		{txn(nil, []Action{{Kind: ActSortedAdd, Key: "z", Value: scoredList(scoredMember{1, "m"}, scoredMember{2, "n"})}})},
		{txn(nil, []Action{{Kind: ActSortedRemove, Key: "z", Value: list("m")}, {Kind: ActGet, Key: "h"}})},
		{txn(nil, []Action{{Kind: ActDeadline, Key: "n", Deadline: 7}, {Kind: ActDeadline, Key: "none", Deadline: 7}})},
		{Command{Op: OpExpire, Expire: &Expire{Now: 7, Keys: []string{"n"}}}.Encode()},
		uploadOf(UploadID{1}, "large", pattern(PartBytes+5, 1)),
	} {
		apply(t, s, commands...)
		want := map[string]uint64{}
		events, _, _, err := s.Events(from, maxEvents)
		require.NoError(t, err)
		for _, e := range events {
			want[e.Key] = e.Revision
			if e.Kind == EventDelete || e.Kind == EventExpire {
				want[e.Key] = 0
			}
		}
		for key, revision := range want {
			require.Equal(t, revision, revisionOf(t, s, key), "%q", key)
		}
	}
	require.Zero(t, revisionOf(t, s, "none"))

	_, other := openMem(t)
	require.NoError(t, restore(other, s.Applied(), "", snapshotBytes(t, s)))
	for _, key := range []string{"k", "h", "z", "large", "n"} {
		require.Equal(t, revisionOf(t, s, key), revisionOf(t, other, key), "after a snapshot: %q", key)
	}
	requireNoOrphans(t, s)
	requireNoOrphans(t, other)
}

// Keys that were changed last before the group took revisions count as changed then, so
// a comparison with an older revision fails, and none with a wrong one holds.
func TestKeysFromBeforeRevisionsHaveThatOfTheRaise(t *testing.T) {
	s := openLevel(t, 2)
	at := apply(t, s, put("k", "v"))[0].Revision
	r, err := s.KeyRevision("k")
	require.NoError(t, err)
	require.Zero(t, r, "not known yet")
	compare := txn([]Compare{{Kind: CompareRevision, Key: "k", Revision: at}}, nil)
	require.ErrorIs(t, apply(t, s, compare)[0].Err, errLevel)
	results := apply(t, s,
		Command{Op: OpSystem, Key: LevelKey, Want: []byte("2"), Value: []byte("3")}.Encode(),
		txn([]Compare{{Kind: CompareChanged, Key: "k", Revision: at}}, nil),
		put("l", "in the same batch"),
		txn([]Compare{{Kind: CompareRevision, Key: "l", Revision: at + 4}}, nil))
	require.True(t, results[1].Txn.Succeeded)
	require.True(t, results[3].Txn.Succeeded)
	require.Equal(t, at+2, revisionOf(t, s, "k"))
	require.Equal(t, at+4, revisionOf(t, s, "l"))
	require.Zero(t, revisionOf(t, s, "none"))
	fresh := openLevel(t, 2)
	require.NoError(t, restore(fresh, s.Applied(), "", snapshotBytes(t, s)))
	require.Equal(t, at+2, revisionOf(t, fresh, "k"))
	requireNoOrphans(t, fresh)

	x := &Txn{Compares: []Compare{{Kind: CompareChanged, Key: "k"}}}
	require.Equal(t, 3, x.Level())
}

// What one batch does is seen by its later transactions.
func TestRevisionsWithinABatch(t *testing.T) {
	s := openLevel(t, 3)
	at := s.Revision()
	is := func(key string, revision uint64) []byte {
		return txn([]Compare{{Kind: CompareRevision, Key: key, Revision: revision}}, []Action{{Kind: ActPut, Key: "sum", Value: []byte("v")}})
	}
	for i, r := range apply(t, s, put("k", "v"), is("k", at+1), is("sum", at+2), del("k"), is("k", 0), put("k", "w"), is("k", at+6)) {
		require.True(t, r.Txn == nil || r.Txn.Succeeded, "command %d", i)
	}
	require.Equal(t, at+7, revisionOf(t, s, "sum"))
}
