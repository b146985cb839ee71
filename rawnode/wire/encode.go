// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"hash/crc32"
	"net"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

// referBytes is the length from which a payload is referred to rather than
// copied: below, one more buffer in a writev costs more than the copy.
const referBytes = 4 << 10

// encoder builds the bytes of a frame: small things in an arena, large ones by
// reference, in between.
type encoder struct {
	arena []byte
	cuts  []cut
	refer int // bytes in cuts
}

// cut is a payload that stands behind the first at bytes of the arena.
type cut struct {
	at   int
	data []byte
}

func (e *encoder) reset() {
	clear(e.cuts)
	*e = encoder{arena: append(e.arena[:0], make([]byte, HeaderLen)...), cuts: e.cuts[:0]}
}

func (e *encoder) len() int { return len(e.arena) + e.refer }

func (e *encoder) byte(b byte)      { e.arena = append(e.arena, b) }
func (e *encoder) uvarint(v uint64) { e.arena = binary.AppendUvarint(e.arena, v) }
func (e *encoder) bool(b bool)      { e.uvarint(protowire.EncodeBool(b)) }

// tail appends bytes without their length.
func (e *encoder) tail(b []byte) {
	if len(b) < referBytes {
		e.arena = append(e.arena, b...)
		return
	}
	e.cuts = append(e.cuts, cut{at: len(e.arena), data: b})
	e.refer += len(b)
}

func (e *encoder) bytes(b []byte) {
	e.uvarint(uint64(len(b)))
	e.tail(b)
}

func (e *encoder) text(s string) {
	if len(s) > MaxReasonLen {
		s = s[:MaxReasonLen]
	}
	e.bytes([]byte(s))
}

// seal returns the whole as buffers, and the checksum of all behind the header.
func (e *encoder) seal(bufs net.Buffers) (net.Buffers, uint32) {
	var crc uint32
	from := 0
	piece := func(b []byte, sum []byte) {
		if len(b) > 0 {
			bufs = append(bufs, b)
			crc = crc32.Update(crc, castagnoli, sum)
		}
	}
	arena := func(to int) {
		piece(e.arena[from:to], e.arena[max(from, HeaderLen):max(to, HeaderLen)])
		from = to
	}
	for _, c := range e.cuts {
		arena(c.at)
		piece(c.data, c.data)
	}
	arena(len(e.arena))
	return bufs, crc
}

// AppendMessage adds a message to the frame.
func (f *Frame) AppendMessage(m Message) {
	if len(f.enc.arena) == 0 {
		f.enc.reset()
	}
	e := &f.enc
	e.byte(byte(m.Kind()))
	e.uvarint(m.Group)
	e.uvarint(m.From)
	e.uvarint(m.To)
	// The length stands in front and is known behind: leave room for four
	// bytes of uvarint, always written in full.
	at := len(e.arena)
	e.arena = append(e.arena, 0, 0, 0, 0)
	before := e.len()
	m.Body.encode(e)
	n := e.len() - before
	for i := range 3 {
		e.arena[at+i] = byte(n>>(7*i)) | 0x80
	}
	e.arena[at+3] = byte(n >> 21)
}

// maxBody is what the four bytes can say.
const maxBody = 1<<28 - 1

// The most that the fixed fields of a Raft message and of an entry take, with
// tags, and with the lengths of what has its own.
const (
	raftOverhead  = 8*11 + 2*3 + 6
	entryOverhead = 6 + 3 + 2*11 + 6
)

// size is a bound from above: it is asked for at each queue, and the exact size
// would cost a walk by reflection each time.
func (b Raft) size() int {
	m := b.Message
	n := raftOverhead + len(m.GetContext()) + len(m.ProtoReflect().GetUnknown())
	for _, e := range m.GetEntries() {
		n += entryOverhead + len(e.GetData()) + len(e.ProtoReflect().GetUnknown())
	}
	if m.Snapshot != nil {
		n += 6 + proto.Size(m.Snapshot)
	}
	for _, r := range m.GetResponses() {
		n += 6 + proto.Size(r)
	}
	return n
}

func (b Raft) encode(e *encoder) { encodeRaft(e, b.Message) }

// encodeRaft appends m as protobuf, with large payloads of entries by reference.
func encodeRaft(e *encoder, m *pb.Message) {
	large := false
	for _, entry := range m.GetEntries() {
		large = large || len(entry.GetData()) >= referBytes
	}
	if !large || len(m.ProtoReflect().GetUnknown()) > 0 {
		e.arena = appendProto(e.arena, m)
		return
	}
	e.arena = appendProto(e.arena, &pb.Message{
		Type: m.Type, To: m.To, From: m.From, Term: m.Term, LogTerm: m.LogTerm, Index: m.Index,
		Commit: m.Commit, Vote: m.Vote, Snapshot: m.Snapshot, Reject: m.Reject,
		RejectHint: m.RejectHint, Context: m.Context, Responses: m.Responses,
	})
	for _, entry := range m.Entries {
		encodeEntry(e, entry)
	}
}

// Numbers of fields in raftpb's definition.
const (
	fieldMessageEntries protowire.Number = 7
	fieldEntryData      protowire.Number = 4
)

// encodeEntry appends one element of Message.entries.
func encodeEntry(e *encoder, entry *pb.Entry) {
	e.arena = protowire.AppendTag(e.arena, fieldMessageEntries, protowire.BytesType)
	if len(entry.GetData()) < referBytes || len(entry.ProtoReflect().GetUnknown()) > 0 {
		e.uvarint(uint64(proto.Size(entry)))
		e.arena = appendProto(e.arena, entry)
		return
	}
	head := &pb.Entry{Type: entry.Type, Term: entry.Term, Index: entry.Index}
	n := proto.Size(head) + protowire.SizeTag(fieldEntryData) + protowire.SizeBytes(len(entry.Data))
	e.uvarint(uint64(n))
	e.arena = appendProto(e.arena, head)
	e.arena = protowire.AppendTag(e.arena, fieldEntryData, protowire.BytesType)
	e.bytes(entry.Data)
}

// appendProto appends the encoding of m, which only fails for strings that are
// not UTF-8 or for missing required fields; raftpb has neither.
func appendProto(b []byte, m proto.Message) []byte {
	out, err := proto.MarshalOptions{}.MarshalAppend(b, m)
	if err != nil {
		return b
	}
	return out
}
