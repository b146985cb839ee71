// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/storage"
)

// Log is a host's log in memory: the log engine on a file system in memory. The engine is closed
// when the test ends.
type Log struct {
	*storage.Group
	t      T
	id     storage.Identity
	fs     *vfs.MemFS
	engine *storage.Engine
}

// NewLog returns an empty log of a group at a node of cluster 1.
func NewLog(t T, node, group uint64) *Log {
	t.Helper()
	fs := vfs.NewCrashableMem()
	if err := makeDir(fs, logDir); err != nil {
		t.Fatalf("rawnodetest: make a log: %v", err)
	}
	return openLog(t, fs, storage.Identity{Cluster: 1, Node: node}, group)
}

func openLog(t T, fs *vfs.MemFS, id storage.Identity, group uint64) *Log {
	t.Helper()
	l := &Log{t: t, id: id, fs: fs}
	var err error
	if l.engine, err = storage.Open(logDir, storage.Options{Identity: id, FS: fs}); err == nil {
		l.Group, err = l.engine.Group(group)
	}
	if err != nil {
		t.Fatalf("rawnodetest: open a log: %v", err)
	}
	t.Cleanup(func() { _ = l.engine.Close() }) // the test has ended, so an error has no meaning
	return l
}

// Crashed returns the log that a crash at this moment leaves: with power, as after the end of the
// process, all written bytes; without power, only synced bytes. The present log stays in use, and
// shares nothing with the returned log.
func (l *Log) Crashed(power bool) *Log {
	l.t.Helper()
	return openLog(l.t, crash(l.fs, power), l.id, l.ID())
}
