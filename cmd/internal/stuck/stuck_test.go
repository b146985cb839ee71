// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package stuck

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// Writes and syncs wait while the disk is stuck, and are done afterwards; reads go on.
func TestWritesWaitWhileTheDiskIsStuck(t *testing.T) {
	require.Equal(t, vfs.Default, Disk("").FS())
	dir := t.TempDir()
	disk := Disk(filepath.Join(dir, "stuck"))
	fs := disk.FS()
	f, err := fs.Create(filepath.Join(dir, "f"), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write([]byte("before"))
	require.NoError(t, err)
	require.NoError(t, disk.Set(Hangs))

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

	require.NoError(t, disk.Set(0))
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

// On a slow disk syncs take longer, and writes do not.
func TestSyncsOfASlowDiskTakeLonger(t *testing.T) {
	const by = 200 * time.Millisecond
	disk := Disk(filepath.Join(t.TempDir(), "slow"))
	f, err := disk.FS().Create(filepath.Join(t.TempDir(), "f"), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	took := func(do func() error) time.Duration {
		begun := time.Now()
		require.NoError(t, do())
		return time.Since(begun)
	}
	require.NoError(t, disk.Set(by))
	least := time.Hour // of several: the machine may be busy
	for range 20 {
		least = min(least, took(func() error { _, err := f.Write([]byte("x")); return err }))
	}
	require.Less(t, least, by)
	require.GreaterOrEqual(t, took(f.Sync), by)
	require.GreaterOrEqual(t, took(f.SyncData), by)
	require.NoError(t, disk.Set(0))
	require.NoError(t, disk.Set(0), "it is as it is")
	for range 20 {
		least = min(least, took(f.Sync))
	}
	require.Less(t, least, by)
	require.NoError(t, f.Close())
}
