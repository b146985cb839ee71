// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
)

var testIdentity = Identity{Cluster: 7, Node: 3}

func put(key, value string) []byte {
	return Command{Op: OpPut, Key: key, Value: []byte(value)}.Encode()
}

func del(key string) []byte { return Command{Op: OpDelete, Key: key}.Encode() }

// openMem opens an empty database in memory, and its group 1.
func openMem(t require.TestingT) (*DB, *Store) {
	db, err := Open("state", testIdentity, Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	s, err := db.Group(1)
	require.NoError(t, err)
	if t, ok := t.(testing.TB); ok {
		t.Cleanup(func() { _ = db.Close() })
	}
	return db, s
}

// inner returns the database behind the gate, good until Close.
func inner(t require.TestingT, db *DB) *pebble.DB {
	p, err := db.Use()
	require.NoError(t, err)
	db.Release()
	return p
}

// apply applies commands as the next entry and returns their results.
func apply(t require.TestingT, s *Store, commands ...[]byte) []Result {
	return applyAt(t, s, s.Applied()+1, nil, commands...)
}

func applyAt(t require.TestingT, s *Store, index uint64, host []byte, commands ...[]byte) []Result {
	values, err := s.Apply(rawnode.Batch{Index: index, Commands: commands, Host: host})
	require.NoError(t, err)
	require.Len(t, values, len(commands))
	results := make([]Result, len(values))
	for i, v := range values {
		results[i] = v.(Result)
	}
	return results
}

// uploadOf returns the commands that store a value in parts, the last of which
// finishes it.
func uploadOf(id UploadID, key string, value []byte) [][]byte {
	size := int64(len(value))
	var commands [][]byte
	for i := range partsOf(size) {
		from := i * PartBytes
		commands = append(commands, Command{Op: OpPart, Upload: id, Size: size, Part: i, Value: value[from : from+partLen(size, i)]}.Encode())
	}
	return append(commands, Command{Op: OpFinish, Key: key, Upload: id, Size: size, SHA256: sha256.Sum256(value)}.Encode())
}

// pattern returns bytes that differ from place to place and from seed to seed.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	v := uint32(seed) + 1
	for i := range b {
		v = v*1664525 + 1013904223
		b[i] = byte(v >> 24)
	}
	return b
}

// readAll reads a value of any size.
func readAll(t require.TestingT, s *Store, key string) []byte {
	v, err := s.Value(key)
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	return drain(t, v)
}

func drain(t require.TestingT, v *Value) []byte {
	all := []byte{}
	for {
		b, err := v.Next()
		if errors.Is(err, io.EOF) {
			require.EqualValues(t, v.Size, len(all))
			return all
		}
		require.NoError(t, err)
		require.LessOrEqual(t, len(b), PartBytes)
		all = append(all, b...)
	}
}

// snapshotBytes returns the store's snapshot.
func snapshotBytes(t require.TestingT, s *Store) []byte {
	snap, err := s.Snapshot()
	require.NoError(t, err)
	b, err := io.ReadAll(snap)
	require.NoError(t, err)
	require.NoError(t, snap.Close())
	return b
}

// restore replaces a store's state by a snapshot.
func restore(s *Store, index uint64, host string, b []byte) error {
	return s.Restore(rawnode.SnapshotMeta{Index: index, Host: []byte(host)}, bytes.NewReader(b))
}

// UploadState says how far an upload is.
type UploadState struct {
	Size    int64 // of the whole value
	Missing []int // parts that have not arrived, ascending
}

// Upload returns the state of an upload, or ErrNoUpload.
func (s *Store) Upload(id UploadID) (UploadState, error) {
	var state UploadState
	_, err := s.find(secUpload, id[:], func(b []byte) error {
		u, err := decodeUpload(id[:], b)
		if err == nil {
			state = UploadState{Size: u.size, Missing: members(u.all() &^ u.have)}
		}
		return err
	})
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %v", ErrNoUpload, id)
	}
	return state, err
}
