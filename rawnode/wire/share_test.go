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
		require.Len(t, pieces, map[Kind]int{KindRaft: 3, KindProposal: 2, KindChunk: 2}[m.Kind()])
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
		return protowire.AppendBytes(protowire.AppendTag(nil, fieldEntryData, protowire.BytesType), data)
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
	return protowire.AppendBytes(protowire.AppendTag(nil, fieldMessageEntries, protowire.BytesType), entry)
}

func requireSameAsProto(t *testing.T, b []byte) {
	want := &pb.Message{}
	wantErr := proto.Unmarshal(b, want)
	d := decoder{share: 1} // so that the smallest payload may be shared
	got, err := d.sharedRaft(bytes.Clone(b))
	require.Equal(t, wantErr == nil, err == nil, "protobuf says %v, we say %v", wantErr, err)
	if err == nil {
		require.True(t, proto.Equal(want, got), "%v\n%v", want, got)
	}
}

// FuzzSharedRaft compares the reader of large Raft messages with protobuf's own.
func FuzzSharedRaft(f *testing.F) {
	for _, m := range append(samples()[1:], Message{Body: largeBodies(8)[0]}) {
		if raft, ok := m.Body.(Raft); ok {
			b, err := proto.Marshal(raft.Message)
			require.NoError(f, err)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { requireSameAsProto(t, b) })
}
