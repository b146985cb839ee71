// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

// position is a place in a group's log. Term and index travel together, and so cannot
// be swapped.
type position struct{ term, index uint64 }

// row describes one entry of a frame's body.
type row struct {
	term uint64
	size uint32 // bytes in the body
	crc  uint32 // CRC-32C of the encoding
}

const rowLen = 16

// record is one frame's contents for one group. The parts take effect in the order of
// the fields.
type record struct {
	// installed replaces the log and the snapshot.
	installed *pb.Snapshot

	// rows are the entries first, first+1, ... Rows replace everything from first on,
	// unless moved is set: then each entry only has a new place, because its old
	// segment is about to go.
	rows  []row
	first uint64
	moved bool

	hardState *pb.HardState
	recorded  *pb.Snapshot // the host's own snapshot; the log stays
	base      *position    // entries up to here are dropped

	// The body, either entries, in step with rows, or their encoding.
	entries []*pb.Entry
	raw     []byte
}

func (r *record) empty() bool {
	return r.installed == nil && len(r.rows) == 0 && r.hardState == nil && r.recorded == nil && r.base == nil
}

func (r *record) bodyLen() (n int) {
	for i := range r.rows {
		n += int(r.rows[i].size)
	}
	return n
}

// The sections of a write frame's meta part, each with kind and length in front.
const (
	sectionInstalled uint32 = 1 + iota
	sectionEntries
	sectionMoved
	sectionHardState
	sectionRecorded
	sectionBase
)

const sectionHeaderLen = 8

// appendMeta appends the meta part of r, whose rows are complete.
func (r *record) appendMeta(buf []byte) ([]byte, error) {
	var err error
	message := func(kind uint32, m proto.Message) {
		if err != nil {
			return
		}
		buf = binary.LittleEndian.AppendUint32(buf, kind)
		buf = binary.LittleEndian.AppendUint32(buf, uint32(proto.Size(m)))
		buf, err = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(buf, m)
	}
	if r.installed != nil {
		message(sectionInstalled, r.installed)
	}
	if len(r.rows) > 0 {
		kind := sectionEntries
		if r.moved {
			kind = sectionMoved
		}
		buf = binary.LittleEndian.AppendUint32(buf, kind)
		buf = binary.LittleEndian.AppendUint32(buf, uint32(8+len(r.rows)*rowLen))
		buf = binary.LittleEndian.AppendUint64(buf, r.first)
		for _, w := range r.rows {
			buf = binary.LittleEndian.AppendUint64(buf, w.term)
			buf = binary.LittleEndian.AppendUint32(buf, w.size)
			buf = binary.LittleEndian.AppendUint32(buf, w.crc)
		}
	}
	if r.hardState != nil {
		message(sectionHardState, r.hardState)
	}
	if r.recorded != nil {
		message(sectionRecorded, r.recorded)
	}
	if r.base != nil {
		buf = binary.LittleEndian.AppendUint32(buf, sectionBase)
		buf = binary.LittleEndian.AppendUint32(buf, 16)
		buf = binary.LittleEndian.AppendUint64(buf, r.base.index)
		buf = binary.LittleEndian.AppendUint64(buf, r.base.term)
	}
	return buf, err
}

var errBadRecord = errors.New("malformed record")

// decodeRecord decodes the meta part of a write frame. bodyLen is the length of the
// body, which must be the sum of the rows.
func decodeRecord(meta []byte, bodyLen uint32) (*record, error) {
	r := &record{}
	last := uint32(0)
	for len(meta) > 0 {
		if len(meta) < sectionHeaderLen {
			return nil, fmt.Errorf("%w: %d bytes behind the last section", errBadRecord, len(meta))
		}
		kind, n := binary.LittleEndian.Uint32(meta), binary.LittleEndian.Uint32(meta[4:])
		meta = meta[sectionHeaderLen:]
		if uint64(n) > uint64(len(meta)) {
			return nil, fmt.Errorf("%w: section %d has %d bytes, %d are left", errBadRecord, kind, n, len(meta))
		}
		if kind <= last {
			return nil, fmt.Errorf("%w: section %d follows section %d", errBadRecord, kind, last)
		}
		if err := r.decodeSection(kind, meta[:n]); err != nil {
			return nil, fmt.Errorf("%w: section %d: %w", errBadRecord, kind, err)
		}
		last, meta = kind, meta[n:]
	}
	if n := r.bodyLen(); n != int(bodyLen) {
		return nil, fmt.Errorf("%w: the body has %d bytes, its entries %d", errBadRecord, bodyLen, n)
	}
	return r, nil
}

