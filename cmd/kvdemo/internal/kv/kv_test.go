// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/gate"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
)

// snapshotOf returns the snapshot of a store that holds state.
func snapshotOf(t require.TestingT, index uint64, state map[string]string) []byte {
	db, s := openMem(t)
	var commands [][]byte
	for key, value := range state {
		commands = append(commands, put(key, value))
	}
	small := pattern(50, 1)
	commands = append(commands,
		Command{Op: OpOpenSession}.Encode(),
		Command{Op: OpPut, Key: "a", Value: []byte(state["a"]), Session: 1, Sequence: 1}.Encode(),
		Command{Op: OpSystem, Key: "members", Value: []byte("3")}.Encode(),
		uploadOf(UploadID{1}, "never", small)[0])
	commands = append(commands, uploadOf(UploadID{2}, "large", small)...)
	applyAt(t, s, index, []byte("sent apart"), commands...)
	b := snapshotBytes(t, s)
	require.NoError(t, db.Close())
	return b
}

// Each bit of damage to a snapshot is noticed, and the state stays as it was.
func TestSnapshotDamage(t *testing.T) {
	state := map[string]string{"a": "1", "b": strings.Repeat("x", 300), "c": ""}
	good := snapshotOf(t, 10, state)
	_, s := openMem(t)
	apply(t, s, put("old", "state"))
	refused := func(b []byte, what string) {
		t.Helper()
		require.ErrorIs(t, restore(s, 10, "", b), errSnapshot, what)
		got, _, err := s.Get("old")
		require.NoError(t, err)
		require.Equal(t, "state", string(got))
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 1 << (i % 8)
		refused(b, fmt.Sprint("flipped byte ", i))
	}
	for n := range len(good) {
		if n%7 == 0 || len(good)-n < 16 {
			refused(good[:n], fmt.Sprint("cut at ", n))
		}
	}
	refused(append(bytes.Clone(good), 0), "a byte too many")
	require.ErrorIs(t, restore(s, 11, "", good), errSnapshot, "of another index")
	cut := io.MultiReader(bytes.NewReader(good[:20]), iotest.ErrReader(io.ErrClosedPipe))
	require.ErrorIs(t, s.Restore(rawnode.SnapshotMeta{Index: 10}, cut), io.ErrClosedPipe)
	require.NoError(t, restore(s, 10, "", good))
	require.EqualValues(t, 10, s.Applied())
	_, _, err := s.Get("old")
	require.ErrorIs(t, err, ErrNotFound)
	got, _, err := s.Get("b")
	require.NoError(t, err)
	require.Equal(t, state["b"], string(got))
	require.Equal(t, pattern(50, 1), readAll(t, s, "large"))
	requireNoOrphans(t, s)
}

// A snapshot whose records are each good, but do not belong together, is
// refused.
func TestSnapshotContradicts(t *testing.T) {
	db, s := openMem(t)
	apply(t, s, append(uploadOf(UploadID{2}, "large", pattern(50, 1)), put("k", "v"))...)
	part := s.space().key(secPart, partName(1, 0))
	good, err := present{inner(t, db)}.get(part)
	require.NoError(t, err)
	_, other := openMem(t)
	for what, change := range map[string]func(){
		"a part is missing": func() { require.NoError(t, inner(t, db).Delete(part, pebble.NoSync)) },
		"a part without owner": func() {
			require.NoError(t, inner(t, db).Set(s.space().key(secPart, partName(9, 0)), good, pebble.NoSync))
		},
		"a part of another place": func() {
			require.NoError(t, inner(t, db).Set(s.space().key(secPart, partName(1, 1)), good, pebble.NoSync))
		},
	} {
		require.NoError(t, inner(t, db).DeleteRange(s.space().key(secPart, nil), s.space().key(secLarge, nil), pebble.NoSync))
		require.NoError(t, inner(t, db).Set(part, good, pebble.NoSync))
		require.NoError(t, restore(other, s.Applied(), "", snapshotBytes(t, s)))
		change()
		snap, err := s.Snapshot()
		require.NoError(t, err)
		b, err := io.ReadAll(snap)
		require.NoError(t, snap.Close())
		if what != "a part is missing" { // which is seen at the end only
			require.ErrorIs(t, err, ErrDamaged, what)
			continue
		}
		require.ErrorIs(t, restore(other, s.Applied(), "", b), errSnapshot, what)
		require.Equal(t, pattern(50, 1), readAll(t, other, "large"))
	}
}

