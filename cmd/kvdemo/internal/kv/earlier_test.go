// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A version that writes directories otherwise adds one of its own beside those in testdata/earlier:
//
//	go test ./cmd/kvdemo/internal/kv -run TestDirectoriesOfEarlierVersionsOpen -args -write-earlier NAME
var writeEarlier = flag.String("write-earlier", "", "write a directory of this version to testdata/earlier under this name")

// earlier has one of each kind of record.
func earlier(t *testing.T, db *DB) *Store {
	_, err := db.Group(2)
	require.NoError(t, err)
	s, err := db.Group(1)
	require.NoError(t, err)
	upload := UploadID{1}
	part := Command{Op: OpPart, Upload: UploadID{2}, Size: 3, Value: []byte("one")}.Encode()
	apply(t, s, raiseTo(NewestLevel))
	applyAt(t, s, 7, []byte("the host's"), append(uploadOf(upload, "in parts", pattern(100, 1)),
		put("key", "value"), put("gone", "value"), del("gone"), put("of some size", string(make([]byte, 5000))), part,
		Command{Op: OpOpenSession}.Encode(),
		Command{Op: OpSystem, Key: "member/1", Value: []byte("address 127.0.0.1:7201")}.Encode(),
		txn(nil, []Action{
			{Kind: ActPut, Key: "for a while", Value: []byte("v"), Deadline: 2_000_000_000_000},
			{Kind: ActHashSet, Key: "hash", Value: list("f", "v", "g", "w")},
			{Kind: ActSortedAdd, Key: "sorted", Value: scoredList(scoredMember{1, "one"}, scoredMember{2, "two"})},
		}),
	)...)
	return s
}

// A directory is read as it was written, byte for byte of a snapshot, and goes on.
func TestDirectoriesOfEarlierVersionsOpen(t *testing.T) {
	const all = "testdata/earlier"
	if *writeEarlier != "" {
		dir := filepath.Join(all, *writeEarlier)
		db, err := Open(dir, testIdentity, Options{})
		require.NoError(t, err)
		sum := sha256.Sum256(snapshotBytes(t, earlier(t, db)))
		require.NoError(t, db.Close())
		require.NoError(t, os.WriteFile(dir+".sum", fmt.Appendf(nil, "%x\n", sum), 0o644))
	}
	dirs, err := filepath.Glob(filepath.Join(all, "*.sum"))
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, name := range dirs {
		sum, err := os.ReadFile(name)
		require.NoError(t, err)
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(name[:len(name)-len(".sum")])))
		db, err := Open(dir, testIdentity, Options{})
		require.NoError(t, err)
		s, err := db.Group(1)
		require.NoError(t, err)
		applied, host, err := s.Load()
		require.NoError(t, err)
		require.EqualValues(t, 7, applied)
		require.Equal(t, "the host's", string(host))
		durable, err := s.Durable()
		require.NoError(t, err)
		require.Equal(t, applied, durable)
		require.Equal(t, string(sum), fmt.Sprintf("%x\n", sha256.Sum256(snapshotBytes(t, s))), name)
		require.Equal(t, pattern(100, 1), readAll(t, s, "in parts"))
		apply(t, s, put("key", "another"))
		require.Equal(t, "another", string(readAll(t, s, "key")))
		require.NoError(t, db.Close())
	}
}
