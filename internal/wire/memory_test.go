// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

// payloadOf is the payload of a frame with one message of a kind.
func payloadOf(kind Kind, body []byte) []byte {
	b := append([]byte{byte(kind)}, 1, 1, 2) // group, from, to
	return protowire.AppendBytes(b, body)
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// hostile returns bodies of 8 MiB whose objects would take many times that.
func hostile() map[string][]byte {
	const size = 8 << 20
	many := func(part ...byte) []byte { return bytes.Repeat(part, size/len(part)) }
	snapshot := func(metadata []byte) []byte {
		return protowire.AppendBytes([]byte{tagSnapshot}, protowire.AppendBytes([]byte{8*2 + 2}, metadata))
	}
	raft := map[string][]byte{
		"empty entries":                     many(tagEntries, 0),
		"entries of one byte of data":       many(tagEntries, 3, tagEntryData, 1, 'x'),
		"entries for protobuf to read":      append([]byte{8 * 15, 1}, many(tagEntries, 0)...),
		"entries with a tag of two bytes":   many(tagEntries|0x80, 0, 0),
		"entries behind fixed fields":       append([]byte{8*15 + 5, 1, 2, 3, 4, 8*15 + 1, 1, 2, 3, 4, 5, 6, 7, 8, 8*15 + 3, 8*15 + 4}, many(tagEntries, 0)...),
		"empty responses":                   many(tagResponses, 0),
		"entries in a response":             protowire.AppendBytes([]byte{tagResponses}, many(tagEntries, 0)),
		"members of a snapshot":             snapshot(protowire.AppendBytes([]byte{8*1 + 2}, protowire.AppendBytes([]byte{8*1 + 2}, many(1)))),
		"members of a snapshot, one by one": snapshot(protowire.AppendBytes([]byte{8*1 + 2}, many(8*1, 1))),
	}
	bodies := map[string][]byte{}
	for name, b := range raft {
		bodies[name] = payloadOf(KindRaft, b)
		bodies["chunk with "+name] = payloadOf(kindChunk, append(protowire.AppendBytes([]byte{chunkHeader, 1, 0, 0}, b), 0))
	}
	return bodies
}

// A message whose objects would take many times its size is refused before they
// are made.
func TestHostileMessageIsRefusedBeforeItTakesMemory(t *testing.T) {
	for name, payload := range hostile() {
		t.Run(name, func(t *testing.T) {
			for _, decode := range []func([]byte, func(Message)) (int, error){DecodeMessages, DecodeShared} {
				var err error
				took := allocated(func() { _, err = decode(payload, func(Message) {}) })
				require.ErrorIs(t, err, ErrMemory)
				require.ErrorContains(t, err, fmt.Sprint(maxObjectBytes))
				require.Less(t, took, uint64(64<<10))
			}
		})
	}
}

// appendOf is a MsgApp of so many entries of so many bytes.
func appendOf(entries, size int) Message {
	m := &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(3)), Index: new(uint64(1 << 20))}
	data := make([]byte, size)
	for i := range entries {
		m.Entries = append(m.Entries, &pb.Entry{Type: pb.EntryNormal.Enum(), Term: new(uint64(3)), Index: new(uint64(1<<20 + 1 + i)), Data: data})
	}
	return Message{Group: 1, From: 1, To: 2, Body: Raft{Message: m}}
}

// A message of as many entries as a sender puts in one passes, whatever their
// size, and takes about what was counted.
func TestLargestHonestMessagesPass(t *testing.T) {
	for _, c := range []struct{ entries, size int }{
		{MaxEntries, 0}, {MaxEntries, 1}, {MaxEntries, 100}, {10_000, 1000}, {100, 100 << 10}, {1, 16 << 20},
	} {
		t.Run(fmt.Sprintf("entries=%d/size=%d", c.entries, c.size), func(t *testing.T) {
			payload := encode(t, []Message{appendOf(c.entries, c.size)})[HeaderLen:]
			entries := 0
			var err error
			took := allocated(func() {
				_, err = DecodeMessages(payload, func(m Message) { entries = len(m.Body.(Raft).Entries) })
			})
			require.NoError(t, err)
			require.Equal(t, c.entries, entries)
			require.LessOrEqual(t, took, uint64(c.entries*(c.size+c.size/4+16)+maxObjectBytes), "the data, rounded up, and the objects")
		})
	}
}

// What is counted is what is taken, for whatever bytes protobuf reads.
func FuzzObjectBytes(f *testing.F) {
	for _, m := range samples() {
		if raft, ok := m.Body.(Raft); ok {
			b, err := proto.Marshal(raft.Message)
			require.NoError(f, err)
			f.Add(b)
		}
	}
	for _, b := range hostile() {
		f.Add(b[9:200])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &pb.Message{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		objects, entries := objectBytes(b)
		require.GreaterOrEqual(t, objects, leastObjects(m))
		require.Equal(t, len(m.Entries), entries)
	})
}

// leastObjects is what the objects in a message take at least.
func leastObjects(m *pb.Message) int {
	n := entryBytes * len(m.Entries)
	for _, r := range m.Responses {
		n += 200 + leastObjects(r)
	}
	c := m.GetSnapshot().GetMetadata().GetConfState()
	for _, ids := range [][]uint64{c.GetVoters(), c.GetLearners(), c.GetVotersOutgoing(), c.GetLearnersNext()} {
		n += 8 * len(ids)
	}
	return n
}

// BenchmarkDecode reads a message as a connection does. Those of 256 KiB and more
// are counted first.
func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct{ entries, size int }{{0, 0}, {1, 1 << 10}, {200, 1000}, {1, 1 << 20}, {1000, 1000}, {10_000, 100}} {
		b.Run(fmt.Sprintf("entries=%d/size=%d", c.entries, c.size), func(b *testing.B) {
			payload := encode(b, []Message{appendOf(c.entries, c.size)})[HeaderLen:]
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeMessages(payload, func(Message) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCount is the count alone.
func BenchmarkCount(b *testing.B) {
	for _, c := range []struct{ entries, size int }{{1, 1 << 20}, {1000, 1000}, {10_000, 100}, {MaxEntries, 1}} {
		b.Run(fmt.Sprintf("entries=%d/size=%d", c.entries, c.size), func(b *testing.B) {
			body, err := proto.Marshal(appendOf(c.entries, c.size).Body.(Raft).Message)
			require.NoError(b, err)
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				objectBytes(body)
			}
		})
	}
}
