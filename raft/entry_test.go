// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/ecraft"

	pb "go.etcd.io/raft/v3/raftpb"
)

// anyEntry draws entries with every combination of fields present and absent.
func anyEntry(t *rapid.T) *pb.Entry {
	e := &pb.Entry{}
	if rapid.Bool().Draw(t, "has type") {
		e.Type = pb.EntryType(rapid.Int32().Draw(t, "type")).Enum()
	}
	if rapid.Bool().Draw(t, "has term") {
		e.Term = new(rapid.Uint64().Draw(t, "term"))
	}
	if rapid.Bool().Draw(t, "has index") {
		e.Index = new(rapid.Uint64().Draw(t, "index"))
	}
	if rapid.Bool().Draw(t, "has data") {
		e.Data = make([]byte, rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(16000, 17000)).Draw(t, "bytes"))
	}
	if rapid.Bool().Draw(t, "has unknown") {
		e.ProtoReflect().SetUnknown([]byte{0x7a, 1, 'u'}) // field 15, a string
	}
	return e
}

func TestEncodedSizeIsProtoSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEntry(t)
		require.Equal(t, entryEncodingSize(proto.Size(e)), encodingSize([]*pb.Entry{e}))
	})
}

// A copy has everything of the original but its identity, and shares no bytes
// with it.
func TestCopyEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEntry(t)
		want := proto.Clone(e).(*pb.Entry)
		want.Term, want.Index = new(uint64(7)), new(uint64(8))
		got := copyEntry(e, ecraft.ID{Term: 7, Index: 8})
		require.True(t, proto.Equal(want, got))
		require.Equal(t, want.Data == nil, got.Data == nil)
		require.Equal(t, proto.Size(want), proto.Size(got))
		for i := range e.Data {
			e.Data[i] = 0xff
		}
		require.Equal(t, want.Data, got.Data)
	})
}
