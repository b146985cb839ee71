// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

func empty(t T, log Log) {
	Equal(t, log, raft.NewMemoryStorage())
	if _, err := log.Entries(0, 1, 100); !errors.Is(err, raft.ErrCompacted) {
		t.Fatalf("Entries(0, 1): %v, want ErrCompacted", err)
	}
}

// twins returns a function that makes the same write in a log and in a model, and compares.
func twins(t T, log Log) (both func(what string, write func(Log) error)) {
	p := &pair{log: log, want: raft.NewMemoryStorage()}
	return func(what string, write func(Log) error) {
		t.Helper()
		_ = p.both(t, what, write)
		Equal(t, p.log, p.want)
	}
}

// overwrite appends at, inside and at the start of the log.
func overwrite(t T, log Log) {
	both := twins(t, log)
	for _, ents := range [][]*pb.Entry{
		Entries(1, 1, 5, 10),
		Entries(1, 6, 1, 0),
		Entries(2, 4, 2, 20), // replaces 4, 5, 6
		Entries(3, 6, 3, 30),
		Entries(4, 8, 1, 1), // replaces the last
		Entries(5, 1, 2, 7), // replaces all
		nil,
		Entries(5, 3, 40, 100),
	} {
		both("Append", func(l Log) error { return l.Append(ents) })
	}
}

// sizeLimits tries every limit around the sum of the first entries' sizes.
func sizeLimits(t T, log Log) {
	want := raft.NewMemoryStorage()
	ents := []*pb.Entry{Entry(1, 1, 100), Entry(1, 2, 0), Entry(1, 3, 3000), Entry(1, 4, 1)}
	must(t, "Append", log.Append(ents))
	must(t, "Append", want.Append(ents))
	var sum uint64
	for _, e := range ents {
		sum += uint64(proto.Size(e))
		for limit := sum - 1; limit <= sum+1; limit++ {
			for hi := uint64(2); hi <= 5; hi++ {
				must(t, "Entries", compareEntries(log, want, 1, hi, limit))
			}
		}
	}
	must(t, "Entries", compareEntries(log, want, 3, 3, 100))
}

// optionalFields: an absent field comes back absent, an empty one empty, as
// their presence changes the sizes by which a core pages.
func optionalFields(t T, log Log) {
	want := raft.NewMemoryStorage()
	ents := []*pb.Entry{
		{Index: new(uint64(1)), Term: new(uint64(1))},
		{Index: new(uint64(2)), Term: new(uint64(1)), Data: []byte{}},
		{Index: new(uint64(3)), Term: new(uint64(1)), Type: pb.EntryNormal.Enum()},
		{Index: new(uint64(4)), Term: new(uint64(1)), Type: pb.EntryConfChangeV2.Enum(), Data: []byte("x")},
	}
	must(t, "Append", log.Append(ents))
	must(t, "Append", want.Append(ents))
	Equal(t, log, want)
	if r, ok := log.(Reopener); ok {
		Equal(t, r.Reopen(t), want)
	}
}

// slicesStay: what was read stays as it was when the log is overwritten.
func slicesStay(t T, log Log) {
	must(t, "Append", log.Append(Entries(1, 1, 10, 50)))
	got, err := log.Entries(1, 11, 1<<62)
	must(t, "Entries", err)
	before := slices.Clone(got)
	must(t, "Append", log.Append(Entries(2, 3, 8, 60)))
	_ = append(got[:2:2], Entry(9, 9, 9)) // the caller owns the slice
	for i, e := range Entries(1, 1, 10, 50) {
		if got[i] != before[i] || !proto.Equal(got[i], e) {
			t.Fatalf("entry %d changed to %v under the reader", i+1, got[i])
		}
	}
	again, err := log.Entries(1, 11, 1<<62)
	must(t, "Entries", err)
	for i, e := range append(Entries(1, 1, 2, 50), Entries(2, 3, 8, 60)...) {
		if !proto.Equal(again[i], e) {
			t.Fatalf("entry %d is %v, want %v", i+1, again[i], e)
		}
	}
}

func compaction(t T, log Log) {
	both := twins(t, log)
	cs := &pb.ConfState{Voters: []uint64{1, 2, 3}}
	both("Append", func(l Log) error { return l.Append(Entries(1, 1, 5, 10)) })
	both("Append", func(l Log) error { return l.Append(Entries(2, 6, 5, 10)) })
	both("CreateSnapshot", func(l Log) error { _, err := l.CreateSnapshot(10, cs, nil); return err })
	for _, i := range []uint64{1, 5, 5, 4, 7} {
		both("Compact", func(l Log) error { return l.Compact(i) })
	}
	if _, err := log.Entries(7, 9, 100); !errors.Is(err, raft.ErrCompacted) {
		t.Fatalf("Entries(7, 9): %v, want ErrCompacted", err)
	}
	// Partly and wholly compacted appends.
	both("Append", func(l Log) error { return l.Append(Entries(2, 6, 8, 11)) })
	both("Append", func(l Log) error { return l.Append(Entries(2, 2, 3, 11)) })
	both("Compact", func(l Log) error { return l.Compact(10) })
	both("CreateSnapshot", func(l Log) error { _, err := l.CreateSnapshot(13, nil, []byte("body")); return err })
	both("Compact", func(l Log) error { return l.Compact(13) }) // everything
	both("Append", func(l Log) error { return l.Append(Entries(3, 14, 2, 5)) })
}

func snapshots(t T, log Log) {
	both := twins(t, log)
	install := func(term, index uint64, data []byte, voters ...uint64) func(Log) error {
		return func(l Log) error {
			return l.ApplySnapshot(&pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{
				Term: new(term), Index: new(index), ConfState: &pb.ConfState{Voters: voters}}})
		}
	}
	both("first configuration", install(0, 0, nil, 1))
	both("Append", func(l Log) error { return l.Append(Entries(1, 1, 5, 10)) })
	both("ApplySnapshot", install(3, 20, []byte("state"), 1, 2))
	both("old", install(3, 20, nil, 7))
	both("older", install(1, 7, nil, 7))
	both("Append", func(l Log) error { return l.Append(Entries(4, 21, 5, 10)) })
	both("CreateSnapshot", func(l Log) error {
		_, err := l.CreateSnapshot(23, &pb.ConfState{Voters: []uint64{1}, Learners: []uint64{5}}, nil)
		return err
	})
	both("not newer", func(l Log) error { _, err := l.CreateSnapshot(23, nil, nil); return err })
	both("over the log", install(5, 24, nil, 4))
}

func hardState(t T, log Log) {
	both := twins(t, log)
	for _, hs := range []*pb.HardState{
		{Term: new(uint64(1))},
		{Term: new(uint64(1)), Vote: new(uint64(2))},
		{Term: new(uint64(1)), Vote: new(uint64(2)), Commit: new(uint64(3))},
		{Term: new(uint64(9)), Commit: new(uint64(3))},
	} {
		both("Append", func(l Log) error { return l.Append(Entries(1, 1, 3, 1)) })
		both("SetHardState", func(l Log) error { return l.SetHardState(hs) })
	}
}
