// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// random gives a log and the model the same random writes, and compares all
// that can be read after each.
func random(t *testing.T, open func(T) Log) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{log: open(t), want: raft.NewMemoryStorage()}
		t.Repeat(map[string]func(*rapid.T){
			"append":    p.append,
			"overwrite": p.overwrite,
			"hardstate": p.hardState,
			"create":    p.create,
			"install":   p.install,
			"compact":   p.compact,
			"reopen":    p.reopen,
			"":          func(t *rapid.T) { Equal(t, p.log, p.want) },
		})
	})
}

// pair is a log and its model.
type pair struct {
	log            Log
	want           *raft.MemoryStorage
	term           uint64
	snapshot, vote uint64
	commit         uint64
}

// both makes the same write in both, and returns the model's error.
func (p *pair) both(t T, what string, write func(Log) error) error {
	t.Helper()
	err := write(p.want)
	if got := write(p.log); !errors.Is(got, err) {
		t.Fatalf("%s: %v, want %v", what, got, err)
	}
	return err
}

func (p *pair) bounds() (first, last uint64) {
	first, _ = p.want.FirstIndex()
	last, _ = p.want.LastIndex()
	return first, last
}

func (p *pair) appendAt(t *rapid.T, first uint64) {
	p.term = max(1, p.term+rapid.Uint64Range(0, 1).Draw(t, "terms"))
	ents := Entries(p.term, first, rapid.IntRange(1, 12).Draw(t, "n"), rapid.SampledFrom([]int{0, 1, 40, 500, 20000}).Draw(t, "size"))
	must(t, "Append", p.both(t, "Append", func(l Log) error { return l.Append(ents) }))
}

func (p *pair) append(t *rapid.T) {
	_, last := p.bounds()
	p.appendAt(t, last+1)
}

// overwrite replaces entries that are not committed, as a new leader does.
func (p *pair) overwrite(t *rapid.T) {
	first, last := p.bounds()
	first = max(first, p.snapshot+1)
	if first > last {
		t.Skip("nothing to replace")
	}
	p.term++
	p.appendAt(t, rapid.Uint64Range(first, last).Draw(t, "first"))
}

func (p *pair) hardState(t *rapid.T) {
	_, last := p.bounds()
	if rapid.Bool().Draw(t, "new term") {
		p.term, p.vote = p.term+1, rapid.Uint64Range(0, 3).Draw(t, "vote")
	}
	p.commit = max(p.commit, rapid.Uint64Range(0, last).Draw(t, "commit"))
	hs := &pb.HardState{Term: new(p.term), Vote: new(p.vote), Commit: new(p.commit)}
	must(t, "SetHardState", p.both(t, "SetHardState", func(l Log) error { return l.SetHardState(hs) }))
	p.vote = hs.GetVote()
}

func confState(t *rapid.T) *pb.ConfState {
	return &pb.ConfState{Voters: rapid.SliceOfN(rapid.Uint64Range(1, 9), 0, 3).Draw(t, "voters"), AutoLeave: new(false)}
}

func (p *pair) create(t *rapid.T) {
	first, last := p.bounds()
	lo := max(p.snapshot+1, first-1)
	if lo > last {
		t.Skip("no entry behind the snapshot")
	}
	index := rapid.Uint64Range(lo, last).Draw(t, "index")
	cs := confState(t)
	must(t, "CreateSnapshot", p.both(t, "CreateSnapshot", func(l Log) error {
		_, err := l.CreateSnapshot(index, cs, []byte("small"))
		return err
	}))
	p.snapshot = index
}

func (p *pair) install(t *rapid.T) {
	_, last := p.bounds()
	p.term++
	index := rapid.Uint64Range(1, last+5).Draw(t, "index")
	s := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(index), Term: new(p.term), ConfState: confState(t)}}
	if p.both(t, "ApplySnapshot", func(l Log) error { return l.ApplySnapshot(s) }) == nil {
		p.snapshot = index
	}
}

func (p *pair) compact(t *rapid.T) {
	_, last := p.bounds()
	if p.snapshot == 0 || p.snapshot > last {
		t.Skip("no snapshot")
	}
	index := rapid.Uint64Range(1, p.snapshot).Draw(t, "index")
	_ = p.both(t, "Compact", func(l Log) error { return l.Compact(index) })
}

func (p *pair) reopen(t *rapid.T) {
	r, ok := p.log.(Reopener)
	if !ok {
		t.Skip("cannot be reopened")
	}
	p.log = r.Reopen(t)
}
