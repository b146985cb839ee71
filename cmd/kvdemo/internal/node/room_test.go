// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/room"
)

// A new node does not begin on a disk that it would fill at once. A node that
// has data starts all the same, and says so.
func TestNewNodeIsRefusedAFullDisk(t *testing.T) {
	var log bytes.Buffer
	cfg := Config{Cluster: 5, ID: 2, Groups: 1, Data: filepath.Join(t.TempDir(), "new"), Log: slog.New(slog.NewTextHandler(&log, nil))}
	full := func(string) (uint64, error) { return room.ForNode - 1, nil }
	err := checkRoom(cfg, full)
	require.ErrorIs(t, err, room.ErrLittle)
	require.ErrorContains(t, err, cfg.Data+" has 67.1 MB, want 67.1 MB for a new node; make room, or name another directory")
	require.NoDirExists(t, cfg.Data)
	require.NoError(t, checkRoom(cfg, func(string) (uint64, error) { return room.ForNode, nil }))
	require.Empty(t, log.String())

	require.NoError(t, checkSettings(cfg))
	require.NoError(t, checkRoom(cfg, full))
	require.Contains(t, log.String(), "the disk is almost full; make room")
}