// A snapshot and a large value under way show their own index while the store
// goes on, and is replaced altogether.
func TestViewsAreConsistent(t *testing.T) {
	db, s := openMem(t)
	large := pattern(2*PartBytes+5, 9)
	apply(t, s, append(uploadOf(UploadID{1}, "large", large), put("k", "first"))...)
	snap, err := s.Snapshot()
	require.NoError(t, err)
	value, err := s.Value("large")
	require.NoError(t, err)
	require.EqualValues(t, len(large), value.Size)
	b, err := value.Next()
	require.NoError(t, err)
	require.Equal(t, large[:PartBytes], b)
	_, _, err = s.Get("large")
	require.ErrorIs(t, err, ErrLarge)

	apply(t, s, put("k", "second"), put("l", "new"), put("large", "small now"))
	require.Equal(t, "small now", string(readAll(t, s, "large")))
	requireNoOrphans(t, s)
	require.NoError(t, restore(s, 5, "", snapshotOf(t, 5, map[string]string{"other": "x"})))
	require.NoError(t, db.Flush())

	_, other := openMem(t)
	b, err = io.ReadAll(snap)
	require.NoError(t, err)
	require.NoError(t, restore(other, 1, "", b))
	require.NoError(t, snap.Close())
	require.NoError(t, snap.Close())
	require.Equal(t, "first", string(readAll(t, other, "k")))
	require.Equal(t, large, readAll(t, other, "large"))
	page, err := other.List(Query{Digests: true})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	require.Equal(t, value.SHA256, page.Items[1].SHA256)
	require.EqualValues(t, len(large), page.Items[1].Size)

	b, err = value.Next()
	require.NoError(t, err)
	require.Equal(t, large[PartBytes:2*PartBytes], b)
	b, err = value.Next()
	require.NoError(t, err)
	require.Equal(t, large[2*PartBytes:], b)
	_, err = value.Next()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, value.Close())
	require.NoError(t, value.Close())
}

// One group's snapshot leaves the others alone, and what it replaced is gone.
func TestRestoreLeavesOthersAlone(t *testing.T) {
	db, one := openMem(t)
	two, err := db.Group(2)
	require.NoError(t, err)
	again, err := db.Group(2)
	require.NoError(t, err)
	require.Same(t, two, again)
	_, err = db.Group(0)
	require.ErrorIs(t, err, ErrInvalid)
	apply(t, one, put("k", "one"))
	apply(t, two, put("k", "two"))
	require.NoError(t, restore(one, 9, "host", snapshotOf(t, 9, map[string]string{"other": "x"})))
	require.NoError(t, restore(one, 12, "host", snapshotOf(t, 12, map[string]string{"third": "x"})))
	require.EqualValues(t, 1, two.Applied())
	require.Equal(t, "two", string(readAll(t, two, "k")))
	require.Equal(t, "x", string(readAll(t, one, "third")))
	for generation := uint32(1); generation < 3; generation++ {
		require.NoError(t, scan(present{inner(t, db)}, space{1, generation}, secData, func(name, _ []byte) error {
			return fmt.Errorf("generation %d has %q", generation, name)
		}))
	}
	apply(t, one, put("k", "again"))
	d, err := one.Durable()
	require.NoError(t, err)
	require.EqualValues(t, 12, d)
}