func (r *record) decodeSection(kind uint32, b []byte) error {
	switch kind {
	case sectionInstalled:
		r.installed = &pb.Snapshot{}
		return proto.Unmarshal(b, r.installed)
	case sectionEntries, sectionMoved:
		if len(r.rows) > 0 {
			return errors.New("entries twice")
		}
		r.moved = kind == sectionMoved
		return r.decodeRows(b)
	case sectionHardState:
		r.hardState = &pb.HardState{}
		return proto.Unmarshal(b, r.hardState)
	case sectionRecorded:
		r.recorded = &pb.Snapshot{}
		return proto.Unmarshal(b, r.recorded)
	case sectionBase:
		if len(b) != 16 {
			return fmt.Errorf("%d bytes, want 16", len(b))
		}
		r.base = &position{index: binary.LittleEndian.Uint64(b), term: binary.LittleEndian.Uint64(b[8:])}
		return nil
	}
	return errors.New("unknown kind")
}

func (r *record) decodeRows(b []byte) error {
	if len(b) < 8+rowLen || (len(b)-8)%rowLen != 0 {
		return fmt.Errorf("%d bytes of entry rows", len(b))
	}
	r.first = binary.LittleEndian.Uint64(b)
	b = b[8:]
	n := uint64(len(b) / rowLen)
	if r.first == 0 || r.first+n < r.first {
		return fmt.Errorf("%d entries from index %d", n, r.first)
	}
	r.rows = make([]row, n)
	for i := range r.rows {
		c := b[i*rowLen:]
		r.rows[i] = row{
			term: binary.LittleEndian.Uint64(c),
			size: binary.LittleEndian.Uint32(c[8:]),
			crc:  binary.LittleEndian.Uint32(c[12:]),
		}
	}
	return nil
}

// Fields of raftpb.Entry on the wire.
const (
	fieldType  protowire.Number = 1
	fieldTerm  protowire.Number = 2
	fieldIndex protowire.Number = 3
	fieldData  protowire.Number = 4
)

// appendEntryHead appends the encoding of e up to its data. The data's own bytes follow
// on disk, straight from the caller's slice. Head and data together are an ordinary
// encoding of e, with every optional field present or absent as in e, because presence
// counts in the sizes by which Raft pages.
func appendEntryHead(buf []byte, e *pb.Entry) []byte {
	if e.Type != nil {
		buf = protowire.AppendTag(buf, fieldType, protowire.VarintType)
		buf = protowire.AppendVarint(buf, uint64(*e.Type))
	}
	if e.Term != nil {
		buf = protowire.AppendTag(buf, fieldTerm, protowire.VarintType)
		buf = protowire.AppendVarint(buf, *e.Term)
	}
	if e.Index != nil {
		buf = protowire.AppendTag(buf, fieldIndex, protowire.VarintType)
		buf = protowire.AppendVarint(buf, *e.Index)
	}
	buf = append(buf, e.ProtoReflect().GetUnknown()...)
	if e.Data != nil {
		buf = protowire.AppendTag(buf, fieldData, protowire.BytesType)
		buf = protowire.AppendVarint(buf, uint64(len(e.Data)))
	}
	return buf
}

// entryRow describes e, whose encoding is head followed by its data.
func entryRow(e *pb.Entry, head []byte) row {
	return row{
		term: e.GetTerm(),
		size: uint32(len(head) + len(e.Data)),
		crc:  crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, e.Data),
	}
}
