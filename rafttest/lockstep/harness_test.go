// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weftraft/weft/raft"
)

// TestFingerprint sets each field of each message type that nodes hand out, one by one, to a value
// and to an empty value, and checks that both change the fingerprint.
func TestFingerprint(t *testing.T) {
	for name, c := range map[string]struct {
		empty func() protoreflect.Message
		of    func(protoreflect.Message) fingerprint
	}{
		"Message": {
			func() protoreflect.Message { return (&pb.Message{}).ProtoReflect() },
			func(m protoreflect.Message) (h fingerprint) { h.message(m.Interface().(*pb.Message)); return h },
		},
		"Entry": {
			func() protoreflect.Message { return (&pb.Entry{}).ProtoReflect() },
			func(m protoreflect.Message) (h fingerprint) { h.entry(m.Interface().(*pb.Entry)); return h },
		},
		"HardState": {
			func() protoreflect.Message { return (&pb.HardState{}).ProtoReflect() },
			func(m protoreflect.Message) (h fingerprint) { h.hardState(m.Interface().(*pb.HardState)); return h },
		},
		"Snapshot": {
			func() protoreflect.Message { return (&pb.Snapshot{}).ProtoReflect() },
			func(m protoreflect.Message) (h fingerprint) { h.snapshot(m.Interface().(*pb.Snapshot)); return h },
		},
		"SnapshotMetadata": {
			func() protoreflect.Message { return (&pb.SnapshotMetadata{}).ProtoReflect() },
			func(m protoreflect.Message) (h fingerprint) {
				h.snapshot(&pb.Snapshot{Metadata: m.Interface().(*pb.SnapshotMetadata)})
				return h
			},
		},
		"ConfState": {
			func() protoreflect.Message { return (&pb.ConfState{}).ProtoReflect() },
			func(m protoreflect.Message) (h fingerprint) { h.confState(m.Interface().(*pb.ConfState)); return h },
		},
	} {
		seen := map[fingerprint]string{c.of(c.empty()): "nothing set"}
		put := func(what string, m protoreflect.Message) {
			f := c.of(m)
			if other, ok := seen[f]; ok {
				t.Errorf("%s: %s has the fingerprint of %s", name, what, other)
			}
			seen[f] = what
		}
		fields := c.empty().Descriptor().Fields()
		for i := range fields.Len() {
			fd := fields.Get(i)
			m := c.empty()
			m.Set(fd, someValue(m, fd))
			put(string(fd.Name()), m)
			if !fd.IsList() && fd.Kind() != protoreflect.MessageKind {
				m = c.empty()
				m.Set(fd, fd.Default())
				if fd.Kind() == protoreflect.BytesKind {
					m.Set(fd, protoreflect.ValueOfBytes([]byte{}))
				}
				put(string(fd.Name())+" present but zero", m)
			}
		}
		m := c.empty()
		m.SetUnknown([]byte{0x98, 0x06, 0x01})
		put("an unknown field", m)
	}
}

// someValue returns a value of a field other than its zero value.
func someValue(m protoreflect.Message, fd protoreflect.FieldDescriptor) protoreflect.Value {
	v := m.NewField(fd)
	switch {
	case fd.IsList() && fd.Kind() == protoreflect.MessageKind:
		v.List().Append(v.List().NewElement())
	case fd.IsList():
		v.List().Append(protoreflect.ValueOfUint64(3))
	case fd.Kind() == protoreflect.BytesKind:
		v = protoreflect.ValueOfBytes([]byte("x"))
	case fd.Kind() == protoreflect.BoolKind:
		v = protoreflect.ValueOfBool(true)
	case fd.Kind() == protoreflect.EnumKind:
		v = protoreflect.ValueOfEnum(1)
	case fd.Kind() == protoreflect.Uint64Kind:
		v = protoreflect.ValueOfUint64(3)
	}
	return v
}

// tampered is Weft with a flaw that the harness must find.
func tampered(flaw func(*raft.Ready)) library {
	lib := weft
	lib.newCore = func(c raft.Config) (core, error) {
		made, err := weft.newCore(c)
		return tamperedCore{made, flaw}, err
	}
	return lib
}

type tamperedCore struct {
	core
	flaw func(*raft.Ready)
}

func (c tamperedCore) Ready() raft.Ready {
	rd := c.core.Ready()
	c.flaw(&rd)
	return rd
}

// TestHarness shows that the harness finds no difference between upstream and upstream, and finds
// at once flaws that are easy to miss.
func TestHarness(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		if r := run(seed, options{Steps: 1500, swap: &[2]library{upstream, upstream}}); r.Difference != nil {
			t.Errorf("upstream differs from itself: %v", r.Difference)
		}
	}
	var old *pb.Entry
	flaws := map[string]func(*raft.Ready){
		"an empty slice instead of nil": func(rd *raft.Ready) {
			if rd.Entries == nil {
				rd.Entries = []*pb.Entry{}
			}
		},
		"a field that is present and false": func(rd *raft.Ready) {
			for _, m := range rd.Messages {
				if m.Reject == nil {
					m.Reject = new(false)
				}
			}
		},
		"messages in another order": func(rd *raft.Ready) {
			if n := len(rd.Messages); n > 1 {
				rd.Messages[0], rd.Messages[n-1] = rd.Messages[n-1], rd.Messages[0]
			}
		},
		"an entry that changes after it was handed out": func(rd *raft.Ready) {
			if old != nil {
				old.Term = new(old.GetTerm())
				old.Data = append([]byte("changed"), old.Data...)
			}
			if old = nil; len(rd.CommittedEntries) > 0 {
				old = rd.CommittedEntries[0]
			}
		},
		"a sync too much": func(rd *raft.Ready) { rd.MustSync = true },
	}
	for name, flaw := range flaws {
		found := uint64(0)
		for seed := uint64(1); seed <= 20 && found == 0; seed++ {
			old = nil
			r := run(seed, options{Steps: 1500, swap: &[2]library{upstream, tampered(flaw)}})
			if r.Difference != nil {
				found = seed
			}
		}
		if found == 0 {
			t.Errorf("not found in 20 schedules: %s", name)
		} else {
			t.Logf("%s: found by seed %d", name, found)
		}
	}
}
