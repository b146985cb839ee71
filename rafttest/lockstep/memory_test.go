// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
)

// TestMemoryStorage feeds both MemoryStorages the same calls, also such as no
// host makes.
func TestMemoryStorage(t *testing.T) {
	tally, calls := Tally{}, uint64(0)
	for seed := uint64(1); seed <= 400; seed++ {
		n, d := runMemory(seed, 300, tally)
		calls += n
		if d != nil {
			t.Fatal(d)
		}
	}
	t.Logf("%d calls compared, covered:%v", calls, tally)
	var required []string
	for i := range memoryOps {
		required = append(required, "memory op: "+memoryOps[i].name)
		if memoryOps[i].panics {
			required = append(required, "panics: both in "+memoryOps[i].name)
		}
	}
	for _, err := range []string{"ErrCompacted", "ErrUnavailable", "ErrSnapOutOfDate"} {
		required = append(required, "memory error: "+err)
	}
	if missing := tally.Missing(required); len(missing) > 0 {
		t.Errorf("these are no longer covered: %q", missing)
	}
}

// memoryRun is a schedule of calls to two storages.
type memoryRun struct {
	*schedule
	m *member
	// last and term are where the log ends, base where it begins.
	base, last, term uint64
}

// memoryOp draws the arguments of a call and returns the call: it gives what
// the storage returned, as a fingerprint.
type memoryOp struct {
	name   string
	panics bool // can be made to panic
	draw   func(*memoryRun) func(side int, mem memory, h *fingerprint) error
}

func runMemory(seed uint64, steps int, tally Tally) (calls uint64, d *Difference) {
	s := &schedule{chance: newChance(seed), seed: seed, libs: [2]library{upstream{}, weft{}}, tally: tally}
	s.plan.maxPayload = 30
	for _, lib := range s.libs {
		lib.setLogger(silence{})
	}
	defer func() {
		calls = s.call
		if p := recover(); p != nil {
			if err, _ := p.(error); !errors.As(err, &d) {
				panic(p)
			}
		}
	}()
	r := &memoryRun{schedule: s, m: &member{id: 1}}
	for side, lib := range s.libs {
		r.m.disk[side] = &disk{memory: lib.newMemory(), lib: lib}
	}
	for range steps {
		if !r.step(&memoryOps[s.IntN(len(memoryOps))]) {
			return
		}
	}
	s.audit()
	return
}

// step makes a call and reports whether the storages can still be used: a panic
// leaves upstream's locked or half changed.
func (r *memoryRun) step(op *memoryOp) bool {
	mem := r.m.disk[0].memory
	first, _ := mem.FirstIndex() // no errors in memory
	r.base = first - 1
	r.last, _ = mem.LastIndex()
	if term, err := mem.Term(r.last); err == nil {
		r.term = term
	}
	f := op.draw(r)
	r.tally.Hit("memory op: " + op.name)
	var sum [2]fingerprint
	err, ok := r.both(r.m, op.name, func(side int) error { return f(side, r.m.disk[side].memory, &sum[side]) })
	if !ok {
		return false
	}
	if err != nil {
		r.tally.Hit("memory error: " + r.libs[0].sentinel(err))
	}
	if sum[0] != sum[1] {
		r.fail(op.name+" returned different values", fmt.Sprintf("base %d, last %d", r.base, r.last))
	}
	r.compareDisks(r.m, 0)
	return true
}

// index draws an index in and around the log.
func (r *memoryRun) index() uint64 {
	if r.oneIn(30) {
		return pick[uint64](r.chance, 0, r.last+100)
	}
	lo := r.base - min(r.base, 2)
	return lo + uint64(r.IntN(int(r.last-lo)+3))
}

// within draws an index that is out of range once in a long while only.
func (r *memoryRun) within() uint64 {
	if i := r.index(); i <= r.last || r.oneIn(30) {
		return i
	}
	return r.last
}

