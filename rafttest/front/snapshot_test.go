// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/rawnode"
)

// writers propose lines until they are stopped, each one after the other, and know which
// were acknowledged.
type writers struct {
	mu    sync.Mutex
	begun map[string]bool
	acked map[string]bool
	stop  context.CancelFunc
	wait  sync.WaitGroup
}

func startWriters(t testing.TB, all map[uint64]*member, n int) *writers {
	ctx, cancel := context.WithCancel(context.Background())
	w := &writers{begun: map[string]bool{}, acked: map[string]bool{}, stop: cancel}
	for i := range n {
		m := all[uint64(i%len(all)+1)]
		w.wait.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				line := fmt.Sprintf("writer %d line %d", i, k)
				w.note(w.begun, line)
				if _, err := m.group.Propose(ctx, []byte(line)); err == nil {
					w.note(w.acked, line)
				}
			}
		})
	}
	t.Cleanup(w.end)
	return w
}

func (w *writers) end() {
	w.stop()
	w.wait.Wait()
}

func (w *writers) note(set map[string]bool, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	set[line] = true
}

func (w *writers) of(set map[string]bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sortedLines(set)
}

func sortedLines(set map[string]bool) (lines []string) {
	for line := range set {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// restoreCluster restores a snapshot into a new cluster of n nodes.
func restoreCluster(t testing.TB, n int, snapshot []byte) map[uint64]*member {
	var ids []uint64
	for id := range uint64(n) {
		ids = append(ids, id+1)
	}
	peers := addressesOf(t, ids...)
	all := map[uint64]*member{}
	for _, id := range ids {
		m := newMember(t, id, peers)
		m.options.Cluster = testCluster + 1
		all[id] = m
		_, err := weft.Restore(m.options, 1, newJournal(t, filepath.Join(m.options.Dir, "state")), bytes.NewReader(snapshot))
		require.NoError(t, err)
	}
	for _, m := range all {
		m.start(t)
	}
	return all
}

// The snapshot has everything that was acknowledged before, nothing that began afterwards, and
// is a prefix of what the old cluster came to: so it is a cut of a linearizable history.
func TestBackupUnderLoadIsRestoredIntoClustersOfOtherSizes(t *testing.T) {
	old := startCluster(t, 3)
	load := startWriters(t, old, 6)
	eventually(t, func() bool { return len(load.of(load.acked)) > 300 }, "300 lines")
	before := load.of(load.acked)
	var file bytes.Buffer
	info, err := old[2].group.Snapshot(within(t), &file)
	require.NoError(t, err)
	begun := load.of(load.begun)
	more := len(load.of(load.acked))
	eventually(t, func() bool { return len(load.of(load.acked)) > more+100 }, "100 more lines")
	load.end()
	final := old[1].read(t)
	require.EqualValues(t, testCluster, info.Cluster)

	for _, size := range []int{1, 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			restored := restoreCluster(t, size, file.Bytes())
			cut := restored[1].read(t)
			require.Equal(t, final[:len(cut)], cut, "a prefix")
			require.Less(t, len(cut), len(final))
			require.Subset(t, cut, before, "all that was acknowledged before")
			require.Subset(t, begun, cut, "nothing that began afterwards")
			require.Equal(t, len(cut)+1, restored[uint64(size)].propose(t, "in the new cluster"))
			for id, m := range restored {
				require.Len(t, m.read(t), len(cut)+1, "node %d", id)
			}
			for _, m := range restored {
				m.stop(t)
				m.start(t)
			}
			require.Equal(t, len(cut)+2, restored[1].propose(t, "after a restart"))
		})
	}
}

