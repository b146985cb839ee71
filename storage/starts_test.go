// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

// TestStartsWithoutWritesLeaveNoFiles: a supervisor starts a node again and again, which
// does not get as far as a write. Each start goes on with the segment of the last one, so
// that there are not as many files as starts, and not as many open ones at the next.
func TestStartsWithoutWritesLeaveNoFiles(t *testing.T) {
	for name, end := range map[string]func(e *storage.Engine, mem *vfs.MemFS) (*vfs.MemFS, error){
		"closed": func(e *storage.Engine, mem *vfs.MemFS) (*vfs.MemFS, error) { return mem, e.Close() },
		"killed": func(_ *storage.Engine, mem *vfs.MemFS) (*vfs.MemFS, error) { return mem, nil },
		"power fails": func(_ *storage.Engine, mem *vfs.MemFS) (*vfs.MemFS, error) {
			return mem.CrashClone(vfs.CrashCloneCfg{}), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			ops := []op{
				{group: 1, write: storage.Write{Entries: storagetest.Entries(1, 1, 2, 50)}},
				{group: 1, write: storage.Write{Entries: storagetest.Entries(1, 3, 2, 50)}},
			}
			for i := range ops {
				for range 10 {
					e, err := storage.Open("data", crashOptions(unlocked{mem}))
					require.NoError(t, err)
					k, err := prefix(e, ops[:i], i)
					require.NoError(t, err)
					require.Equal(t, i, k)
					require.Zero(t, e.Recovery().CutBytes)
					mem, err = end(e, mem)
					require.NoError(t, err)
				}
				e, err := storage.Open("data", crashOptions(unlocked{mem}))
				require.NoError(t, err)
				require.NoError(t, ops[i].toEngine(e, nil))
				require.NoError(t, e.Sync(t.Context()))
				mem, err = end(e, mem)
				require.NoError(t, err)
			}
			require.Len(t, segmentFiles(t, mem), len(ops))
			e, err := storage.Open("data", crashOptions(unlocked{mem}))
			require.NoError(t, err)
			require.NoError(t, compareAll(e, modelsOf(t, ops)))
			require.NoError(t, e.Close())
		})
	}
}

func modelsOf(t *testing.T, ops []op) models {
	m := models{}
	for _, o := range ops {
		require.NoError(t, m.apply(o))
	}
	return m
}

// TestRemainsAreNotWrittenBehind: behind the first frame of a segment there is a whole frame
// of a torn batch. The next start does not go on with this segment, where the frame could
// come to life.
func TestRemainsAreNotWrittenBehind(t *testing.T) {
	mem := vfs.NewCrashableMem()
	e, err := storage.Open("data", crashOptions(mem))
	require.NoError(t, err)
	name := segmentFiles(t, mem)[0]
	for from := uint64(1); from <= 2; from++ {
		require.NoError(t, op{group: 1, write: storage.Write{Entries: storagetest.Entries(1, from, 1, 40)}}.toEngine(e, nil))
	}
	_, err = e.Step()
	require.NoError(t, err)
	torn := readFile(t, mem, name)
	places := frames(torn)
	clear(torn[places[1]:places[2]])
	clear(torn[places[3]:]) // nobody was told that the two are durable
	writeFile(t, mem, name, torn)
	e, err = storage.Open("data", crashOptions(unlocked{mem}))
	require.NoError(t, err)
	require.Positive(t, e.Recovery().CutBytes)
	require.Len(t, segmentFiles(t, mem), 2)
	require.NoError(t, e.Close())
}
