// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/internal/silent"
)

// TestMemoryStorage feeds both MemoryStorages the same calls, also calls that no host makes, and
// calls while a host holds the exported mutex: then both answer, or both wait until the mutex is
// free. The results are equal in every byte, after the call and at the end.
func TestMemoryStorage(t *testing.T) {
	tally, calls := tally{}, uint64(0)
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
		required = append(required, "mutex held: "+memoryOps[i].name)
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
	// last and term are the end of the log, base is its beginning.
	base, last, term uint64
	// kept are the returned and the passed messages, by side.
	kept [2][]proto.Message
}

// memoryOp draws the arguments of a call and returns the call, whose result is the fingerprint of
// the storage's answer.
type memoryOp struct {
	name   string
	panics bool // can be made to panic
	draw   func(*memoryRun) func(side int, mem memory, h *fingerprint) error
}

func runMemory(seed uint64, steps int, tally tally) (calls uint64, d *difference) {
	s := &schedule{chance: newChance(seed), seed: seed, libs: [2]library{upstream, weft}, tally: tally}
	s.plan.maxPayload = 30
	for _, lib := range s.libs {
		lib.setLogger(silent.Logger{})
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
	held := r.oneIn(30)
	if held {
		r.tally.Hit("mutex held: " + op.name)
	}
	var sum [2]fingerprint
	err, ok := r.both(r.m, op.name, func(side int) error {
		mem := r.m.disk[side].memory
		if held {
			return r.whileHeld(mem.(sync.Locker), &sum[side], func() error { return f(side, mem, &sum[side]) })
		}
		return f(side, mem, &sum[side])
	})
	if !ok {
		return false
	}
	r.compareKept(op.name)
	if err != nil {
		r.tally.Hit("memory error: " + r.libs[0].sentinel(err))
	}
	if sum[0] != sum[1] {
		r.fail(op.name+" returned different values", fmt.Sprintf("base %d, last %d", r.base, r.last))
	}
	if r.oneIn(8) { // compareDisks calls methods that may fill in absent fields
		r.compareDisks(r.m, 0)
	}
	return true
}

// keep adds a message to the messages compared from here on: if a library changes the message, the
// other library must make the same change.
func (r *memoryRun) keep(side int, m proto.Message) { r.kept[side] = append(r.kept[side], m) }

func (r *memoryRun) compareKept(what string) {
	for i, a := range r.kept[0] {
		if b := r.kept[1][i]; !bytes.Equal(bytesOf(a), bytesOf(b)) {
			r.fail(what+" left different messages", fmt.Sprintf("number %d: upstream %v, Weft %v", i, a, b))
		}
	}
	if n := len(r.kept[0]); n > 20 { // only the last 20 stay
		r.kept[0], r.kept[1] = slices.Delete(r.kept[0], 0, n-20), slices.Delete(r.kept[1], 0, n-20)
	}
}

func bytesOf(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

// whileHeld makes a call while the mutex is held. The fingerprint says whether the call waited
// until the mutex was free.
func (r *memoryRun) whileHeld(mu sync.Locker, h *fingerprint, f func() error) error {
	var (
		err      error
		panicked any
		id       = make(chan string, 1)
		done     = make(chan struct{})
	)
	mu.Lock()
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		id <- firstLine(stack(false))
		err = f()
	}()
	waited := waits(<-id, done)
	mu.Unlock()
	<-done
	if panicked != nil {
		panic(panicked)
	}
	h.flag(waited)
	return err
}

// waits reports whether a goroutine starts to wait for a mutex before the goroutine is done.
func waits(id string, done chan struct{}) bool {
	for {
		select {
		case <-done:
			return false
		default:
		}
		// The first line of the part names the goroutine and its state.
		for part := range strings.SplitSeq(stack(true), "\n\n") {
			if name, _, _ := strings.Cut(id, "["); strings.HasPrefix(part, name) && strings.Contains(firstLine(part), "sync.Mutex.Lock") {
				return true
			}
		}
		runtime.Gosched()
	}
}

func stack(all bool) string {
	buf := make([]byte, 1<<16)
	return string(buf[:runtime.Stack(buf, all)])
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// confState draws a configuration as a host may build a configuration: fields may be absent.
func (r *memoryRun) confState() *pb.ConfState {
	if r.oneIn(4) {
		return nil
	}
	return &pb.ConfState{
		Voters:         pick(r.chance, nil, []uint64{}, []uint64{1}, []uint64{3, r.last}),
		Learners:       pick(r.chance, nil, nil, []uint64{7}),
		VotersOutgoing: pick(r.chance, nil, nil, []uint64{1, 2}),
		LearnersNext:   pick(r.chance, nil, nil, []uint64{}, []uint64{2}),
		AutoLeave:      pick(r.chance, nil, new(false), new(true)),
	}
}

// snapshot draws a snapshot as a host may build a snapshot.
func (r *memoryRun) snapshot() *pb.Snapshot {
	s := &pb.Snapshot{Data: pick(r.chance, nil, []byte{}, r.bytes(5))}
	if r.oneIn(10) {
		return pick(r.chance, nil, s)
	}
	s.Metadata = &pb.SnapshotMetadata{Index: new(r.index()), Term: new(r.term), ConfState: r.confState()}
	if r.oneIn(10) {
		s.Metadata.Index = nil
	}
	if r.oneIn(10) {
		s.Metadata.Term = nil
	}
	return s
}

// index draws an index in and around the log.
func (r *memoryRun) index() uint64 {
	if r.oneIn(30) {
		return pick[uint64](r.chance, 0, r.last+100)
	}
	lo := r.base - min(r.base, 2)
	return lo + uint64(r.IntN(int(r.last-lo)+3))
}

// within draws an index that is rarely out of range.
func (r *memoryRun) within() uint64 {
	if i := r.index(); i <= r.last || r.oneIn(30) {
		return i
	}
	return r.last
}

var memoryOps = []memoryOp{
	{"InitialState", false, func(r *memoryRun) func(int, memory, *fingerprint) error {
		return func(side int, mem memory, h *fingerprint) error {
			hs, cs, err := mem.InitialState()
			h.hardState(hs)
			h.confState(cs)
			r.keep(side, cs)
			return err
		}
	}},
	{"SetHardState", false, func(r *memoryRun) func(int, memory, *fingerprint) error {
		hs := pick(r.chance, nil, &pb.HardState{}, &pb.HardState{Term: new(r.term), Commit: new(r.last)})
		return func(side int, mem memory, _ *fingerprint) error {
			mine := cloneOf(hs)
			r.keep(side, mine)
			return mem.SetHardState(mine)
		}
	}},
	{"Entries", true, func(r *memoryRun) func(int, memory, *fingerprint) error {
		lo := r.within()
		hi := max(lo, r.within()) + uint64(r.IntN(2))
		if hi > r.last+1 && !r.oneIn(10) {
			hi = r.last + 1
		}
		if lo >= hi {
			lo = hi - min(hi, uint64(r.IntN(2))) // an empty range, too
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
	{"Snapshot", false, func(r *memoryRun) func(int, memory, *fingerprint) error {
		spoil := r.oneIn(2)
		return func(side int, mem memory, h *fingerprint) error {
			s, err := mem.Snapshot()
			h.snapshot(s)
			r.keep(side, s)
			if err == nil && spoil {
				overwriteIDs(s.GetMetadata().GetConfState().GetVoters()) // a copy, the caller's
			}
			return err
		}
	}},
	{"ApplySnapshot", false, func(r *memoryRun) func(int, memory, *fingerprint) error {
		s, spoil := r.snapshot(), r.oneIn(2)
		return func(side int, mem memory, _ *fingerprint) error {
			mine := cloneOf(s)
			err := mem.ApplySnapshot(mine)
			r.keep(side, mine)
			if spoil {
				overwriteIDs(mine.GetMetadata().GetConfState().GetVoters())
			}
			return err
		}
	}},
	{"CreateSnapshot", true, func(r *memoryRun) func(int, memory, *fingerprint) error {
		at, data, cs, spoil := r.within(), r.payload(), r.confState(), r.oneIn(2)
		if snap, _ := r.m.disk[0].memory.Snapshot(); at > snap.GetMetadata().GetIndex() && at < r.base {
			at = r.base // a snapshot of a compacted index is beyond any contract
		}
		return func(side int, mem memory, h *fingerprint) error {
			mine := cloneOf(cs)
			s, err := mem.CreateSnapshot(at, mine, slices.Clone(data))
			h.snapshot(s)
			r.keep(side, s)
			r.keep(side, mine)
			if spoil {
				overwriteIDs(mine.GetVoters())
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

// watchEntries makes the ledger watch a slice that the storages returned.
func (r *memoryRun) watchEntries(lo, hi, size uint64) {
	r.watch(r.m, "entries", func(side int) func() fingerprint {
		ents, err := r.m.disk[side].memory.Entries(lo, hi, size)
		if err != nil {
			r.fail("Entries fails when called again", err.Error())
		}
		return func() (h fingerprint) { h.entries(ents); return h }
	})
}
