// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Readers of all kinds, while one group applies and is replaced by snapshots
// again and again, see whole states: never a key missing, never half a value.
func TestReadersSeeWholeStates(t *testing.T) {
	db, s := openMem(t)
	_, source := openMem(t)
	fill := func(s *Store, tag byte) {
		value := pattern(PartBytes+10, tag)
		apply(t, s, append(uploadOf(UploadID{tag}, "large", value), put("one", fmt.Sprint(tag)), put("two", fmt.Sprint(tag)))...)
	}
	fill(s, 1)
	fill(source, 1)
	var stop atomic.Bool
	var reads [4]atomic.Int64
	var running sync.WaitGroup
	read := func(i int, f func() error) {
		running.Go(func() {
			for !stop.Load() {
				if err := f(); err != nil {
					t.Errorf("reader %d: %v", i, err)
					return
				}
				reads[i].Add(1)
			}
		})
	}
	read(0, func() error {
		_, _, err := s.Get("one")
		return err
	})
	read(1, func() error {
		v, err := s.Value("large")
		if err == nil {
			drain(t, v)
			err = v.Close()
		}
		return err
	})
	read(2, func() error {
		page, err := s.List(Query{})
		if err == nil && len(page.Items) != 3 {
			err = fmt.Errorf("%d keys", len(page.Items))
		}
		return err
	})
	read(3, func() error {
		_, other := openMem(t)
		snap, err := s.Snapshot()
		if err != nil {
			return err
		}
		defer func() { _ = snap.Close() }()
		if err := other.Restore(snap.Meta(), snap); err != nil {
			return err
		}
		_, err = s.Durable()
		return err
	})
	done := func() bool {
		for i := range reads {
			if reads[i].Load() < 5 && !t.Failed() {
				return false
			}
		}
		return true
	}
	for round := byte(2); !done() || round < 12; round++ {
		fill(s, round)
		for source.Applied() < s.Applied() {
			fill(source, round)
		}
		if round%2 == 0 {
			require.NoError(t, restore(s, source.Applied(), "host", snapshotBytes(t, source)))
		}
	}
	stop.Store(true)
	running.Wait()
	requireNoOrphans(t, s)
	require.NoError(t, db.Flush())
}

// A database that is closed refuses everything, and what was opened before can
// still be read and closed.
func TestClose(t *testing.T) {
	db, s := openMem(t)
	value := pattern(PartBytes+10, 1)
	apply(t, s, uploadOf(UploadID{1}, "large", value)...)
	v, err := s.Value("large")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, _, err = s.Get("large")
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.List(Query{})
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Snapshot()
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, db.Flush(), ErrClosed)
	require.Nil(t, db.Metrics())
	require.Equal(t, value, drain(t, v))
	require.NoError(t, v.Close())
}
