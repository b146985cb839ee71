// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// watchedStorage notes the first error that is not part of the protocol between
// a core and its storage. It is used by the core's goroutine only.
type watchedStorage struct {
	raft.Storage
	err error
}

func (s *watchedStorage) failure() error { return s.err }

func (s *watchedStorage) note(err error) {
	switch {
	case err == nil, s.err != nil,
		errors.Is(err, raft.ErrCompacted), errors.Is(err, raft.ErrUnavailable),
		errors.Is(err, raft.ErrSnapOutOfDate), errors.Is(err, raft.ErrSnapshotTemporarilyUnavailable):
	default:
		s.err = fmt.Errorf("%w: %w", raft.ErrStorage, err)
	}
}

func (s *watchedStorage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hs, cs, err := s.Storage.InitialState()
	s.note(err)
	return hs, cs, err
}

func (s *watchedStorage) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	entries, err := s.Storage.Entries(lo, hi, maxSize)
	s.note(err)
	return entries, err
}

func (s *watchedStorage) Term(i uint64) (uint64, error) {
	term, err := s.Storage.Term(i)
	s.note(err)
	return term, err
}

func (s *watchedStorage) FirstIndex() (uint64, error) {
	i, err := s.Storage.FirstIndex()
	s.note(err)
	return i, err
}

func (s *watchedStorage) LastIndex() (uint64, error) {
	i, err := s.Storage.LastIndex()
	s.note(err)
	return i, err
}

func (s *watchedStorage) Snapshot() (*pb.Snapshot, error) {
	snap, err := s.Storage.Snapshot()
	s.note(err)
	return snap, err
}

// Released passes on what the storage says of itself; see logView.
func (s *watchedStorage) Released() uint64 {
	if r, ok := s.Storage.(interface{ Released() uint64 }); ok {
		return r.Released()
	}
	return 0
}
