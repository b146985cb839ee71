// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"io"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/rawnode"
)

// machine is the store as the host wants to see it.
type machine struct{ store *kv.Store }

var _ rawnode.StateMachine = machine{}

func (m machine) Load() (uint64, []byte, error) {
	host, err := m.store.Host()
	return m.store.Applied(), host, err
}

func (m machine) Apply(b rawnode.Batch) ([]any, error) {
	results, err := m.store.Apply(b.Index, b.Commands, b.Host)
	if err != nil {
		return nil, err
	}
	values := make([]any, len(results))
	for i, r := range results {
		values[i] = r
	}
	return values, nil
}

func (m machine) Durable() (uint64, error) { return m.store.Durable() }

func (m machine) Snapshot() (rawnode.Snapshot, error) {
	s, err := m.store.Snapshot()
	if err != nil {
		return nil, err
	}
	return snapshot{s}, nil
}

func (m machine) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	return m.store.Restore(meta.Index, meta.Host, body)
}

type snapshot struct{ *kv.Snapshot }

func (s snapshot) Meta() rawnode.SnapshotMeta {
	return rawnode.SnapshotMeta{Index: s.Index(), Host: s.Host()}
}
