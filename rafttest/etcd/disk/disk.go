// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package disk reads the log of a stopped etcd member, with etcd's own packages.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/weftraft/weft/ecraft"
)

// errRuns is returned for the log of a member that runs.
var errRuns = errors.New("its member runs; stop it first")

// Log describes a member's log from the snapshot on with which the member would start: earlier
// entries are never read again.
type Log struct {
	First   uint64 // index of the first entry, or, if there is none, of the next
	Entries int
	// Envelopes counts the entries that only Weft can read, and LastEnvelope is the index of the
	// last such entry. Coded counts the envelopes with units.
	Envelopes, Coded int
	LastEnvelope     uint64
}

// String returns a line for operators.
func (l Log) String() string {
	if l.Envelopes == 0 {
		return fmt.Sprintf("%d entries from index %d on, none coded", l.Entries, l.First)
	}
	return fmt.Sprintf("%d entries from index %d on, %d coded, the last at %d", l.Entries, l.First, l.Envelopes, l.LastEnvelope)
}

// Read reads the log of the member with data directory dataDir: the log in walDir, or in dataDir if
// walDir is empty. Read changes no file.
func Read(dataDir, walDir string) (Log, error) {
	if walDir == "" {
		walDir = datadir.ToWALDir(dataDir)
	}
	if err := stopped(walDir); err != nil {
		return Log{}, fmt.Errorf("log in %s: %w", walDir, err)
	}
	lg := zap.NewNop()
	known, err := wal.ValidSnapshotEntries(lg, walDir)
	if err != nil {
		return Log{}, fmt.Errorf("snapshots in the log in %s: %w", walDir, err)
	}
	var from walpb.Snapshot
	newest, err := snap.New(lg, datadir.ToSnapDir(dataDir)).LoadNewestAvailable(known)
	switch {
	case errors.Is(err, snap.ErrNoSnapshot):
	case err != nil:
		return Log{}, fmt.Errorf("snapshots in %s: %w", datadir.ToSnapDir(dataDir), err)
	default:
		from.Index, from.Term = new(newest.GetMetadata().GetIndex()), new(newest.GetMetadata().GetTerm())
	}
	w, err := wal.OpenForRead(lg, walDir, &from)
	if err != nil {
		return Log{}, fmt.Errorf("log in %s: %w", walDir, err)
	}
	defer func() { _ = w.Close() }() // only read from
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return Log{}, fmt.Errorf("log in %s: %w", walDir, err)
	}
	return count(from.GetIndex()+1, entries), nil
}

// stopped returns an error if there is no log, or if a member writes the log: a running member
// holds a lock on the newest file.
func stopped(walDir string) error {
	files, err := filepath.Glob(filepath.Join(walDir, "*.wal"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no log there: %w", os.ErrNotExist)
	}
	lock, err := fileutil.TryLockFile(slices.Max(files), os.O_RDWR, fileutil.PrivateFileMode)
	if errors.Is(err, fileutil.ErrLocked) {
		return errRuns
	}
	if err != nil {
		return err
	}
	return lock.Close()
}

func count(first uint64, entries []*raftpb.Entry) Log {
	l := Log{First: first, Entries: len(entries)}
	for _, e := range entries {
		if e.GetType() != raftpb.EntryNormal || !ecraft.IsEnvelope(e.GetData(), 0) {
			continue
		}
		l.Envelopes++
		l.LastEnvelope = e.GetIndex()
		if h, _, err := ecraft.ParseHeader(e.GetData(), 0); err == nil && h.Kind == ecraft.Coded {
			l.Coded++
		}
	}
	return l
}
