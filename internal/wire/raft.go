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
	"github.com/weftraft/weft/internal/encoded"
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

// Digests are fields of a Raft message beyond upstream's definition, each of 4 bytes behind
// a tag of two. Their numbers are far above the numbers of upstream's fields, and earlier
// versions ignore the fields. 0 is none, and is not encoded.
type Digests struct {
	// First is of the first members of the sending node's group, 0 if the members are
	// unknown there.
	First uint32
	// Settings is of the settings that must be equal at all replicas, 0 if there are none.
	Settings uint32
}

const (
	firstNumber    = 1000
	settingsNumber = firstNumber + 1
	// Tags of the two fields begin with different bytes, and share the second.
	firstTag    = byte(firstNumber<<3&0x7f) | byte(protowire.Fixed32Type) | 0x80
	settingsTag = byte(settingsNumber<<3&0x7f) | byte(protowire.Fixed32Type) | 0x80
	digestTag1  = byte(firstNumber >> 4)
	digestLen   = 2 + 4
)

func (e *encoder) digest(tag byte, v uint32) {
	if v != 0 {
		e.byte(tag)
		e.byte(digestTag1)
		e.arena = binary.LittleEndian.AppendUint32(e.arena, v)
	}
}

// at returns where the digest belongs that b begins with, or nil.
func (d *Digests) at(b []byte) *uint32 {
	switch {
	case len(b) < digestLen || b[1] != digestTag1:
		return nil
	case b[0] == firstTag:
		return &d.First
	case b[0] == settingsTag:
		return &d.Settings
	}
	return nil
}

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
	e.digest(firstTag, b.First)
	e.digest(settingsTag, b.Settings)
	e.Copy(m.ProtoReflect().GetUnknown())
}

// encodeEntry appends one element of Message.entries.
func (b Raft) encodeEntry(e *encoder, entry *pb.Entry) {
	e.byte(tagEntries)
	n := encoded.Size(entry)
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

// raft decodes a Raft message. Large payloads of entries may stay in b.
func (d *decoder) raft(b []byte) (r Raft, err error) {
	entries, err := checkMemory(b)
	if err != nil {
		return Raft{}, err
	}
	if r, ok := d.plainRaft(b, entries); ok {
		return r, nil
	}
	m := &pb.Message{}
	if err := proto.Unmarshal(b, m); err != nil {
		return Raft{}, err
	}
	return Raft{Message: m, Digests: takeDigests(m)}, nil
}

// takeDigests takes the digests out of a message's unknown fields.
func takeDigests(m *pb.Message) (d Digests) {
	var others []byte
	for unknown := m.ProtoReflect().GetUnknown(); len(unknown) > 0; {
		number, typ, tag := protowire.ConsumeTag(unknown)
		n := tag + protowire.ConsumeFieldValue(number, typ, unknown[tag:])
		if at := d.at(unknown[:n]); at != nil {
			*at = binary.LittleEndian.Uint32(unknown[tag:])
		} else {
			others = append(others, unknown[:n]...)
		}
		unknown = unknown[n:]
	}
	m.ProtoReflect().SetUnknown(others)
	return d
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
func (d *decoder) plainRaft(b []byte, entries int) (_ Raft, ok bool) {
	r := &raftMemory{}
	m := &r.Message
	var digests Digests
	m.Entries = slices.Grow(m.Entries, entries)
	for len(b) > 0 {
		if at := digests.at(b); at != nil {
			*at, b = binary.LittleEndian.Uint32(b[2:]), b[digestLen:]
			continue
		}
		f, rest, ok := nextField(b)
		if !ok {
			return Raft{}, false
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
				return Raft{}, false
			}
			m.Entries = append(m.Entries, entry)
		default:
			return Raft{}, false
		}
	}
	return Raft{Message: m, Digests: digests}, true
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