func TestOpenRefuses(t *testing.T) {
	fs := vfs.NewMem()
	open := func(id Identity) (*DB, error) { return Open("state", id, Options{FS: fs}) }
	db, err := open(testIdentity)
	require.NoError(t, err)
	_, err = open(testIdentity)
	require.ErrorIs(t, err, state.ErrLocked)
	require.NoError(t, db.Close())
	require.ErrorIs(t, db.Close(), ErrClosed)
	_, err = db.Group(1)
	require.ErrorIs(t, err, ErrClosed)

	_, err = open(Identity{Cluster: 7, Node: 4})
	require.ErrorIs(t, err, state.ErrIdentity)
	require.ErrorContains(t, err, "cluster 7, node 3")
	require.ErrorContains(t, err, "cluster 7, node 4")

	set := func(f func(p *pebble.DB) error) {
		p, err := pebble.Open("state/db", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest, Logger: gate.New(gate.Options{Logf: t.Logf}).Logger()})
		require.NoError(t, err)
		require.NoError(t, f(p))
		require.NoError(t, p.Close())
	}
	set(func(p *pebble.DB) error { return p.Set(keyIdentity, []byte{formatVersion + 1}, pebble.Sync) })
	_, err = open(testIdentity)
	require.ErrorIs(t, err, state.ErrVersion)
	require.ErrorContains(t, err, "it is 6, this kvdemo reads 2 to 5")

	set(func(p *pebble.DB) error { return p.Delete(keyIdentity, pebble.Sync) })
	db, err = open(testIdentity)
	require.NoError(t, err, "an empty database is new")
	require.NoError(t, db.Close())
	set(func(p *pebble.DB) error {
		return p.Set([]byte("something"), nil, pebble.Sync)
	})
	set(func(p *pebble.DB) error { return p.Delete(keyIdentity, pebble.Sync) })
	_, err = open(testIdentity)
	require.ErrorIs(t, err, ErrDamaged)

	require.NoError(t, fs.MkdirAll("old/gen-1", 0o755))
	_, err = Open("old", testIdentity, Options{FS: fs})
	require.ErrorIs(t, err, state.ErrVersion)
	require.ErrorContains(t, err, "old is of format 1, this kvdemo reads 5; read the values out with the kvdemo that wrote them")
	names, err := fs.List("old")
	require.NoError(t, err)
	require.NotContains(t, names, "db", "nothing was changed")
}

// A value that changed on disk, or turns up under another key, is an error.
func TestDamagedValue(t *testing.T) {
	db, s := openMem(t)
	apply(t, s, put("a", "value"), put("b", "value"))
	record, err := present{inner(t, db)}.get(s.space().key(secData, []byte("a")))
	require.NoError(t, err)
	require.NoError(t, inner(t, db).Set(s.space().key(secData, []byte("b")), record, pebble.NoSync))
	_, _, err = s.Get("b")
	require.ErrorIs(t, err, ErrDamaged)
	_, err = s.List(Query{Digests: true})
	require.ErrorIs(t, err, ErrDamaged)
	snap, err := s.Snapshot()
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, snap)
	require.ErrorIs(t, err, ErrDamaged, "damage must not travel to another node")
	require.NoError(t, snap.Close())
	_, _, err = s.Get("a")
	require.NoError(t, err)
}

func TestApplyRefusesOldIndex(t *testing.T) {
	_, s := openMem(t)
	applyAt(t, s, 5, nil)
	_, err := s.Apply(rawnode.Batch{Index: 5, Commands: [][]byte{put("a", "b")}})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "5")
}

func TestList(t *testing.T) {
	_, s := openMem(t)
	var commands [][]byte
	for _, key := range []string{"a", "a/1", "a/2", "a0", "b\U0010ffff", "b\U0010ffffx", "c"} {
		commands = append(commands, put(key, key))
	}
	apply(t, s, commands...)
	for _, c := range []struct {
		q    Query
		want string
		next string
	}{
		{Query{}, "a a/1 a/2 a0 b\U0010ffff b\U0010ffffx c", ""},
		{Query{Prefix: "a/"}, "a/1 a/2", ""},
		{Query{Prefix: "a", Limit: 2}, "a a/1", "a/1"},
		{Query{Prefix: "a", Limit: 2, After: "a/1"}, "a/2 a0", ""},
		{Query{Prefix: "b\U0010ffff"}, "b\U0010ffff b\U0010ffffx", ""},
		{Query{Prefix: "a", After: "b"}, "", ""},
		{Query{Prefix: "b", After: "a"}, "b\U0010ffff b\U0010ffffx", ""},
		{Query{After: "c"}, "", ""},
	} {
		page, err := s.List(c.q)
		require.NoError(t, err)
		var keys []string
		for _, item := range page.Items {
			require.EqualValues(t, len(item.Key), item.Size)
			keys = append(keys, item.Key)
		}
		require.Equal(t, c.want, strings.Join(keys, " "), "%+v", c.q)
		require.Equal(t, c.next, page.Next, "%+v", c.q)
	}
	_, err := s.List(Query{Limit: MaxPage + 1})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "10001, want 1 to 10000")
}

// FuzzRestore: any bytes give an error or a state, never a panic.
func FuzzRestore(f *testing.F) {
	f.Add(snapshotOf(f, 1, map[string]string{"a": "b"}))
	f.Add([]byte(snapshotMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, s := openMem(t)
		if err := restore(s, 1, "", b); err != nil {
			require.ErrorIs(t, err, errSnapshot)
		}
	})
}
