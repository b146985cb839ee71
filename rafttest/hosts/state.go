// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/binary"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

const (
	keys    = 4
	clients = 4
)

// state is a state machine: a few registers. A state is small and a value, so
// that hosts may keep any number of copies.
type state struct {
	at     position // the last entry in the state
	values [keys]uint32
	// done is the last applied command of each client: a command that arrives
	// again, or after a later command, has no effect.
	done [clients]uint32
	conf *pb.ConfState // never changed in place
	// confAt is the entry from which conf is in force, or a later one.
	confAt uint64
	// removed are the nodes that were members once and are none now, as bits.
	removed uint64
}

// stateLen is the length of a snapshot's data.
const stateLen = 4*(keys+clients) + 8

// position names an entry.
type position struct{ index, term uint64 }

// apply puts a command into effect. The result tells whether there was any
// effect.
func (s *state) apply(c command) bool {
	if c.op == opTruncate {
		return true
	}
	seen := &s.done[c.id.client()]
	if c.id.seq() <= *seen {
		return false
	}
	*seen = c.id.seq()
	if c.op == opPut {
		s.values[c.key] = c.value
	}
	return true
}

// snapshot returns the state for a node without the state.
func (s *state) snapshot() *pb.Snapshot {
	data := make([]byte, 0, stateLen)
	for _, v := range append(s.values[:], s.done[:]...) {
		data = binary.LittleEndian.AppendUint32(data, v)
	}
	data = binary.LittleEndian.AppendUint64(data, s.removed)
	at := s.at
	return &pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{
		Index: &at.index, Term: &at.term, ConfState: proto.Clone(s.conf).(*pb.ConfState)}}
}

// stateOf is snapshot's inverse.
func stateOf(snap *pb.Snapshot) (state, error) {
	data, meta := snap.GetData(), snap.GetMetadata()
	if len(data) != stateLen {
		return state{}, fmt.Errorf("snapshot at %d has %d bytes, not %d", meta.GetIndex(), len(data), stateLen)
	}
	s := state{at: position{meta.GetIndex(), meta.GetTerm()}, conf: meta.GetConfState(), confAt: meta.GetIndex()}
	for i := range s.values {
		s.values[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	for i := range s.done {
		s.done[i] = binary.LittleEndian.Uint32(data[4*(keys+i):])
	}
	s.removed = binary.LittleEndian.Uint64(data[4*(keys+clients):])
	return s, nil
}

// equal compares all but configurations, which members may know in other forms.
func (s *state) equal(o *state) bool {
	return s.at == o.at && s.values == o.values && s.done == o.done
}
