// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

func TestQueriesAndResultsReachGateways(t *testing.T) {
	db, err := pebblestate.Open(pebblestate.Options{FS: vfs.NewMem(), Dir: "state"})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	s, err := db.Group(1, count, pebblestate.GroupOptions{Query: func(r pebblestate.Reader, word []byte) ([]byte, error) {
		value, _, err := r.Get(word)
		return value, err
	}})
	require.NoError(t, err)
	_, _, err = s.Load()
	require.NoError(t, err)
	results, err := s.Apply(rawnode.Batch{Index: 1, Commands: [][]byte{[]byte("+ada")}, Host: []byte("h")})
	require.NoError(t, err)
	b, err := s.EncodeResult(results[0])
	require.NoError(t, err)
	got, err := state.DecodeResult(b)
	require.NoError(t, err)
	require.Equal(t, results[0], got)
	answer, err := s.Query(context.Background(), []byte("ada"))
	require.NoError(t, err)
	require.Equal(t, results[0], string(answer))

	without, err := db.Group(2, count, pebblestate.GroupOptions{})
	require.NoError(t, err)
	_, err = without.Query(context.Background(), nil)
	require.ErrorIs(t, err, rawnode.ErrNoQueries)
}

// The host keeps some bytes for each gateway beside the state, which may be many. Readers do not read them.
func TestViewDoesNotReadTheHostsBytes(t *testing.T) {
	db, err := pebblestate.Open(pebblestate.Options{FS: vfs.NewMem(), Dir: "state"})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	s, err := db.Group(1, count, pebblestate.GroupOptions{})
	require.NoError(t, err)
	_, err = s.Apply(rawnode.Batch{Index: 1, Commands: [][]byte{[]byte("+ada")}, Host: make([]byte, 1<<20)})
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		require.NoError(t, s.View(func(pebblestate.Reader) error { return nil }))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}
