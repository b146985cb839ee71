// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// Raft messages are protobuf, in upstream's definition. Messages are written and,
// except for messages with snapshots, read by hand here: an acknowledgement has six
// numbers, and protobuf's own reader makes an object of each. Unexpected input (a field
// of a later version, or of a wrong type) is left to protobuf, so that both readers
// agree for any bytes.

// Tags of fields in raftpb's definition: number and type, in one byte.
const (
	tagType = 8 * (iota + 1)
	tagTo
	tagFrom
	tagTerm
	tagLogTerm
	tagIndex
	tagEntries   = 8*7 + 2
	tagCommit    = 8 * 8
	tagSnapshot  = 8*9 + 2
	tagReject    = 8 * 10
	tagHint      = 8 * 11
	tagContext   = 8*12 + 2
	tagVote      = 8 * 13
	tagResponses = 8*14 + 2

	tagEntryType  = 8 * 1
	tagEntryTerm  = 8 * 2
	tagEntryIndex = 8 * 3
	tagEntryData  = 8*4 + 2
)

// Raft.First is a field beyond upstream's definition: 4 bytes, behind a tag of two. Its
// number is far above the numbers of upstream's fields.
const (
	firstNumber = 1000
	firstTag    = firstNumber<<3 | int(protowire.Fixed32Type)
	firstTag0   = byte(firstTag&0x7f | 0x80)
	firstTag1   = byte(firstTag >> 7)
	firstLen    = 2 + 4
)

// encode appends the message, with large payloads of entries by reference.
func (b Raft) encode(e *encoder) {
	m := b.Message
	if m.Type != nil {
		e.field(tagType, uint64(*m.Type))
	}
	e.number(tagTo, m.To)
	e.number(tagFrom, m.From)
	e.number(tagTerm, m.Term)
	e.number(tagLogTerm, m.LogTerm)
	e.number(tagIndex, m.Index)
	for _, entry := range m.Entries {
		b.encodeEntry(e, entry)
	}
	e.number(tagCommit, m.Commit)
	if m.Snapshot != nil {
		e.message(tagSnapshot, m.Snapshot)
	}
	if m.Reject != nil {
		e.field(tagReject, protowire.EncodeBool(*m.Reject))
	}
	e.number(tagHint, m.RejectHint)
	if m.Context != nil {
		e.byte(tagContext)
		e.bytes(m.Context)
	}
	e.number(tagVote, m.Vote)
	for _, r := range m.Responses {
		e.message(tagResponses, r)
	}
	if b.First != 0 {
		e.byte(firstTag0)
		e.byte(firstTag1)
		e.arena = binary.LittleEndian.AppendUint32(e.arena, b.First)
	}
	e.Copy(m.ProtoReflect().GetUnknown())
}

// encodeEntry appends one element of Message.entries.
func (b Raft) encodeEntry(e *encoder, entry *pb.Entry) {
	e.byte(tagEntries)
	n := proto.Size(entry)
	var out *ecraft.Outgoing
	if b.OwnForm {
		out = ecraft.NewOutgoing(entry.Data, b.ClearPrefix, b.GetFrom(), b.GetTo())
	}
	if out != nil {
		e.outgoing = append(e.outgoing, out)
		n += protowire.SizeBytes(out.Len()) - protowire.SizeBytes(len(entry.Data))
	}
	e.uvarint(uint64(n))
	if entry.Type != nil {
		e.field(tagEntryType, uint64(*entry.Type))
	}
	e.number(tagEntryTerm, entry.Term)
	e.number(tagEntryIndex, entry.Index)
	switch {
	case out != nil:
		e.field(tagEntryData, uint64(out.Len()))
		out.WriteTo(e)
	case entry.Data != nil:
		e.byte(tagEntryData)
		e.bytes(entry.Data)
	}
	e.Copy(entry.ProtoReflect().GetUnknown())
}

func (e *encoder) field(tag byte, v uint64) {
	e.byte(tag)
	e.uvarint(v)
}

func (e *encoder) number(tag byte, v *uint64) {
	if v != nil {
		e.field(tag, *v)
	}
}

func (e *encoder) message(tag byte, m proto.Message) {
	e.field(tag, uint64(proto.Size(m)))
	e.arena = appendProto(e.arena, m)
}

// appendProto appends the encoding of m, which only fails for invalid UTF-8 in strings
// or for missing required fields; raftpb has neither.
func appendProto(b []byte, m proto.Message) []byte {
	out, err := proto.MarshalOptions{}.MarshalAppend(b, m)
	if err != nil {
		return b
	}
	return out
}

