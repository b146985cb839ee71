// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/raft"
)

// inputs draws protocol state of any shape, also shapes that no node produces.
type inputs struct{ chance }

// number draws a field: absent, zero, small, or at the end of the range.
func (in inputs) number() *uint64 {
	return pick(in.chance, nil, new(uint64(0)), new(uint64(in.IntN(20))), new(uint64(math.MaxUint64)), new(uint64(math.MaxUint64-1)), new(in.Uint64()))
}

func (in inputs) data() []byte {
	return pick(in.chance, nil, []byte{}, []byte("text \"quoted\"\n"), in.bytes(in.IntN(20)))
}

func (in inputs) entry() *pb.Entry {
	e := &pb.Entry{Term: in.number(), Index: in.number(), Data: in.data()}
	if !in.oneIn(4) {
		e.Type = pb.EntryType(in.IntN(4)).Enum() // one type more than exists
	}
	if in.oneIn(2) {
		cc, err := proto.Marshal(in.change().AsV2())
		if err == nil && e.GetType() == pb.EntryConfChangeV2 {
			e.Data = cc
		}
	}
	return e
}

func (in inputs) entries() (ents []*pb.Entry) {
	for range in.IntN(4) {
		ents = append(ents, in.entry())
	}
	return ents
}

func (in inputs) change() pb.ConfChangeI {
	if in.oneIn(2) {
		cc := &pb.ConfChange{NodeId: in.number(), Context: in.data(), Id: in.number()}
		if in.oneIn(2) {
			cc.Type = pb.ConfChangeType(in.IntN(4)).Enum()
		}
		return cc
	}
	cc := &pb.ConfChangeV2{Context: in.data()}
	if in.oneIn(2) {
		cc.Transition = pb.ConfChangeTransition(in.IntN(3)).Enum()
	}
	for range in.IntN(4) {
		cc.Changes = append(cc.Changes, &pb.ConfChangeSingle{Type: pb.ConfChangeType(in.IntN(4)).Enum(), NodeId: in.number()})
	}
	return cc
}

func (in inputs) confState() *pb.ConfState {
	if in.oneIn(6) {
		return nil
	}
	ids := func() []uint64 { return pick(in.chance, nil, []uint64{}, []uint64{1}, []uint64{3, 2}) }
	return &pb.ConfState{
		Voters: ids(), Learners: ids(), VotersOutgoing: ids(), LearnersNext: ids(),
		AutoLeave: pick(in.chance, nil, new(true), new(false)),
	}
}

func (in inputs) snapshot() *pb.Snapshot {
	switch in.IntN(6) {
	case 0:
		return nil
	case 1:
		return &pb.Snapshot{Data: in.data()}
	}
	return &pb.Snapshot{Data: in.data(), Metadata: &pb.SnapshotMetadata{Index: in.number(), Term: in.number(), ConfState: in.confState()}}
}

func (in inputs) message(depth int) *pb.Message {
	m := &pb.Message{
		Type: pb.MessageType(in.IntN(26)).Enum(), To: in.number(), From: in.number(), Term: in.number(), LogTerm: in.number(), Index: in.number(),
		Entries: in.entries(), Commit: in.number(), Vote: in.number(), Snapshot: in.snapshot(),
		Reject: pick(in.chance, nil, new(true), new(false)), RejectHint: in.number(), Context: in.data(),
	}
	for range in.IntN(3) {
		if depth > 0 {
			m.Responses = append(m.Responses, in.message(depth-1))
		}
	}
	return m
}

func (in inputs) hardState() *pb.HardState {
	return pick(in.chance, nil, &pb.HardState{}, &pb.HardState{Term: in.number(), Vote: in.number(), Commit: in.number()})
}

func (in inputs) soft() raft.SoftState {
	return raft.SoftState{Lead: uint64(in.IntN(5)), RaftState: raft.StateType(in.IntN(4))}
}

