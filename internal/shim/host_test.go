// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host on another version of upstream's library hears of it before its
// compiler does.
func TestHostOnAnotherVersionIsTold(t *testing.T) {
	for requires, note := range map[string]string{
		"go.etcd.io/raft/v3 v3.7.0":                  "",
		"go.etcd.io/raft/v3 v3.6.0":                  "requires go.etcd.io/raft/v3 v3.6.0, which is older than v3.7.0",
		"go.etcd.io/raft/v3 v3.7.0-rc.1":             "is older than v3.7.0",
		"go.etcd.io/raft/v3 v3.6.0 // indirect":      "go get go.etcd.io/raft/v3@v3.7.0",
		"go.etcd.io/raft/v3 v3.7.1":                  "requires go.etcd.io/raft/v3 v3.7.1, which is newer than v3.7.0",
		"go.etcd.io/etcd/raft/v3 v3.5.9":             "requires go.etcd.io/etcd/raft/v3 v3.5.9, which is older than v3.7.0",
		"go.etcd.io/etcd v3.3.27+incompatible":       "go.etcd.io/etcd v3.3.27+incompatible, which is older",
		"google.golang.org/protobuf v1.36.11":        "",
		"github.com/coreos/etcd v3.3.0+incompatible": "github.com/coreos/etcd v3.3.0+incompatible, which is older",
	} {
		dir := t.TempDir()
		write(t, dir, "go.mod", "module example.com/host\n\ngo 1.26.0\n\nrequire "+requires+"\n")
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
		for _, at := range []string{".", "a/b", "a/not/yet"} {
			h, err := FindHost(filepath.Join(dir, at))
			require.NoError(t, err)
			require.Equal(t, filepath.Join(dir, "go.mod"), h.GoMod)
			require.False(t, h.Vendored)
			if note == "" {
				require.Empty(t, h.Note(), requires)
				continue
			}
			require.Contains(t, h.Note(), note)
			require.Contains(t, h.Note(), h.GoMod)
		}
		write(t, dir, "vendor/modules.txt", "")
		h, err := FindHost(dir)
		require.NoError(t, err)
		require.True(t, h.Vendored)
	}
}

func TestFindHostPassesWeftOver(t *testing.T) {
	h, err := FindHost(".")
	require.NoError(t, err)
	require.Nil(t, h)
	require.Empty(t, h.Note())
	dir := t.TempDir()
	write(t, dir, "go.mod", "no module")
	_, err = FindHost(dir)
	require.ErrorContains(t, err, filepath.Join(dir, "go.mod"))
}
