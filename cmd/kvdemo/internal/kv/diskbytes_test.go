// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a replica's state writes for each byte of 64 KiB values, and keeps on
// disk for each byte that it holds. With a log of at most 1.1 bytes written, a
// byte costs a replica at most 3.
func TestDiskBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() *DB {
		db, err := Open(dir, testIdentity, Options{})
		require.NoError(t, err)
		return db
	}
	db := open()
	s, err := db.Group(1)
	require.NoError(t, err)
	const size, values, keys = 64 << 10, 1600, 400
	value := pattern(size, 1) // does not compress
	for i := range values {
		// Every key is written four times: there is garbage to remove.
		copy(value, fmt.Sprintf("%8d", i))
		apply(t, s, Command{Op: OpPut, Key: fmt.Sprint("key", i*7%keys), Value: value}.Encode())
	}
	require.NoError(t, db.Flush())
	written := float64(db.WrittenBytes()) / (size * values)
	require.NoError(t, db.Close())
	db = open()
	kept := float64(db.DiskBytes()) / (size * keys)
	require.NoError(t, db.Close())
	t.Logf("%.2f bytes written for each byte put, %.2f kept for each byte held", written, kept)
	require.Less(t, written, 1.9)
	require.GreaterOrEqual(t, written, 0.2)
	require.Less(t, kept, 4.5)
	require.GreaterOrEqual(t, kept, 1.0)
}