// A first member that was started without the snapshot would outvote the others together
// with one more. It is refused, and learns why.
func TestMemberWithoutTheSnapshotIsRefused(t *testing.T) {
	old := startCluster(t, 1)
	old[1].propose(t, "a line")
	var file bytes.Buffer
	_, err := old[1].group.Snapshot(within(t), &file)
	require.NoError(t, err)

	peers := addressesOf(t, 1, 2, 3)
	all := map[uint64]*member{}
	for id := range peers {
		m := newMember(t, id, peers)
		m.options.Cluster = testCluster + 1
		if id == 1 {
			_, err := weft.Restore(m.options, 1, newJournal(t, filepath.Join(m.options.Dir, "state")), bytes.NewReader(file.Bytes()))
			require.NoError(t, err)
		}
		all[id] = m
	}
	for _, m := range all {
		m.start(t)
	}
	// Two empty ones could begin a group of their own, before they hear of the third.
	eventually(t, func() bool { return all[1].group.Host().Status().Counters.Strangers > 0 }, "the two groups tell each other apart")
	require.Equal(t, []string{"a line"}, all[1].state.lines())
	for _, id := range []uint64{2, 3} {
		require.NotContains(t, all[id].state.lines(), "a line")
	}
}

func TestDamagedSnapshotsAreRefusedAndNothingBegins(t *testing.T) {
	old := startCluster(t, 1)
	for i := range 20 {
		old[1].propose(t, fmt.Sprint(strings.Repeat("x", 30_000), i))
	}
	var file bytes.Buffer
	_, err := old[1].group.Snapshot(within(t), &file)
	require.NoError(t, err)
	whole := file.Bytes()
	m := newMember(t, 1, nil)
	m.options.Cluster, m.options.Listen = testCluster+1, "127.0.0.1:0"
	restore := func(r io.Reader) error {
		_, err := weft.Restore(m.options, 1, newJournal(t, filepath.Join(m.options.Dir, "state")), r)
		return err
	}
	for _, length := range []int{0, 1, 20, 100, 200, len(whole) / 2, len(whole) - 9, len(whole) - 8, len(whole) - 1} {
		require.ErrorIs(t, restore(bytes.NewReader(whole[:length])), weft.ErrSnapshot, "cut at %d of %d", length, len(whole))
	}
	node, err := weft.Open(m.options)
	require.NoError(t, err)
	_, err = node.Group(1, newJournal(t, filepath.Join(m.options.Dir, "state")))
	require.ErrorIs(t, err, rawnode.ErrState)
	require.ErrorContains(t, err, "a restore was begun here and has not ended", "no empty group begins")
	require.NoError(t, node.Close(within(t)))
	for at := 0; at < len(whole); at += len(whole)/50 + 1 {
		damaged := slices.Clone(whole)
		damaged[at] ^= 0x10
		require.ErrorIs(t, restore(bytes.NewReader(damaged)), weft.ErrSnapshot, "a bit at %d of %d", at, len(whole))
	}
	require.NoError(t, restore(bytes.NewReader(whole)), "the failures have left nothing behind")
	m.start(t)
	require.Len(t, m.read(t), 20)
	for range 20 {
		m.propose(t, "a line behind the restore")
	}
	m.stop(t)

	// The log is lost, and a script restores at each start: the state of a group that went on is none of an earlier attempt.
	for _, name := range []string{"log", "addresses"} {
		require.NoError(t, os.RemoveAll(filepath.Join(m.options.Dir, name)))
	}
	require.ErrorIs(t, restore(bytes.NewReader(whole)), rawnode.ErrState)
}

// A group that has taken no command has a snapshot, too.
func TestSnapshotOfAnEmptyGroupIsRestored(t *testing.T) {
	old := startCluster(t, 1)
	var file bytes.Buffer
	_, err := old[1].group.Snapshot(within(t), &file)
	require.NoError(t, err)
	require.Equal(t, 1, restoreCluster(t, 1, file.Bytes())[1].propose(t, "the first"))

	node := newMember(t, 1, nil)
	node.options.Cluster, node.options.Listen = testCluster+2, "127.0.0.1:0"
	node.start(t)
	group, err := weft.Replicate(node.node, 2, func() words { return words{} })
	require.NoError(t, err)
	file.Reset()
	_, err = group.Snapshot(within(t), &file)
	require.NoError(t, err)
	o := newMember(t, 1, nil).options
	o.Cluster, o.Listen = testCluster+3, "127.0.0.1:0"
	memory, err := weft.OpenMemory(o, 2, func() words { return words{} })
	require.NoError(t, err)
	defer func() { require.NoError(t, memory.Close()) }()
	_, err = weft.Restore(o, 2, memory, &file)
	require.NoError(t, err)
}
