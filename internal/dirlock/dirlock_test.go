// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package dirlock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
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
