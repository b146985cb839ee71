// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package storagetest checks that a log behaves as a Raft core expects of its
// raft.Storage: what is read is what was written, with the limits and errors of
// [raft.MemoryStorage], which is the reference. Any host's storage can run it:
//
//	func TestConformance(t *testing.T) {
//		storagetest.Run(t, func(t storagetest.T) storagetest.Log { return open(t) })
//	}
package storagetest

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// T is the part of a *testing.T or a *rapid.T that the suite needs.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Log is a raft.Storage that can be written to, with the methods of
// [raft.MemoryStorage]. The suite keeps to what a Raft core and its host do:
//
//   - hard states never go back, appends leave no gap;
//   - Compact's index is at most the latest snapshot's;
//   - hi of Entries is at most the last index + 1.
type Log interface {
	raft.Storage
	Append([]*pb.Entry) error
	SetHardState(*pb.HardState) error
	ApplySnapshot(*pb.Snapshot) error
	CreateSnapshot(index uint64, cs *pb.ConfState, data []byte) (*pb.Snapshot, error)
	Compact(index uint64) error
}

// Reopener is a Log that can be closed and opened again; the suite does so at
// random, and expects to find everything.
type Reopener interface {
	Log
	Reopen(T) Log
}

// Run runs the suite against logs that open returns; each must be empty.
func Run(t *testing.T, open func(T) Log) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
	t.Run("random", func(t *testing.T) { random(t, open) })
}

var cases = []struct {
	name string
	run  func(T, Log)
}{
	{"empty", empty},
	{"append and overwrite", overwrite},
	{"size limits", sizeLimits},
	{"optional fields", optionalFields},
	{"slices stay", slicesStay},
	{"compaction", compaction},
	{"snapshots", snapshots},
	{"hard state", hardState},
}

// Entry makes an entry whose data has size bytes that depend on term and index.
func Entry(term, index uint64, size int) *pb.Entry {
	data := make([]byte, size)
	x := term<<32 ^ index
	for i := range data {
		x = x*6364136223846793005 + 1442695040888963407
		data[i] = byte(x >> 56)
	}
	return &pb.Entry{Term: new(term), Index: new(index), Type: pb.EntryNormal.Enum(), Data: data}
}

// Entries makes n entries of one term.
func Entries(term, first uint64, n, size int) []*pb.Entry {
	var out []*pb.Entry
	for i := range n {
		out = append(out, Entry(term, first+uint64(i), size))
	}
	return out
}

func must(t T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Equal fails the test unless log reads like want: see [Compare].
func Equal(t T, log raft.Storage, want *raft.MemoryStorage) {
	t.Helper()
	must(t, "comparing with the model", Compare(log, want))
}

// Compare returns nil if log reads like want, a model that got the same writes:
// everywhere, at every boundary, with every limit worth trying. Otherwise it
// returns the first difference.
func Compare(log raft.Storage, want *raft.MemoryStorage) error {
	first, _ := want.FirstIndex()
	last, _ := want.LastIndex()
	if got, err := log.FirstIndex(); err != nil || got != first {
		return differ("FirstIndex", got, first, err)
	}
	if got, err := log.LastIndex(); err != nil || got != last {
		return differ("LastIndex", got, last, err)
	}
	if err := compareTerms(log, want, max(first, 2)-2, last+1); err != nil {
		return err
	}
	for _, limit := range []uint64{0, 1, 100, 1000, 1 << 62} {
		if err := compareEntries(log, want, first, last+1, limit); err != nil {
			return err
		}
	}
	for lo := first; lo <= last; lo += 1 + (last-first)/7 {
		if err := compareEntries(log, want, lo, last+1, 300); err != nil {
			return err
		}
		if err := compareEntries(log, want, lo, lo+1, 0); err != nil {
			return err
		}
	}
	return compareState(log, want)
}

// result is a value or the number of them, with the error that came along.
type result struct {
	value any
	err   error
}

// differ describes a difference; err, if any, can be found in the result.
func differ(what string, got, want any, err error) error {
	return errors.Join(fmt.Errorf("%s is %v, want %v", what, got, want), err)
}

func compareTerms(log raft.Storage, want *raft.MemoryStorage, from, to uint64) error {
	for i := from; i <= to; i++ {
		got, gotErr := log.Term(i)
		term, err := want.Term(i)
		if got != term || !errors.Is(gotErr, err) {
			return differ(fmt.Sprintf("Term(%d)", i), result{got, gotErr}, result{term, err}, gotErr)
		}
	}
	return nil
}

func compareEntries(log raft.Storage, want *raft.MemoryStorage, lo, hi, limit uint64) error {
	what := fmt.Sprintf("Entries(%d, %d, %d)", lo, hi, limit)
	got, gotErr := log.Entries(lo, hi, limit)
	ents, err := want.Entries(lo, hi, limit)
	if !errors.Is(gotErr, err) || len(got) != len(ents) {
		return differ(what, result{len(got), gotErr}, result{len(ents), err}, gotErr)
	}
	for i := range ents {
		if err := sameEntry(got[i], ents[i]); err != nil {
			return fmt.Errorf("%s, entry %d: %w", what, i, err)
		}
	}
	return nil
}

// sameEntry compares all fields, with which of them are present.
func sameEntry(got, want *pb.Entry) error {
	if !proto.Equal(got, want) || (got.Data == nil) != (want.Data == nil) || proto.Size(got) != proto.Size(want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

func compareState(log raft.Storage, want *raft.MemoryStorage) error {
	gotHS, gotCS, err := log.InitialState()
	if err != nil {
		return fmt.Errorf("InitialState: %w", err)
	}
	hs, cs, _ := want.InitialState()
	if (gotHS == nil) != (hs == nil) || !proto.Equal(gotHS, hs) || gotCS == nil || !proto.Equal(gotCS, cs) {
		return differ("InitialState", fmt.Sprint(gotHS, gotCS), fmt.Sprint(hs, cs), nil)
	}
	snap, _ := want.Snapshot()
	got, err := log.Snapshot()
	if snap.GetMetadata().GetIndex() == 0 {
		// There is none. MemoryStorage returns an empty one; others may say so.
		if err != nil && !errors.Is(err, raft.ErrSnapshotTemporarilyUnavailable) || got.GetMetadata().GetIndex() != 0 {
			return differ("Snapshot", got, "none", err)
		}
		return nil
	}
	if err != nil || !proto.Equal(got, snap) {
		return differ("Snapshot", got, snap, err)
	}
	return nil
}
