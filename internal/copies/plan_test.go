// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// A process is killed in Recover, between writing its plan and syncing the plan's name. The next one goes by the plan only when power
// cannot take it away from under a state that begins anew.
func TestPlanOfAKilledProcessIsMadeDurableFirst(t *testing.T) {
	var synced []string
	syncDir = func(dir string) error {
		synced = append(synced, dir)
		return files.SyncDir(dir)
	}
	defer func() { syncDir = files.SyncDir }()
	r := &recovery{directory: &directory{Config: Config{Dir: t.TempDir()}}}
	p, err := r.begun()
	require.NoError(t, err)
	require.Nil(t, p)
	require.Empty(t, synced)

	require.NoError(t, os.WriteFile(planPath(r.Dir), []byte(`{"group":1,"index":9,"term":2}`), 0o600))
	p, err = r.begun()
	require.NoError(t, err)
	require.EqualValues(t, 9, p.Index)
	require.Equal(t, []string{r.Dir}, synced)
}

// A process is killed between removing its plan, or naming a book, and the sync. What the next one finds, it rests on:
// it opens the node, and takes the facts in the book for kept. So it syncs the directory first.
func TestDirectoryOfAKilledProcessIsSyncedByTheNext(t *testing.T) {
	var synced []string
	syncDir = func(dir string) error {
		synced = append(synced, dir)
		return files.SyncDir(dir)
	}
	defer func() { syncDir = files.SyncDir }()
	dir := t.TempDir()
	require.NoError(t, CheckFinished(dir))
	require.Equal(t, []string{dir}, synced)
}

// A plan decides which state comes back, and whose commands count as applied: none is taken with a byte that was not
// written.
func TestPlanWithAFlippedBitIsDamaged(t *testing.T) {
	r := &recovery{directory: &directory{Config: Config{Dir: t.TempDir()}}}
	want := recoveryPlan{
		Group: 1, Index: 121, Term: 4, Lost: []uint64{2, 3}, Unique: "00ff", Applied: 20,
		Before: rawnode.SnapshotMeta{Index: 100, Host: []byte("host")}, Book: []byte("book"),
	}
	require.NoError(t, r.write(&want))
	data, err := os.ReadFile(planPath(r.Dir))
	require.NoError(t, err)
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			require.NoError(t, os.WriteFile(planPath(r.Dir), data, 0o600))
			_, err := readPlan(r.Dir)
			require.ErrorIs(t, err, ErrUnfinished, "byte %d, bit %d", i, bit)
			data[i] ^= 1 << bit
		}
	}
	require.NoError(t, os.WriteFile(planPath(r.Dir), data, 0o600))
	got, err := readPlan(r.Dir)
	require.NoError(t, err)
	require.Equal(t, want, *got)
}

// A power failure brings a plan back whose removal was not durable, and the log has gone on meanwhile, and was compacted.
// The recovery has ended: the state of before does not come back over what was acknowledged since.
func TestLogThatHasGoneOnHasBegun(t *testing.T) {
	e, err := storage.Open("log", storage.Options{Identity: storage.Identity{Cluster: 1, Node: 1}, FS: vfs.NewMem(), Manual: true})
	require.NoError(t, err)
	log, err := e.Group(1)
	require.NoError(t, err)
	p := &recoveryPlan{Group: 1, Index: 9, Term: 3}
	r := &recovery{directory: &directory{Config: Config{Dir: t.TempDir(), Group: 1}, log: log}}
	begun := func() bool {
		has, err := r.logHasBegun(p)
		require.NoError(t, err)
		return has
	}
	write := func(w storage.Write) { require.NoError(t, log.AppendWait(t.Context(), w)) }
	entries := func(term, from, to uint64) (all []*pb.Entry) {
		for i := from; i <= to; i++ {
			all = append(all, &pb.Entry{Term: new(term), Index: new(i)})
		}
		return all
	}
	write(storage.Write{Entries: entries(2, 1, 8)})
	require.NoError(t, log.SetSnapshot(&pb.SnapshotMetadata{Index: new(uint64(8))}, nil))
	require.NoError(t, log.Compact(8))
	require.False(t, begun())
	_, begin, err := replica.Refounding{Index: p.Index, Term: p.Term, Voters: []uint64{1}, Mark: replica.Mark(nil)}.Begin()
	require.NoError(t, err)
	write(*begin)
	require.True(t, begun())
	write(storage.Write{Entries: entries(3, 10, 20)})
	require.NoError(t, log.SetSnapshot(&pb.SnapshotMetadata{Index: new(uint64(15))}, nil))
	require.NoError(t, log.Compact(15))
	require.True(t, begun())
	require.NoError(t, e.Close())
}
