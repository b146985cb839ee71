// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package dirlock_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/dirlock"
)

func TestDirectoryHasOneOwnerUnderAnyName(t *testing.T) {
	parent := t.TempDir()
	t.Chdir(parent)
	dir, link := filepath.Join(parent, "data"), filepath.Join(parent, "link")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Symlink(dir, link))
	names := []string{dir, link, "data", filepath.Join("link", "..", "data")}
	for _, first := range names {
		l, err := dirlock.Take(vfs.Default, first)
		require.NoError(t, err)
		for _, second := range names {
			_, err := dirlock.Take(vfs.Default, second)
			require.ErrorContains(t, err, "this process has the directory, as "+first)
		}
		require.NoError(t, l.Close())
	}
	_, err := dirlock.Take(vfs.Default, filepath.Join(parent, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A process made directories and was killed before it had synced their parents. The next one does, and does not go on
// if the disk fails: a power failure would take the directories away, with all that is synced in them.
func TestParentsThatCannotBeSyncedAreNoPlaceForData(t *testing.T) {
	mem := vfs.NewCrashableMem()
	require.NoError(t, mem.MkdirAll("a/b/data", 0o755))
	var with error
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFileSync {
			return nil
		}
		err := with
		with = nil
		return err
	}))
	with = syscall.EIO
	require.ErrorIs(t, dirlock.Make(fs, "a/b/data"), syscall.EIO)
	for _, with = range []error{os.ErrPermission, syscall.EINVAL, nil} {
		require.NoError(t, dirlock.Make(fs, "a/b/data"))
	}
	_, err := mem.CrashClone(vfs.CrashCloneCfg{}).Stat("a/b/data")
	require.NoError(t, err)
}
