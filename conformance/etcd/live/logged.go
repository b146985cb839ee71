// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"fmt"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/weftraft/weft/ecraft"
)

// logCount is what a log on disk has.
type logCount struct {
	envelopes int // entries that are not plain
	coded     int // of them, those with units
}

// logged reads the log of a member that is down, from the snapshot on from which
// it would start: what is before is never read again.
func (m *member) logged() (n logCount, err error) {
	lg, dir := zap.NewNop(), filepath.Join(m.dir, "data", "member")
	known, err := wal.ValidSnapshotEntries(lg, filepath.Join(dir, "wal"))
	if err != nil {
		return n, fmt.Errorf("snapshots in the log of %s: %w", m.name, err)
	}
	var from walpb.Snapshot
	newest, err := snap.New(lg, filepath.Join(dir, "snap")).LoadNewestAvailable(known)
	switch {
	case errors.Is(err, snap.ErrNoSnapshot):
	case err != nil:
		return n, fmt.Errorf("snapshots of %s: %w", m.name, err)
	default:
		from.Index, from.Term = new(newest.GetMetadata().GetIndex()), new(newest.GetMetadata().GetTerm())
	}
	w, err := wal.OpenForRead(lg, filepath.Join(dir, "wal"), &from)
	if err != nil {
		return n, fmt.Errorf("log of %s: %w", m.name, err)
	}
	defer func() { _ = w.Close() }() // only read from
	_, _, ents, err := w.ReadAll()
	if err != nil {
		return n, fmt.Errorf("log of %s: %w", m.name, err)
	}
	for _, e := range ents {
		if e.GetType() != raftpb.EntryNormal || !ecraft.IsEnvelope(e.GetData(), 0) {
			continue
		}
		n.envelopes++
		if h, _, err := ecraft.ParseHeader(e.GetData(), 0); err == nil && h.Kind == ecraft.Coded {
			n.coded++
		}
	}
	return n, nil
}