func (in inputs) ready() raft.Ready {
	rd := raft.Ready{
		HardState: in.hardState(), Snapshot: in.snapshot(), Entries: in.entries(), CommittedEntries: in.entries(), MustSync: in.oneIn(2),
	}
	if in.oneIn(2) {
		rd.SoftState = new(in.soft())
	}
	for range in.IntN(3) {
		rd.ReadStates = append(rd.ReadStates, raft.ReadState{Index: uint64(in.IntN(9)), RequestCtx: in.data()})
		rd.Messages = append(rd.Messages, in.message(1))
	}
	return rd
}

// TestUtil compares the functions that need no node, on any input. Weft's functions never panic,
// upstream's panic on some inputs.
func TestUtil(t *testing.T) {
	in := inputs{newChance(7)}
	libs := [2]library{upstream, weft}
	upper := func(b []byte) string { return strings.ToUpper(fmt.Sprintf("%x", b)) }
	for range 12_000 {
		f := pick(in.chance, nil, raft.EntryFormatter(upper))
		rd, m, e, ents := in.ready(), in.message(2), in.entry(), in.entries()
		hs, prev, snap, cs, cc, n := in.hardState(), in.hardState(), in.snapshot(), in.confState(), in.change(), in.IntN(3)
		soft, typ, id := in.soft(), pb.MessageType(in.IntN(40)-3), pick[uint64](in.chance, 0, 3, raft.LocalAppendThread, raft.LocalApplyThread)
		for what, call := range map[string]func(library) any{
			"DescribeReady":      func(l library) any { return l.describeReady(rd, f) },
			"DescribeMessage":    func(l library) any { return l.describeMessage(m, f) },
			"DescribeEntry":      func(l library) any { return l.describeEntry(e, f) },
			"DescribeEntries":    func(l library) any { return l.describeEntries(ents, f) },
			"DescribeHardState":  func(l library) any { return l.describeHardState(hs) },
			"DescribeSoftState":  func(l library) any { return l.describeSoftState(soft) },
			"DescribeConfState":  func(l library) any { return l.describeConfState(cs) },
			"DescribeSnapshot":   func(l library) any { return l.describeSnapshot(snap) },
			"DescribeConfChange": func(l library) any { return l.describeConfChange(cc) },
			"StateType":          func(l library) any { return l.describeState(soft.RaftState) },
			"MustSync":           func(l library) any { return l.mustSync(hs, prev, n) },
			"IsEmptyHardState":   func(l library) any { return l.isEmptyHardState(hs) },
			"IsEmptySnap":        func(l library) any { return l.isEmptySnap(snap) },
			"IsLocalMsg":         func(l library) any { return l.isLocalMsg(typ) },
			"IsResponseMsg":      func(l library) any { return l.isResponseMsg(typ) },
			"IsLocalMsgTarget":   func(l library) any { return l.isLocalMsgTarget(id) },
		} {
			var got [2]any
			var panicked [2]bool
			for side, l := range libs {
				o := attempt(side, func(side int) error { got[side] = call(l); return nil })
				panicked[side] = o.panicked != nil
			}
			if panicked[0] && !panicked[1] {
				continue // Weft describes a value on which upstream panics
			}
			if got[0] != got[1] || panicked[1] {
				t.Fatalf("%s, panics %v:\n%s\nmessage %v", what, panicked, sides(libs, fmt.Sprint(got[0]), fmt.Sprint(got[1])), m)
			}
		}
	}
}

