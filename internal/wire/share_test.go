// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

// within reports whether part is in the memory of whole.
func within(whole, part []byte) bool {
	if len(part) == 0 {
		return false
	}
	from, at := uintptr(unsafe.Pointer(unsafe.SliceData(whole))), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	return at >= from && at < from+uintptr(len(whole))
}

func largeBodies(size int) []Body {
	data := bytes.Repeat([]byte("abcdefgh"), size/8)
	app := &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(3)), Commit: new(uint64(2)),
		Entries: []*pb.Entry{{Type: pb.EntryNormal.Enum(), Term: new(uint64(3)), Index: new(uint64(4)), Data: data}, {Term: new(uint64(3)), Index: new(uint64(5)), Data: []byte("small")}}}
	return []Body{Raft{Message: app}, Proposal{ID: CommandID{Origin: 1, Boot: 2, Sequence: 3}, Data: data}, Chunk{Stream: 1, Number: 2, Data: data}}
}

func largePart(b Body) []byte {
	switch b := b.(type) {
	case Raft:
		return b.Entries[0].Data
	case Proposal:
		return b.Data
	case Chunk:
		return b.Data
	}
	return nil
}

// Going out, a large payload is in the frame as it is in the message; coming in,
// it stays in the frame's memory. Nothing in between copies it.
func TestLargePayloadsAreNotCopied(t *testing.T) {
	for _, body := range largeBodies(1 << 20) {
		m := Message{Group: 1, From: 1, To: 2, Body: body}
		var f Frame
		f.AppendMessage(m)
		pieces := f.Messages()
		require.Len(t, pieces, map[Kind]int{KindRaft: 3, KindProposal: 2, kindChunk: 2}[m.Kind()])
		require.Same(t, &largePart(body)[0], &pieces[1][0], "%v", m.Kind())

		payload, err := ReadFrame(bytes.NewReader(bytes.Join(pieces, nil)), FrameMessages, MaxFrame, nil)
		require.NoError(t, err)
		var got Message
		_, err = DecodeShared(payload, func(m Message) { got = m })
		require.NoError(t, err)
		requireEqual(t, m, got)
		require.True(t, within(payload, largePart(got.Body)), "%v", m.Kind())
		require.Equal(t, len(largePart(got.Body)), cap(largePart(got.Body)), "an append to it copies it")

		_, err = DecodeMessages(payload, func(m Message) { got = m })
		require.NoError(t, err)
		require.False(t, within(payload, largePart(got.Body)), "%v", m.Kind())
	}
}

// A payload that is a small part of its frame does not keep the frame in memory.
func TestSmallPartsAreCopied(t *testing.T) {
	body := largeBodies(2 * referBytes)[0]
	var f Frame
	for range 5 {
		f.AppendMessage(Message{Group: 1, From: 1, To: 2, Body: body})
	}
	payload := bytes.Join(f.Messages(), nil)[HeaderLen:]
	n := 0
	_, err := DecodeShared(payload, func(m Message) {
		n++
		require.False(t, within(payload, largePart(m.Body)))
	})
	require.NoError(t, err)
	require.Equal(t, 5, n)
}

// A payload that is there twice: the later one counts, as everywhere in protobuf.
func TestFieldsThatComeTwice(t *testing.T) {
	large := []byte("larger")
	field := func(data []byte) []byte {
		return protowire.AppendBytes([]byte{tagEntryData}, data)
	}
	for name, b := range map[string][]byte{
		"small behind": append(field(large), field([]byte("small"))...),
		"empty behind": append(field(large), field(nil)...),
		"large behind": append(field([]byte("small")), field(large)...),
	} {
		t.Run(name, func(t *testing.T) { requireSameAsProto(t, wrapEntry(b)) })
	}
}

func wrapEntry(entry []byte) []byte {
	return protowire.AppendBytes([]byte{tagEntries}, entry)
}

func requireSameAsProto(t *testing.T, b []byte) {
	original := &pb.Message{}
	wantErr := proto.Unmarshal(b, original)
	want := proto.CloneOf(original)
	for _, share := range []int{0, 1} { // none, and the smallest payload
		d, memory := decoder{share: share}, bytes.Clone(b)
		got, err := d.raft(memory)
		require.Equal(t, wantErr == nil, err == nil, "protobuf says %v, we say %v", wantErr, err)
		if err != nil {
			continue
		}
		if share == 0 {
			clear(memory) // none of it is used any more
		}
		require.Equal(t, takeDigests(want), got.Digests)
		require.True(t, proto.Equal(want, got.Message), "%v\n%v", want, got)
		var e encoder
		e.reset()
		got.encode(&e)
		pieces, _ := e.seal(nil)
		written := bytes.Join(pieces, nil)[HeaderLen:]
		again := &pb.Message{}
		require.NoError(t, proto.Unmarshal(written, again))
		require.Equal(t, got.Digests, takeDigests(again))
		require.True(t, proto.Equal(want, again), "%v\n%v", want, again)
		require.LessOrEqual(t, len(written), proto.Size(want)+2*digestLen)
		want = proto.CloneOf(original)
	}
}

// FuzzRaft compares the reader of Raft messages with protobuf's own.
func FuzzRaft(f *testing.F) {
	full := &pb.Message{Type: pb.MsgAppResp.Enum(), To: new(uint64(1)), From: new(uint64(1 << 63)), Term: new(uint64(0)), LogTerm: new(uint64(4)),
		Index: new(uint64(5)), Commit: new(uint64(6)), Vote: new(uint64(7)), Reject: new(true), RejectHint: new(uint64(8)), Context: []byte{}}
	later := proto.CloneOf(full)
	later.ProtoReflect().SetUnknown([]byte{8 * 15, 1})
	founded := proto.CloneOf(full)
	founded.ProtoReflect().SetUnknown([]byte{settingsTag, digestTag1, 5, 6, 7, 8, firstTag, digestTag1, 1, 2, 3, 4})
	f.Add([]byte{tagTerm | 0x80, 0, 1})                                                        // a tag that is longer than it need be
	f.Add([]byte{tagType, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})            // a type of -1
	f.Add([]byte{tagTerm, 1, tagTerm, 2, tagReject, 7, tagEntries, 2, tagEntryIndex, 0x83, 0}) // cut off
	for _, m := range append(samples()[1:], Message{Body: largeBodies(8)[0]}, Message{Body: Raft{Message: full}}, Message{Body: Raft{Message: later}}, Message{Body: Raft{Message: founded}}) {
		if raft, ok := m.Body.(Raft); ok {
			b, err := proto.Marshal(raft.Message)
			require.NoError(f, err)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { requireSameAsProto(t, b) })
}
