// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Decoding shared memory
//
// A payload was copied out of the kernel once, into the memory of its frame. A
// second copy, into memory of its own, is what lets the frame's memory be used
// for the next frame. For large payloads it costs more than it saves, so
// DecodeShared lets them stay where they are: then the frame's memory is theirs.
//
// Who keeps such a payload keeps the whole frame in memory, and no budget counts
// that. So only what is at least a shareParts-th of the frame is shared: memory
// is at most that many times what budgets count.
const shareParts = 4

// shares reports whether a payload of n bytes stays in the frame's memory.
func (d *decoder) shares(n int) bool {
	return d.share > 0 && n >= d.share
}

// DecodeShared is DecodeMessages, but large payloads in the messages are parts
// of payload. The caller must not touch payload again.
func DecodeShared(payload []byte, each func(Message)) (unknown int, err error) {
	return decodeMessages(payload, max(referBytes, len(payload)/shareParts), each)
}

// sharedRaft decodes a Raft message whose large payloads of entries stay in b.
// It reads entries by hand and leaves all else to protobuf, and means the same
// as protobuf does for any bytes.
func (d *decoder) sharedRaft(b []byte) (*pb.Message, error) {
	var rest []byte
	var entries []*pb.Entry
	for len(b) > 0 {
		before, value, after, ok := cutField(b, fieldMessageEntries)
		if !ok {
			break
		}
		entry, err := d.sharedEntry(value)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
		rest = append(rest, before...)
		b = after
	}
	rest = append(rest, b...) // with whatever mistake there is in it
	m := &pb.Message{}
	if err := proto.Unmarshal(rest, m); err != nil {
		return nil, err
	}
	m.Entries = entries
	return m, nil
}

// sharedEntry decodes one entry, with its payload in b if that is large.
func (d *decoder) sharedEntry(b []byte) (*pb.Entry, error) {
	entry := &pb.Entry{}
	if before, data, after, ok := cutField(b, fieldEntryData); ok && d.shares(len(data)) {
		around := append(append(make([]byte, 0, len(before)+len(after)), before...), after...)
		if err := proto.Unmarshal(around, entry); err != nil {
			return nil, err
		}
		if entry.Data == nil { // else the field is there twice, and the later one counts
			entry.Data = data[:len(data):len(data)]
			return entry, nil
		}
	}
	entry.Reset()
	return entry, proto.Unmarshal(b, entry)
}

// cutField finds the first field of bytes with a number, and what is around it.
func cutField(b []byte, want protowire.Number) (before, value, after []byte, ok bool) {
	for at := 0; at < len(b); {
		num, typ, n := protowire.ConsumeField(b[at:])
		if n < 0 {
			break
		}
		if num == want && typ == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(b[at:])
			value, _ := protowire.ConsumeBytes(b[at+tag:])
			return b[:at], value, b[at+n:], true
		}
		at += n
	}
	return nil, nil, nil, false
}
