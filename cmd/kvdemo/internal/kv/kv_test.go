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
)

func put(key, value string) []byte {
	return Command{Op: OpPut, Key: key, Value: []byte(value)}.Encode()
}

func openMem(t *testing.T) *Store {
	t.Helper()
	m := machine{fs: vfs.NewCrashableMem()}
	m.open(t)
	t.Cleanup(func() { _ = m.store.Close() })
	return m.store
}

// Each bit of damage to a snapshot is noticed, and the state stays as it was.
func TestSnapshotDamage(t *testing.T) {
	state := map[string]string{"a": "1", "b": strings.Repeat("x", 300), "c": ""}
	good := snapshotOf(t, 10, state)
	s := openMem(t)
	_, err := s.Apply(3, [][]byte{put("old", "state")}, nil)
	require.NoError(t, err)
	refused := func(b []byte, what string) {
		t.Helper()
		require.ErrorIs(t, s.Restore(10, nil, bytes.NewReader(b)), ErrSnapshot, what)
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
	require.ErrorIs(t, s.Restore(11, nil, bytes.NewReader(good)), ErrSnapshot, "of another index")
	cut := io.MultiReader(bytes.NewReader(good[:20]), iotest.ErrReader(io.ErrClosedPipe))
	require.ErrorIs(t, s.Restore(10, nil, cut), io.ErrClosedPipe)
	require.NoError(t, s.Restore(10, nil, bytes.NewReader(good)))
	require.EqualValues(t, 10, s.Applied())
	_, _, err = s.Get("old")
	require.ErrorIs(t, err, ErrNotFound)
	got, _, err := s.Get("b")
	require.NoError(t, err)
	require.Equal(t, state["b"], string(got))
}

// A snapshot under way shows its own index while the store goes on, and is
// replaced altogether.
func TestSnapshotIsConsistent(t *testing.T) {
	s := openMem(t)
	_, err := s.Apply(1, [][]byte{put("k", "first")}, nil)
	require.NoError(t, err)
	snap, err := s.Snapshot()
	require.NoError(t, err)
	_, err = s.Apply(2, [][]byte{put("k", "second"), put("l", "new")}, nil)
	require.NoError(t, err)
	require.NoError(t, s.Restore(5, nil, bytes.NewReader(snapshotOf(t, 5, map[string]string{"other": "x"}))))

	other, err := Open("other", Options{Identity: testIdentity, FS: vfs.NewMem()})
	require.NoError(t, err)
	require.NoError(t, other.Restore(1, nil, snap))
	require.NoError(t, snap.Close())
	got, _, err := other.Get("k")
	require.NoError(t, err)
	require.Equal(t, "first", string(got))
	page, err := other.List(Query{})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	require.NoError(t, other.Close())

	names, err := s.opts.FS.List("state")
	require.NoError(t, err)
	require.NotContains(t, names, "gen-1", "the old state is removed with its last reader")
	require.Contains(t, names, "gen-2")
}

func TestOpenRefuses(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("state", Options{Identity: testIdentity, FS: fs})
	require.NoError(t, err)
	_, err = Open("state", Options{Identity: testIdentity, FS: fs})
	require.ErrorContains(t, err, "is another node running on it?")
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Close(), ErrClosed)

	_, err = Open("state", Options{Identity: Identity{Cluster: 7, Node: 4}, FS: fs})
	require.ErrorIs(t, err, ErrIdentity)
	require.ErrorContains(t, err, "cluster 7, node 3")
	require.ErrorContains(t, err, "cluster 7, node 4")

	db, err := pebble.Open("state/gen-1", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest, Logger: logger(t.Logf)})
	require.NoError(t, err)
	require.NoError(t, db.Set(keyIdentity, []byte{formatVersion + 1}, pebble.Sync))
	require.NoError(t, db.Close())
	_, err = Open("state", Options{Identity: testIdentity, FS: fs})
	require.ErrorIs(t, err, ErrVersion)
	require.ErrorContains(t, err, "it is 2, this kvdemo reads up to 1")
}

// A value that changed on disk, or turns up under another key, is an error.
func TestDamagedValue(t *testing.T) {
	s := openMem(t)
	_, err := s.Apply(1, [][]byte{put("a", "value"), put("b", "value")}, nil)
	require.NoError(t, err)
	record, err := get(s.gen.db, dataKey("a"))
	require.NoError(t, err)
	require.NoError(t, s.gen.db.Set(dataKey("b"), record, pebble.NoSync))
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
	s := openMem(t)
	_, err := s.Apply(5, nil, nil)
	require.NoError(t, err)
	_, err = s.Apply(5, [][]byte{put("a", "b")}, nil)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "5")
}

func TestList(t *testing.T) {
	s := openMem(t)
	var commands [][]byte
	for _, key := range []string{"a", "a/1", "a/2", "a0", "b\U0010ffff", "b\U0010ffffx", "c"} {
		commands = append(commands, put(key, key))
	}
	_, err := s.Apply(1, commands, nil)
	require.NoError(t, err)
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
			require.Equal(t, len(item.Key), item.Size)
			keys = append(keys, item.Key)
		}
		require.Equal(t, c.want, strings.Join(keys, " "), "%+v", c.q)
		require.Equal(t, c.next, page.Next, "%+v", c.q)
	}
	_, err = s.List(Query{Limit: MaxPage + 1})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "10001, want 1 to 10000")
}

func TestLimits(t *testing.T) {
	require.NoError(t, CheckKey(strings.Repeat("k", MaxKeyBytes)))
	require.NoError(t, CheckValue(MaxValueBytes))
	for _, c := range []struct {
		err  error
		want string
	}{
		{CheckKey(""), "want 1 to 4096 bytes"},
		{CheckKey(strings.Repeat("k", MaxKeyBytes+1)), "4097 bytes, want 1 to 4096"},
		{CheckKey("\xff"), "not UTF-8"},
		{CheckValue(MaxValueBytes + 1), "4194305 bytes, want at most 4194304"},
	} {
		require.ErrorIs(t, c.err, ErrInvalid)
		require.ErrorContains(t, c.err, c.want)
	}
}

// FuzzDecode: any bytes give an error or a command that encodes to them.
func FuzzDecode(f *testing.F) {
	f.Add(put("key", "value"))
	f.Add(Command{Op: OpDelete, Key: "key"}.Encode())
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Decode(b)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		again, err := Decode(c.Encode())
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}

// FuzzRestore: any bytes give an error or a state, never a panic.
func FuzzRestore(f *testing.F) {
	f.Add(snapshotOf(f, 1, map[string]string{"a": "b"}))
	f.Add([]byte(snapshotMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		db, err := pebble.Open("db", &pebble.Options{FS: vfs.NewMem(), DisableWAL: true, Logger: logger(t.Logf)})
		require.NoError(t, err)
		if err := restoreInto(db, 1, nil, bytes.NewReader(b)); err != nil {
			require.ErrorIs(t, err, ErrSnapshot)
		}
		require.NoError(t, db.Close())
	})
}
