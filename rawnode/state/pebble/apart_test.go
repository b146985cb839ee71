// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// set makes the command the value of a key, which is the command's first byte.
func set(tx *pebblestate.Tx, command []byte) (any, error) {
	return nil, tx.Set(command[:1], command[1:])
}

// TestLargeValuesAreKeptApart has values on both sides of the size from which on they have files of their own, and reads them after a
// restart, from the state and from a snapshot's copy.
func TestLargeValuesAreKeptApart(t *testing.T) {
	fs := vfs.NewMem()
	large := make([]byte, 1<<20)
	_, err := rand.NewChaCha8([32]byte{}).Read(large) // what does not compress
	require.NoError(t, err)
	values := [][]byte{[]byte("small"), bytes.Repeat([]byte("m"), 2<<10), large}
	read := func(s *pebblestate.State) {
		require.NoError(t, s.View(func(r pebblestate.Reader) error {
			for i, want := range values {
				got, found, err := r.Get([]byte{byte(i)})
				require.NoError(t, err)
				require.True(t, found)
				require.Equal(t, want, got)
			}
			return nil
		}))
	}
	apart := func(dir string) bool {
		files, err := fs.List(dir)
		require.NoError(t, err)
		return slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, ".blob") })
	}
	open := func(dir string) (*pebblestate.DB, *pebblestate.State) {
		db, err := pebblestate.Open(pebblestate.Options{FS: fs, Dir: dir})
		require.NoError(t, err)
		s, err := db.Group(1, set, pebblestate.GroupOptions{})
		require.NoError(t, err)
		_, _, err = s.Load()
		require.NoError(t, err)
		return db, s
	}

	db, s := open("state")
	for i, v := range values {
		_, err := s.Apply(rawnode.Batch{Index: uint64(i) + 1, Commands: [][]byte{append([]byte{byte(i)}, v...)}})
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	require.True(t, apart("state"))

	db, s = open("state")
	read(s)
	other, copied := open("copy")
	body, err := s.Snapshot()
	require.NoError(t, err)
	require.Greater(t, s.SnapshotBytes(), int64(128<<10), "the estimate counts what is apart")
	require.NoError(t, copied.Restore(body.Meta(), body))
	require.NoError(t, body.Close())
	read(copied)
	require.True(t, apart("copy"))
	require.NoError(t, other.Close())
	require.NoError(t, db.Close())
}
