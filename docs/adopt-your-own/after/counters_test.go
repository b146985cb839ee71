// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
)

// The state after Restore is the one at Snapshot; or, if the snapshot did not come
// whole, the one before.
func TestRestoreIsTheStateAtSnapshot(t *testing.T) {
	open := func(name string) *counters {
		c, err := openCounters(filepath.Join(t.TempDir(), name))
		require.NoError(t, err)
		return c
	}
	from, to := open("from.json"), open("to.json")
	_, err := from.Apply(rawnode.Batch{Index: 9, Commands: [][]byte{[]byte(`{"Name":"apples","N":3}`)}, Host: []byte("host")})
	require.NoError(t, err)
	snap, err := from.Snapshot()
	require.NoError(t, err)
	body, err := io.ReadAll(snap)
	require.NoError(t, err)

	broken := errors.New("the connection broke")
	cut := io.MultiReader(bytes.NewReader(body), iotest.ErrReader(broken))
	require.ErrorIs(t, to.Restore(snap.Meta(), cut), broken, "it may have been longer")
	require.Zero(t, to.get("apples"))
	require.NoError(t, to.Restore(snap.Meta(), bytes.NewReader(body)))
	require.Equal(t, from.table, to.table)
	again, err := openCounters(to.path)
	require.NoError(t, err)
	require.Equal(t, from.table, again.table)
}
