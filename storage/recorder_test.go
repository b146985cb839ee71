// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

// syncTimes keeps what an engine's recorder was told.
type syncTimes struct{ took []time.Duration }

func (s *syncTimes) Synced(took time.Duration) { s.took = append(s.took, took) }

// TestRecorderIsToldOfEachSync: the times are those of the file system, in virtual
// time, and there are as many as syncs are counted.
func TestRecorderIsToldOfEachSync(t *testing.T) { synctest.Test(t, recorderIsToldOfEachSync) }

func recorderIsToldOfEachSync(t *testing.T) {
	takes := time.Duration(0)
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData {
			time.Sleep(takes)
		}
		return nil
	}))
	var recorder syncTimes
	e, err := storage.Open("data", storage.Options{Identity: testIdentity, FS: fs, Recorder: &recorder})
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	before := len(recorder.took)
	require.EqualValues(t, before, e.Stats().Syncs)
	want := []time.Duration{3 * time.Millisecond, 700 * time.Microsecond, 2 * time.Second}
	for i, d := range want {
		takes = d
		require.NoError(t, g.AppendWait(t.Context(), storage.Write{Entries: storagetest.Entries(1, uint64(i+1), 1, 10)}))
	}
	require.NoError(t, e.Sync(t.Context()))
	require.Equal(t, want, recorder.took[before:before+len(want)])
	require.EqualValues(t, len(recorder.took), e.Stats().Syncs)
	takes = 0
	require.NoError(t, e.Close())
}
