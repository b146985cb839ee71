// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/storage"
)

// A coded entry hides the members that a log shows, whatever stands clear in front of its header.
func TestCodedEntriesHideTheMembersWithAnyClearPrefix(t *testing.T) {
	for _, prefix := range []int{0, 16, 4096} {
		dir, silent := t.TempDir(), slog.New(slog.DiscardHandler)
		c := Config{
			Cluster: 7, ID: 1, Group: 1, Dir: dir, LogDir: filepath.Join(dir, "log"), Logger: silent,
			Book: book.Config{Cluster: 7, Node: 1, Dir: dir, Logger: silent},
		}
		c.OpenLog = func() (*storage.Engine, error) {
			return storage.Open(c.LogDir, storage.Options{Identity: storage.Identity{Cluster: 7, Node: 1}})
		}
		payload := make([]byte, 5000)
		h := &ecraft.Header{Kind: ecraft.Whole, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload), Encoder: 1}
		e, err := c.OpenLog()
		require.NoError(t, err)
		g, err := e.Group(1)
		require.NoError(t, err)
		require.NoError(t, g.AppendWait(t.Context(), storage.Write{
			Snapshot:  &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}}}},
			Entries:   []*pb.Entry{{Index: new(uint64(2)), Term: new(uint64(1)), Data: ecraft.Seal(nil, h, 1, prefix, ecraft.NewCodeword(h, payload), nil)}},
			HardState: &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(uint64(2))},
		}))
		require.NoError(t, e.Close())
		i, err := Inspect(c)
		require.NoError(t, err, "a prefix of %d bytes", prefix)
		require.Nil(t, i.Members)
		require.EqualValues(t, 2, i.LastIndex)
	}
}
