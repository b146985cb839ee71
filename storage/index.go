// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

// indexShare: an index of more than the segment's third would save little. A segment of
// snapshots' bodies, with hardly any entries, may have such an index.
const indexShare = 3

// index is the contents of a segment's frames, without the entries themselves. It is
// gathered while the segment is written and becomes a frame before the seal. The next
// segment has the place of the index, so that a restart reads only the index. Together
// the indexes are the engine's checkpoint: written once, a piece at a time, and each
// gone with its segment.
//
// An index is never needed: if it is missing or damaged, a restart reads the segment's
// frames, with the same contents.
type index struct {
	// needed is the oldest segment needed, by the last purged frame.
	needed uint64
	buf    []byte // the records so far
	off    uint32 // body of the last frame
	// hardStates are the last hard state of each group. A hard state changes with
	// nearly every record, and only the last counts, so all stand at the end.
	hardStates map[uint64]*pb.HardState
	broken     bool // something could not be encoded: there will be no index
}

// Parts of a record in an index, in this order.
const (
	indexInstalled = 1 << iota
	indexRows
	indexMoved // with indexRows
	indexHardState
	indexRecorded
	indexBase
	indexParts // no part, and nothing above
)

// add notes that rec is in the segment, its entries from byte body on.
func (x *index) add(group uint64, body uint32, rec *record) {
	if rec.hardState != nil {
		if x.hardStates == nil {
			x.hardStates = map[uint64]*pb.HardState{}
		}
		x.hardStates[group] = rec.hardState
	}
	parts := indexPart(rec.installed != nil, indexInstalled) | indexPart(len(rec.rows) > 0, indexRows) |
		indexPart(len(rec.rows) > 0 && rec.moved, indexMoved) |
		indexPart(rec.recorded != nil, indexRecorded) | indexPart(rec.base != nil, indexBase)
	if parts == 0 {
		return
	}
	x.head(group, body, parts)
	if rec.installed != nil {
		x.message(rec.installed)
	}
	if len(rec.rows) > 0 {
		x.rows(rec)
	}
	if rec.recorded != nil {
		x.message(rec.recorded)
	}
	if rec.base != nil {
		x.buf = binary.AppendUvarint(x.buf, rec.base.index)
		x.buf = binary.AppendUvarint(x.buf, rec.base.term)
	}
}

func indexPart(has bool, part uint64) uint64 {
	if has {
		return part
	}
	return 0
}

func (x *index) head(group uint64, body uint32, parts uint64) {
	x.buf = binary.AppendUvarint(x.buf, group)
	x.buf = binary.AppendUvarint(x.buf, uint64(body-x.off)) // bodies ascend
	x.buf = binary.AppendUvarint(x.buf, parts)
	x.off = body
}

func (x *index) rows(rec *record) {
	x.buf = binary.AppendUvarint(x.buf, rec.first)
	x.buf = binary.AppendUvarint(x.buf, uint64(len(rec.rows)))
	term := uint64(0)
	for _, r := range rec.rows {
		x.buf = binary.AppendUvarint(x.buf, r.term-term)
		x.buf = binary.AppendUvarint(x.buf, uint64(r.size))
		x.buf = binary.LittleEndian.AppendUint32(x.buf, r.crc)
		term = r.term
	}
}

func (x *index) message(m proto.Message) {
	x.buf = binary.AppendUvarint(x.buf, uint64(proto.Size(m)))
	buf, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(x.buf, m)
	x.buf, x.broken = buf, x.broken || err != nil
}

// meta returns the meta part of the index frame; nil if impossible. x stays unchanged,
// for a further call.
func (x *index) meta() []byte {
	last := index{buf: x.buf, off: x.off, broken: x.broken}
	for _, group := range slices.SortedFunc(maps.Keys(x.hardStates), cmp.Compare) {
		last.head(group, last.off, indexHardState)
		last.message(x.hardStates[group])
	}
	if last.broken || 8+len(last.buf) > maxMetaBytes {
		return nil
	}
	return append(binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(last.buf)), x.needed), last.buf...)
}

// indexReader takes an index apart.
type indexReader struct {
	b   []byte
	err error
}

func (r *indexReader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: index: %s, %d bytes before its end", errBadRecord, what, len(r.b))
	}
	r.b = nil
}

func (r *indexReader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail(fmt.Sprintf("%d bytes missing", n-uint64(len(r.b))))
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *indexReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("a number missing")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *indexReader) message(m proto.Message) {
	if err := proto.Unmarshal(r.bytes(r.uvarint()), m); err != nil {
		r.fail(err.Error())
	}
}

// decodeIndex gives each record of an index to visit, up to the first invalid one, for
// a segment whose frames end before byte end. The record's rows are valid until visit
// returns.
func decodeIndex(meta []byte, end int64, visit func(group uint64, body uint32, rec *record)) (needed uint64, err error) {
	if len(meta) < 8 {
		return 0, fmt.Errorf("%w: an index of %d bytes", errBadRecord, len(meta))
	}
	r, rec, body := &indexReader{b: meta[8:]}, &record{}, uint64(0)
	for len(r.b) > 0 {
		group := r.uvarint()
		body += r.uvarint()
		r.record(rec)
		if bytes := uint64(rec.bodyLen()); end < 0 || body > uint64(end) || bytes > uint64(end)-body {
			r.fail("a record behind the end")
		}
		if r.err != nil {
			return 0, r.err
		}
		visit(group, uint32(body), rec)
	}
	return binary.LittleEndian.Uint64(meta), nil
}

func (r *indexReader) record(rec *record) {
	*rec = record{rows: rec.rows[:0]}
	parts := r.uvarint()
	if parts == 0 || parts >= indexParts || parts&indexMoved != 0 && parts&indexRows == 0 {
		r.fail("unknown parts")
	}
	if parts&indexInstalled != 0 {
		rec.installed = &pb.Snapshot{}
		r.message(rec.installed)
	}
	if parts&indexRows != 0 {
		rec.moved = parts&indexMoved != 0
		r.rows(rec)
	}
	if parts&indexHardState != 0 {
		rec.hardState = &pb.HardState{}
		r.message(rec.hardState)
	}
	if parts&indexRecorded != 0 {
		rec.recorded = &pb.Snapshot{}
		r.message(rec.recorded)
	}
	if parts&indexBase != 0 {
		rec.base = &position{index: r.uvarint()}
		rec.base.term = r.uvarint()
	}
}

func (r *indexReader) rows(rec *record) {
	first, n := r.uvarint(), r.uvarint()
	const least = 6 // bytes of a row
	if n == 0 || n > uint64(len(r.b))/least || first == 0 || first+n < first {
		r.fail(fmt.Sprintf("%d entries from index %d", n, first))
		return
	}
	rec.first = first
	term := uint64(0)
	for range n {
		term += r.uvarint()
		size := r.uvarint()
		crc := r.bytes(4)
		if size > maxBodyBytes || crc == nil {
			r.fail("a row")
			return
		}
		rec.rows = append(rec.rows, row{term: term, size: uint32(size), crc: binary.LittleEndian.Uint32(crc)})
	}
}
