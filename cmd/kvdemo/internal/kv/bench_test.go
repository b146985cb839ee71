// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
)

// BenchmarkApply measures what a replica spends on an entry with one command,
// flushes and compactions included. disk/B are bytes written to the state's
// files for each byte of value.
func BenchmarkApply(b *testing.B) {
	for _, c := range []struct{ size, commands int }{{16, 1}, {16, 64}, {1 << 10, 1}, {1 << 10, 64}, {64 << 10, 1}, {1 << 20, 1}} {
		b.Run(fmt.Sprintf("size=%d/commands=%d", c.size, c.commands), func(b *testing.B) {
			db, err := Open(filepath.Join(b.TempDir(), "state"), Options{Identity: testIdentity})
			require.NoError(b, err)
			s, err := db.Group(1)
			require.NoError(b, err)
			host := make([]byte, 60)
			const keys = 1000
			entries := make([][]byte, keys)
			for i := range entries {
				entries[i] = Command{Op: OpPut, Key: fmt.Sprintf("bench/%08d", i), Value: pattern(c.size, byte(i))}.Encode()
			}
			batch := make([][]byte, c.commands)
			b.SetBytes(int64(c.size * c.commands))
			b.ReportAllocs()
			n := 0
			for index := uint64(1); b.Loop(); index++ {
				for i := range batch {
					batch[i] = entries[n%keys]
					n++
				}
				if _, err := s.Apply(rawnode.Batch{Index: index, Commands: batch, Host: host}); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, db.Flush())
			b.ReportMetric(float64(db.WrittenBytes())/float64(n*c.size), "disk/B")
			require.NoError(b, db.Close())
		})
	}
}

// BenchmarkGet reads values that are on disk and in Pebble's or the system's
// cache.
func BenchmarkGet(b *testing.B) {
	for _, size := range []int{16, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			db, err := Open(filepath.Join(b.TempDir(), "state"), Options{Identity: testIdentity})
			require.NoError(b, err)
			s, err := db.Group(1)
			require.NoError(b, err)
			const keys = 200
			for i := range keys {
				apply(b, s, Command{Op: OpPut, Key: fmt.Sprintf("bench/%08d", i), Value: pattern(size, byte(i))}.Encode())
			}
			require.NoError(b, db.Flush())
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, _, err := s.Get(fmt.Sprintf("bench/%08d", i%keys)); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, db.Close())
		})
	}
}

// What a replica's state writes for each byte of 64 KiB values, and keeps on
// disk for each byte that it holds. With a log of at most 1.1 bytes written, a
// byte costs a replica at most 3.
func TestDiskBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() *DB {
		db, err := Open(dir, Options{Identity: testIdentity})
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