var memoryOps = []memoryOp{
	{"InitialState", false, func(*memoryRun) func(int, memory, *fingerprint) error {
		return func(_ int, mem memory, h *fingerprint) error {
			hs, cs, err := mem.InitialState()
			h.hardState(hs)
			h.confState(cs)
			return err
		}
	}},
	{"SetHardState", false, func(r *memoryRun) func(int, memory, *fingerprint) error {
		hs := pick(r.chance, nil, &pb.HardState{}, &pb.HardState{Term: new(r.term), Commit: new(r.last)})
		return func(_ int, mem memory, _ *fingerprint) error { return mem.SetHardState(hs) }
	}},
	{"Entries", true, func(r *memoryRun) func(int, memory, *fingerprint) error {
		lo := r.within()
		hi := max(lo, r.within()) + uint64(r.IntN(2))
		if hi > r.last+1 && !r.oneIn(10) {
			hi = r.last + 1
		}
		if lo >= hi {
			lo = hi - min(hi, 1)
		}
		size := pick[uint64](r.chance, 0, 1, uint64(r.IntN(200)), math.MaxUint64)
		return func(side int, mem memory, h *fingerprint) error {
			ents, err := mem.Entries(lo, hi, size)
			h.entries(ents)
			if side == 0 && err == nil {
				r.watchEntries(lo, hi, size)
			}
			return err
		}
	}},
	{"Term", false, func(r *memoryRun) func(int, memory, *fingerprint) error {
		i := r.index()
		return func(_ int, mem memory, h *fingerprint) error {
			term, err := mem.Term(i)
			h.word(term)
			return err
		}
	}},
	{"FirstIndex and LastIndex", false, func(*memoryRun) func(int, memory, *fingerprint) error {
		return func(_ int, mem memory, h *fingerprint) error {
			first, err := mem.FirstIndex()
			last, err2 := mem.LastIndex()
			h.word(first)
			h.word(last)
			return errors.Join(err, err2)
		}
	}},
	{"Snapshot", false, func(*memoryRun) func(int, memory, *fingerprint) error {
		return func(_ int, mem memory, h *fingerprint) error {
			s, err := mem.Snapshot()
			h.snapshot(s)
			if err == nil && s.GetMetadata().GetConfState() != nil {
				overwriteIDs(s.Metadata.ConfState.Voters) // a copy, the caller's
			}
			return err
		}
	}},
	{"ApplySnapshot", false, func(r *memoryRun) func(int, memory, *fingerprint) error {
		s := &pb.Snapshot{Data: r.bytes(5), Metadata: &pb.SnapshotMetadata{
			Index: new(r.index()), Term: new(r.term), ConfState: &pb.ConfState{Voters: []uint64{1, 2, r.last}}}}
		return func(_ int, mem memory, _ *fingerprint) error {
			mine := cloneOf(s)
			err := mem.ApplySnapshot(mine)
			overwriteIDs(mine.Metadata.ConfState.Voters)
			return err
		}
	}},
	{"CreateSnapshot", true, func(r *memoryRun) func(int, memory, *fingerprint) error {
		at, data := r.within(), r.payload()
		cs := pick(r.chance, nil, &pb.ConfState{Voters: []uint64{3, r.last}, AutoLeave: new(true)})
		if snap, _ := r.m.disk[0].memory.Snapshot(); at > snap.GetMetadata().GetIndex() && at < r.base {
			at = r.base // a snapshot of what is compacted away is beyond any contract
		}
		return func(_ int, mem memory, h *fingerprint) error {
			mine := cloneOf(cs)
			s, err := mem.CreateSnapshot(at, mine, slices.Clone(data))
			h.snapshot(s)
			if mine != nil {
				overwriteIDs(mine.Voters)
			}
			return err
		}
	}},
	{"Compact", true, func(r *memoryRun) func(int, memory, *fingerprint) error {
		at := r.within()
		return func(_ int, mem memory, _ *fingerprint) error { return mem.Compact(at) }
	}},
	{"Append", true, func(r *memoryRun) func(int, memory, *fingerprint) error {
		at := r.within() + 1
		if r.oneIn(2) {
			at = r.last + 1
		}
		if at > r.last+1 && !r.oneIn(4) {
			at = r.last + 1
		}
		ents := r.drawEntries(at-1, r.term, r.IntN(6))
		return func(_ int, mem memory, _ *fingerprint) error { return mem.Append(cloneAll(ents)) }
	}},
}

// watchEntries has the ledger watch a slice that the storages returned.
func (r *memoryRun) watchEntries(lo, hi, size uint64) {
	r.watch(r.m, "entries", func(side int) func() fingerprint {
		ents, err := r.m.disk[side].memory.Entries(lo, hi, size)
		if err != nil {
			r.fail("Entries fails when called again", err.Error())
		}
		return func() (h fingerprint) { h.entries(ents); return h }
	})
}
