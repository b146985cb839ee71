// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// Writes and syncs wait while the disk is stuck, and are done afterwards; reads go on.
func TestWritesWaitWhileTheDiskIsStuck(t *testing.T) {
	require.Equal(t, vfs.Default, Config{}.disk())
	dir := t.TempDir()
	stuck := filepath.Join(dir, "stuck")
	fs := Config{StuckDisk: stuck}.disk()
	f, err := fs.Create(filepath.Join(dir, "f"), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write([]byte("before"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(stuck, nil, 0o600))

	waits := map[string]func() error{
		"write": func() error { _, err := f.Write([]byte(", after")); return err },
		"sync":  f.Sync,
		"make":  func() error { return fs.MkdirAll(filepath.Join(dir, "d"), 0o755) },
	}
	type end struct {
		what string
		err  error
	}
	ends := make(chan end, len(waits))
	for what, do := range waits {
		go func() { ends <- end{what, do()} }()
	}
	for range 20 { // each read takes its time: a write that does not wait is done meanwhile
		r, err := fs.Open(filepath.Join(dir, "f"))
		require.NoError(t, err)
		held := make([]byte, 20)
		n, _ := r.Read(held)
		require.Equal(t, "before", string(held[:n]))
		require.NoError(t, r.Close())
	}
	require.Empty(t, ends)
	require.NoDirExists(t, filepath.Join(dir, "d"))

	require.NoError(t, os.Remove(stuck))
	for range waits {
		e := <-ends
		require.NoError(t, e.err, e.what)
	}
	require.NoError(t, f.Close())
	held, err := os.ReadFile(filepath.Join(dir, "f"))
	require.NoError(t, err)
	require.Equal(t, "before, after", string(held))
	require.DirExists(t, filepath.Join(dir, "d"))
}
