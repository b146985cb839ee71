// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/weftraft/weft/rawnode"
)

// nothing is a state that keeps only the applied index, in memory: a node that starts again
// applies its whole log.
type nothing struct {
	// shortens has the state call itself durable, so that the log is shortened as that of a long-running node is, and its files
	// are written again. Such a node cannot start again.
	shortens bool

	mu   sync.Mutex
	meta rawnode.SnapshotMeta // as of the last batch
}

// durableEvery is how many entries a state is durable behind another, when the log is shortened.
const durableEvery = 64

// Load implements rawnode.StateMachine.
func (s *nothing) Load() (uint64, []byte, error) { return 0, nil, nil }

// Apply implements rawnode.StateMachine.
func (s *nothing) Apply(b rawnode.Batch) ([]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta.Index = b.Index
	if b.Host != nil {
		s.meta.Host = b.Host
	}
	return make([]any, len(b.Commands)), nil
}

// Query implements rawnode.Querier.
func (s *nothing) Query(context.Context, []byte) ([]byte, error) { return nil, nil }

// Durable implements rawnode.StateMachine.
func (s *nothing) Durable() (uint64, error) {
	if !s.shortens {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta.Index / durableEvery * durableEvery, nil
}

// view is a snapshot: a byte.
type view struct {
	io.Reader
	meta rawnode.SnapshotMeta
}

func (v view) Meta() rawnode.SnapshotMeta { return v.meta }
func (v view) Close() error               { return nil }

// Snapshot implements rawnode.StateMachine.
func (s *nothing) Snapshot() (rawnode.Snapshot, error) {
	if !s.shortens {
		return nil, errors.New("the log is kept from its beginning, so nobody needs a snapshot")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return view{bytes.NewReader([]byte{0}), s.meta}, nil
}

// Restore implements rawnode.StateMachine.
func (s *nothing) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return fmt.Errorf("a snapshot at %d: %w", meta.Index, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta = meta
	return nil
}
