// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

// groupLog is a group with the methods of the suite. Its writes do not wait.
type groupLog struct {
	*storage.Group
	e     *storage.Engine
	opts  storage.Options
	batch int // writes between two rounds of the writer
	n     int
}

func openGroup(t storagetest.T, opts storage.Options, batch int) *groupLog {
	t.Helper()
	e, err := storage.Open("data", opts)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	g, err := e.Group(7)
	if err != nil {
		t.Fatalf("Group: %v", err)
	}
	l := &groupLog{Group: g, e: e, opts: opts, batch: batch}
	t.Cleanup(func() { _ = e.Close() }) // closed before, if it was reopened
	return l
}

// queued lets the writer run now and then, so that the suite reads entries that
// wait, are written, cached or only on disk.
func (l *groupLog) queued(err error) error {
	if l.n++; err != nil || l.n%l.batch != 0 {
		return err
	}
	for {
		if more, err := l.e.Step(); !more || err != nil || l.opts.BatchBytes > 0 {
			return err
		}
	}
}

func (l *groupLog) Append(ents []*pb.Entry) error {
	return l.queued(l.Group.Append(storage.Write{Entries: ents}, nil))
}

func (l *groupLog) SetHardState(hs *pb.HardState) error {
	return l.queued(l.Group.Append(storage.Write{HardState: hs}, nil))
}

func (l *groupLog) ApplySnapshot(s *pb.Snapshot) error {
	return l.queued(l.Group.Append(storage.Write{Snapshot: s}, nil))
}

func (l *groupLog) CreateSnapshot(index uint64, cs *pb.ConfState, data []byte) (*pb.Snapshot, error) {
	err := l.SetSnapshot(&pb.SnapshotMetadata{Index: new(index), ConfState: cs}, data)
	if err := l.queued(err); err != nil {
		return nil, err
	}
	return l.Snapshot()
}

func (l *groupLog) Compact(index uint64) error { return l.queued(l.Group.Compact(index)) }

func (l *groupLog) Reopen(t storagetest.T) storagetest.Log {
	t.Helper()
	if err := l.e.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return openGroup(t, l.opts, l.batch)
}

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name  string
		batch int
		opts  storage.Options
	}{
		{"cached", 1, storage.Options{}},
		{"from disk", 1, storage.Options{CacheBytes: -1}},
		{"queued", 5, storage.Options{CacheBytes: 2000}},
		{"behind", 2, storage.Options{CacheBytes: -1, BatchBytes: 1}}, // ever more is queued
		{"small segments", 2, storage.Options{CacheBytes: 1000, SegmentBytes: storage.MinSegmentBytes}},
	} {
		t.Run(c.name, func(t *testing.T) {
			storagetest.Run(t, func(t storagetest.T) storagetest.Log {
				opts := c.opts
				opts.FS, opts.Identity, opts.Manual = vfs.NewMem(), storage.Identity{Cluster: 1, Node: 2}, true
				return openGroup(t, opts, c.batch)
			})
		})
	}
}
