// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/front"
	"github.com/weftraft/weft/rawnode"
)

// During an upgrade from a kvdemo without package weft, a member of the old version applies that package's
// commands as refused ones, and one of the new version has them taken out. Both have the same state, and
// the same revisions.
func TestCommandsOfWeftCountAtMembersOfBothVersions(t *testing.T) {
	facts := book.Facts{Addresses: map[uint64]book.Located{1: {Address: "127.0.0.1:7201", Version: 1}}}
	announced, err := facts.Command()
	require.NoError(t, err)
	batch := rawnode.Batch{Index: 9, Commands: [][]byte{put("a", "1"), announced, put("b", "2"), announced}}
	_, older := openMem(t)
	_, newer := openMem(t)
	b, err := book.Open(book.Config{Cluster: 7, Node: 1, Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	before, err := older.Apply(batch)
	require.NoError(t, err)
	after, err := front.New(front.Config{User: newer, Group: 1, Book: b, Logger: slog.New(slog.DiscardHandler)}).Apply(batch)
	require.NoError(t, err)
	for _, i := range []int{0, 2} {
		require.Equal(t, before[i], after[i])
	}
	require.Equal(t, snapshotBytes(t, older), snapshotBytes(t, newer))
	require.EqualValues(t, 4, newer.Revision())
}
