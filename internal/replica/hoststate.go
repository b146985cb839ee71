// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

// hostState is what the host needs to know as of an applied index. The state
// machine keeps it, encoded, together with its own state.
type hostState struct {
	at   logMark
	conf *pb.ConfState // in force behind that entry; constant
	// origins is changed in place: only the newest hostState has it.
	origins originTable
	rows    originRows // of origins, at the last encode
	size    int        // of the last encoding

	// encoded is the encoding of encodedConf, which is conf unless conf has changed.
	encoded     []byte
	encodedConf *pb.ConfState
}

// logMark is a place in the log. Term and index travel together, so that no caller can swap
// the two.
type logMark struct{ term, index uint64 }

const hostStateVersion = 1

// encode returns: version, index, term, the configuration with its length in
// front, and the table of origins.
func (h *hostState) encode() []byte {
	b := make([]byte, 0, h.size+128)
	b = append(b, hostStateVersion)
	b = binary.AppendUvarint(b, h.at.index)
	b = binary.AppendUvarint(b, h.at.term)
	if h.encodedConf != h.conf {
		conf, err := proto.MarshalOptions{Deterministic: true}.Marshal(h.conf)
		if err != nil { // numbers and booleans always can be encoded
			panic(fmt.Sprintf("rawnode: encode configuration: %v", err))
		}
		h.encoded, h.encodedConf = conf, h.conf
	}
	b = binary.AppendUvarint(b, uint64(len(h.encoded)))
	b = append(b, h.encoded...)
	h.rows = h.origins.rows(h.rows)
	b = h.rows.append(b)
	h.size = len(b)
	return b
}

// decodeHostState is the inverse of encode.
func decodeHostState(b []byte) (*hostState, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: the host's bytes are missing; the state machine must return what it was given with the last batch", ErrState)
	}
	if b[0] != hostStateVersion {
		return nil, fmt.Errorf("%w: the host's bytes have version %d, this node reads %d; run the version that wrote them", ErrState, b[0], hostStateVersion)
	}
	b = b[1:]
	var nums [3]uint64
	for i := range nums {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, fmt.Errorf("%w: the host's bytes are cut off", ErrState)
		}
		nums[i], b = v, b[n:]
	}
	if nums[2] > uint64(len(b)) {
		return nil, fmt.Errorf("%w: the host's bytes are cut off in the configuration", ErrState)
	}
	h := &hostState{at: logMark{index: nums[0], term: nums[1]}, conf: &pb.ConfState{}}
	if err := proto.Unmarshal(b[:nums[2]], h.conf); err != nil {
		return nil, fmt.Errorf("%w: the host's bytes have a damaged configuration: %w", ErrState, err)
	}
	h.conf = pb.EnsureConfState(h.conf)
	var err error
	h.origins, err = decodeOrigins(b[nums[2]:])
	return h, err
}

// stateMark is a place in the log with the configuration in force behind it.
type stateMark struct {
	at   logMark
	conf *pb.ConfState // constant
}

func (h *hostState) mark() stateMark { return stateMark{h.at, h.conf} }

// meta returns the snapshot metadata for the state.
func (h *hostState) meta() *pb.SnapshotMetadata { return h.mark().meta() }

func (m stateMark) meta() *pb.SnapshotMetadata {
	return &pb.SnapshotMetadata{Index: new(m.at.index), Term: new(m.at.term), ConfState: m.conf}
}

// HostBytes returns what the replicas of a group keep beside a state without commands, as of
// an entry: its term, its index, and the members from there on. Drivers' tests make
// snapshots with it.
func HostBytes(term, index uint64, members *pb.ConfState) []byte {
	h := hostState{at: logMark{term: term, index: index}, conf: members}
	return h.encode()
}