// raft decodes a Raft message, and Raft.First. Large payloads of entries may stay in b.
func (d *decoder) raft(b []byte) (m *pb.Message, first uint32, err error) {
	entries, err := checkMemory(b)
	if err != nil {
		return nil, 0, err
	}
	if m, first, ok := d.plainRaft(b, entries); ok {
		return m, first, nil
	}
	m = &pb.Message{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, 0, err
	}
	return m, takeFirst(m), nil
}

// takeFirst takes Raft.First out of a message's unknown fields.
func takeFirst(m *pb.Message) (first uint32) {
	var others []byte
	for unknown := m.ProtoReflect().GetUnknown(); len(unknown) > 0; {
		number, typ, tag := protowire.ConsumeTag(unknown)
		n := protowire.ConsumeFieldValue(number, typ, unknown[tag:])
		if number == firstNumber && typ == protowire.Fixed32Type {
			first = binary.LittleEndian.Uint32(unknown[tag:])
		} else {
			others = append(others, unknown[:tag+n]...)
		}
		unknown = unknown[tag+n:]
	}
	m.ProtoReflect().SetUnknown(others)
	return first
}

// raftMemory is a message with the memory of its numbers.
type raftMemory struct {
	pb.Message
	typ                                                      pb.MessageType
	to, from, term, logTerm, index, commit, rejectHint, vote uint64
	reject                                                   bool
}

// plainRaft decodes a message with expected fields only, and makes room for so many
// entries.
func (d *decoder) plainRaft(b []byte, entries int) (_ *pb.Message, first uint32, ok bool) {
	r := &raftMemory{}
	m := &r.Message
	m.Entries = slices.Grow(m.Entries, entries)
	for len(b) > 0 {
		if len(b) >= firstLen && b[0] == firstTag0 && b[1] == firstTag1 {
			first, b = binary.LittleEndian.Uint32(b[2:]), b[firstLen:]
			continue
		}
		f, rest, ok := nextField(b)
		if !ok {
			return nil, 0, false
		}
		switch b = rest; f.tag {
		case tagType:
			r.typ, m.Type = pb.MessageType(f.number), &r.typ
		case tagTo:
			r.to, m.To = f.number, &r.to
		case tagFrom:
			r.from, m.From = f.number, &r.from
		case tagTerm:
			r.term, m.Term = f.number, &r.term
		case tagLogTerm:
			r.logTerm, m.LogTerm = f.number, &r.logTerm
		case tagIndex:
			r.index, m.Index = f.number, &r.index
		case tagCommit:
			r.commit, m.Commit = f.number, &r.commit
		case tagReject:
			r.reject, m.Reject = f.number != 0, &r.reject
		case tagHint:
			r.rejectHint, m.RejectHint = f.number, &r.rejectHint
		case tagVote:
			r.vote, m.Vote = f.number, &r.vote
		case tagContext:
			m.Context = append([]byte{}, f.bytes...)
		case tagEntries:
			entry, ok := d.plainEntry(f.bytes)
			if !ok {
				return nil, 0, false
			}
			m.Entries = append(m.Entries, entry)
		default:
			return nil, 0, false
		}
	}
	return m, first, true
}

// entryMemory is an entry with the memory of its numbers.
type entryMemory struct {
	pb.Entry
	typ         pb.EntryType
	term, index uint64
}

func (d *decoder) plainEntry(b []byte) (*pb.Entry, bool) {
	r := &entryMemory{}
	entry := &r.Entry
	for len(b) > 0 {
		f, rest, ok := nextField(b)
		if !ok {
			return nil, false
		}
		switch b = rest; f.tag {
		case tagEntryType:
			r.typ, entry.Type = pb.EntryType(f.number), &r.typ
		case tagEntryTerm:
			r.term, entry.Term = f.number, &r.term
		case tagEntryIndex:
			r.index, entry.Index = f.number, &r.index
		case tagEntryData:
			if d.shares(len(f.bytes)) {
				entry.Data = f.bytes[:len(f.bytes):len(f.bytes)]
			} else {
				entry.Data = append(make([]byte, 0, len(f.bytes)), f.bytes...)
			}
		default:
			return nil, false
		}
	}
	return entry, true
}

// field is a field of a message: its tag, and a number or bytes.
type field struct {
	tag    byte
	number uint64
	bytes  []byte
}

// nextField cuts the first field off b, if its tag has one byte, and its type is a
// number or bytes.
func nextField(b []byte) (f field, rest []byte, ok bool) {
	f.tag = b[0]
	n := -1
	switch protowire.Type(f.tag & 7) {
	case protowire.VarintType:
		f.number, n = protowire.ConsumeVarint(b[1:])
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(b[1:])
	}
	if n < 0 {
		return f, nil, false
	}
	return f, b[1+n:], true
}
