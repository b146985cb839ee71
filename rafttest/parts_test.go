// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

func entry(index, term uint64) *pb.Entry { return &pb.Entry{Index: &index, Term: &term} }

// TestDiskCrash crashes a disk with each number of surviving records: what was
// synced stays, of the rest a prefix, and of an atomic write all or nothing.
func TestDiskCrash(t *testing.T) {
	for _, atomic := range []bool{false, true} {
		for keep := range 5 {
			d := newDisk(nil, func() bool { return false })
			d.writeAll(nil, []*pb.Entry{entry(1, 1), entry(2, 1)}, &hardState{term: 1, commit: 1}, atomic)
			d.sync(3)
			d.writeAll(nil, []*pb.Entry{entry(2, 2), entry(3, 2), entry(4, 2)}, &hardState{term: 2, commit: 3}, atomic)
			require.EqualValues(t, 4, d.live.last(), "what is written is seen")
			torn := d.crash(keep)
			require.Equal(t, !atomic && (keep == 1 || keep == 2), torn)
			require.Equal(t, d.durable, d.live)

			want := image{state: hardState{term: 1, commit: 1}, entries: []*pb.Entry{entry(1, 1), entry(2, 1)}}
			survived := keep
			if atomic && keep < 4 {
				survived = 0
			}
			if survived > 0 {
				want.entries = []*pb.Entry{entry(1, 1), entry(2, 2), entry(3, 2), entry(4, 2)}[:min(1+survived, 4)]
			}
			if survived == 4 {
				want.state = hardState{term: 2, commit: 3}
			}
			require.Equal(t, want.state, d.live.state, "atomic %v, keep %d", atomic, keep)
			require.Equal(t, fmt.Sprint(want.entries), fmt.Sprint(d.live.entries), "atomic %v, keep %d", atomic, keep)
		}
	}
}

func TestDiskAsStorage(t *testing.T) {
	d := newDisk(nil, func() bool { return false })
	d.writeAll(nil, []*pb.Entry{entry(1, 1), entry(2, 1), entry(3, 2), entry(4, 2)}, nil, false)
	d.write(record{checkpoint: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(3)), Term: new(uint64(2))}}})
	d.write(record{cut: 2})

	first, err := d.FirstIndex()
	require.NoError(t, err)
	require.EqualValues(t, 3, first)
	term, err := d.Term(2)
	require.NoError(t, err)
	require.EqualValues(t, 1, term, "the term before the first entry is kept")
	_, err = d.Term(1)
	require.ErrorIs(t, err, raft.ErrCompacted)
	_, err = d.Term(5)
	require.ErrorIs(t, err, raft.ErrUnavailable)
	_, err = d.Entries(2, 4, 100)
	require.ErrorIs(t, err, raft.ErrCompacted)
	_, err = d.Entries(3, 6, 100)
	require.ErrorIs(t, err, raft.ErrUnavailable)
	ents, err := d.Entries(3, 5, 0)
	require.NoError(t, err)
	require.Len(t, ents, 1, "at least one, whatever the limit")

	// After a loss of power the commit index is at least what was applied.
	d.sync(len(d.pending))
	d.crash(0)
	d.recover()
	hs, _, err := d.InitialState()
	require.NoError(t, err)
	require.EqualValues(t, 3, hs.GetCommit())
}

func TestStoreAppliesOnce(t *testing.T) {
	s := &store{}
	put := command{id: commandID{7, 1}, verb: verbPut, key: 2, value: 10}
	swap := command{id: commandID{7, 2}, verb: verbSwap, key: 2, old: 10, value: 11, padding: 3}
	require.True(t, s.apply(put).done)
	require.True(t, s.apply(swap).done)
	require.True(t, s.apply(swap).done, "the result of the first time")
	require.EqualValues(t, 11, s.values[2])
	s.apply(put)
	require.EqualValues(t, 11, s.values[2], "an old command changes nothing")
	require.False(t, s.apply(command{id: commandID{8, 1}, verb: verbSwap, key: 2, old: 10, value: 12}).done)

	back, err := decodeCommand(swap.encode())
	require.NoError(t, err)
	require.Equal(t, swap, back)
	other := &store{}
	require.NoError(t, other.decode(s.encode()))
	require.Equal(t, s.digest(), other.digest())
	require.True(t, other.has(commandID{7, 2}))
	require.False(t, other.has(commandID{9, 1}))
	require.Error(t, other.decode(s.encode()[1:]))
	_, err = decodeCommand([]byte("short"))
	require.Error(t, err)
}

// TestTraceIsTheStory shows that what is written is what is hashed, and that
// listening changes nothing.
func TestTraceIsTheStory(t *testing.T) {
	var out bytes.Buffer
	with, without := run(5, options{Trace: &out}), run(5, options{})
	require.Equal(t, without, with)
	var lines uint64
	for line := range strings.Lines(out.String()) {
		if !strings.Contains(line, "    # ") {
			lines++
		}
	}
	require.Equal(t, with.Lines, lines)
}

func TestViolationTellsItsStory(t *testing.T) {
	r := run(1, options{Bug: staleReads, Bare: true})
	require.Error(t, r.Err)
	require.Equal(t, linearizability, seeds.Invariant(r.Err))
	require.Contains(t, r.Story, "VIOLATION "+linearizability)
	require.LessOrEqual(t, strings.Count(r.Story, "\n"), 200)
}

func TestReach(t *testing.T) {
	var r reach
	require.Contains(t, world.Zeros(r), "Elections")
	world.AddCounts(&r, reach{Elections: 2})
	world.AddCounts(&r, reach{Elections: 1})
	require.EqualValues(t, 3, r.Elections)
	require.NotContains(t, world.Zeros(r), "Elections")
	require.NotContains(t, world.Zeros(r, "Commits"), "Commits")
	require.Contains(t, world.Table(r), "Elections 3")
}