// TestConfig compares which configurations and storages the libraries accept.
// Upstream refuses some by a panic; Weft must return an error instead.
func TestConfig(t *testing.T) {
	installEntropy()
	c := newChance(11)
	libs := [2]library{upstream, weft}
	accepted := 0
	for range 12_000 {
		cfg := raft.Config{
			ID:           pick[uint64](c, 1, 1, 1, 1, 5, 1<<63, 0, raft.LocalAppendThread, raft.LocalApplyThread),
			ElectionTick: pick(c, 2, 3, 4, 5, 5, 5, math.MaxInt), HeartbeatTick: pick(c, -1, 0, 1, 1, 1, 1, 2, 2, 3, math.MaxInt),
			MaxSizePerMsg: pick[uint64](c, 0, 100, math.MaxUint64), MaxInflightBytes: pick[uint64](c, 0, 0, 99, 100, 101, math.MaxUint64),
			MaxInflightMsgs: c.between(-1, 12), CheckQuorum: c.oneIn(2), ReadOnlyOption: raft.ReadOnlyOption(c.IntN(3)),
			Applied: pick[uint64](c, 0, 0, 0, 0, 3, 5, 9, math.MaxUint64),
		}
		hs := pick(c, nil, &pb.HardState{}, &pb.HardState{Term: new(uint64(2)), Vote: new(uint64(1)), Commit: new(pick[uint64](c, 2, 3, 4, 5, 6, 7, 8, 9, math.MaxUint64))})
		cs := &pb.ConfState{Voters: pick(c, nil, []uint64{1}, []uint64{1, 2, 3}, []uint64{2, 2}, []uint64{0, 1}), Learners: pick(c, nil, nil, []uint64{2}, []uint64{4}),
			VotersOutgoing: pick(c, nil, nil, []uint64{1, 2}), LearnersNext: pick(c, nil, nil, nil, []uint64{2}), AutoLeave: pick(c, nil, nil, new(true))}
		withStorage, filled, broken := !c.oneIn(20), !c.oneIn(4), sound
		stateless := c.oneIn(20)
		if c.oneIn(8) {
			broken = pick(c, failsState, failsFirst, failsLast, failsTerm, failsEntries, failsSnapshot)
		}
		var out [2]outcome
		for side, lib := range libs {
			lib.setLogger(silent.Logger{})
			out[side] = attempt(side, func(int) error {
				mine := cfg
				if withStorage {
					d := &disk{memory: lib.newMemory(), lib: lib, restored: cs}
					if filled {
						fill(d, hs)
					}
					d.fault = broken
					if mine.Storage = d; stateless {
						mine.Storage = withoutState{d}
					}
				}
				theEntropy.reset(1, 1)
				_, err := lib.newCore(mine)
				return err
			})
		}
		if (out[0] == outcome{}) != (out[1] == outcome{}) || out[1].panicked != nil {
			t.Fatalf("%+v hard state %v conf state %v:\n%s", cfg, hs, cs, sides(libs, out[0].String(), out[1].String()))
		}
		if (out[1] == outcome{}) {
			accepted++
		}
	}
	if accepted < 300 || accepted > 9_000 {
		t.Errorf("%d of 12000 configurations were accepted: the test no longer tests both", accepted)
	}
}

// withoutState has nothing to say of the members, as the storage of a node that waits to be added.
type withoutState struct{ *disk }

func (withoutState) InitialState() (*pb.HardState, *pb.ConfState, error) { return nil, nil, nil }

// fill puts entries 4 to 8 behind a snapshot at 3.
func fill(d *disk, hs *pb.HardState) {
	snap := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(3)), Term: new(uint64(1)), ConfState: &pb.ConfState{}}}
	var ents []*pb.Entry
	for i := uint64(4); i <= 8; i++ {
		ents = append(ents, &pb.Entry{Index: new(i), Term: new(uint64(1))})
	}
	cs := d.restored
	if err := d.write(hs, ents, snap); err != nil {
		panic(err)
	}
	d.restored = cs
}

// TestThreads checks that the libraries agree on the storage threads' addresses.
func TestThreads(t *testing.T) {
	for _, lib := range []library{upstream, weft} {
		var named bytes.Buffer
		for _, id := range []uint64{raft.LocalAppendThread, raft.LocalApplyThread} {
			if !lib.isLocalMsgTarget(id) {
				t.Errorf("%s: %d is no storage thread", lib.name, id)
			}
			named.WriteString(lib.describeMessage(&pb.Message{To: new(id), From: new(id)}, nil))
		}
		if s := named.String(); !strings.Contains(s, "AppendThread") || !strings.Contains(s, "ApplyThread") {
			t.Errorf("%s: the storage threads are called %q", lib.name, s)
		}
	}
}
