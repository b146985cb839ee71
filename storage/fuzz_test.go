// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"hash/crc32"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	pb "go.etcd.io/raft/v3/raftpb"
)

func sampleRecord() *record {
	return &record{
		installed: pb.EnsureSnapshot(&pb.Snapshot{Data: []byte("x")}),
		first:     7, rows: []row{{term: 1, size: 2, crc: 3}, {term: 4, size: 5, crc: 6}},
		hardState: &pb.HardState{Term: new(uint64(3))},
		recorded:  pb.EnsureSnapshot(nil),
		base:      &position{term: 2, index: 6},
	}
}

// FuzzDecodeRecord: any bytes decode to an error, or to a record that encodes
// to something that decodes to the same.
func FuzzDecodeRecord(f *testing.F) {
	for _, r := range []*record{{}, sampleRecord(), {moved: true, first: 1, rows: []row{{size: 1}}}} {
		b, err := r.appendMeta(nil)
		require.NoError(f, err)
		f.Add(b, uint32(r.bodyLen()))
		f.Add(b[:len(b)/2], uint32(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, bodyLen uint32) {
		r, err := decodeRecord(b, bodyLen)
		if err != nil {
			require.ErrorIs(t, err, errBadRecord)
			return
		}
		again, err := r.appendMeta(nil)
		require.NoError(t, err)
		r2, err := decodeRecord(again, bodyLen)
		require.NoError(t, err)
		requireSameRecord(t, r, r2)
	})
}

func requireSameRecord(t require.TestingT, want, got *record) {
	require.Equal(t, want.rows, got.rows)
	require.Equal(t, [2]any{want.first, want.moved}, [2]any{got.first, got.moved})
	require.Equal(t, want.base, got.base)
	require.True(t, proto.Equal(want.installed, got.installed))
	require.True(t, proto.Equal(want.hardState, got.hardState))
	require.True(t, proto.Equal(want.recorded, got.recorded))
}

// FuzzOpen: any bytes as the newest segment, behind a good first frame or not,
// are an error or an empty tail; never a panic, never data.
func FuzzOpen(f *testing.F) {
	sum := newChecksum(0)
	meta, err := sampleRecord().appendMeta(nil)
	require.NoError(f, err)
	f.Add([]byte("WLF1"), true)
	f.Add(appendFrameHead(nil, sum, frameHeader{segment: 1, seq: 2, kind: frameWrite, bodyLen: 7}, meta), true)
	f.Add(appendFrameHead(nil, sum, frameHeader{segment: 1, seq: 3, durable: 9, kind: frameMark}, nil), false)
	f.Add(appendFrameHead(nil, sum, frameHeader{segment: 1, seq: 2, kind: 77}, nil), true)
	f.Add(appendFrameHead(nil, sum, frameHeader{segment: 1, seq: 2, kind: framePurged}, []byte("short")), true)
	f.Add(appendFrameHead(nil, sum, frameHeader{segment: 1, seq: 1, kind: frameBegin}, []byte("short")), false)
	f.Fuzz(func(t *testing.T, b []byte, good bool) {
		opts := Options{Identity: Identity{Cluster: 1, Node: 1}, FS: vfs.NewMem(), Manual: true}
		d, err := openDirectory("d", opts)
		require.NoError(t, err)
		var file []byte
		if good {
			file = appendFrameHead(file, d.sum, frameHeader{segment: 1, seq: 1, kind: frameBegin}, beginMeta{id: opts.Identity, first: 1}.append(nil))
		}
		// Checksums as the directory has them, so that lengths and kinds count.
		if h, err := parseFrameHeader(b); err == nil && headerLen+int(h.metaLen) <= len(b) {
			b = append(appendFrameHead(nil, d.sum, h, b[headerLen:headerLen+int(h.metaLen)]), b[headerLen+int(h.metaLen):]...)
		}
		seg, _, _, err := d.create(1)
		require.NoError(t, err)
		_, err = seg.WriteAt(append(file, b...), 0)
		require.NoError(t, errors.Join(err, seg.Close(), d.close()))
		e, err := Open("d", opts)
		if err != nil {
			require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion) || errors.Is(err, ErrIdentity), "%v", err)
			return
		}
		for _, id := range e.Groups() {
			g, err := e.Group(id)
			require.NoError(t, err)
			first, err := g.FirstIndex()
			require.NoError(t, err)
			last, err := g.LastIndex()
			require.NoError(t, err)
			if first <= last {
				_, _ = g.Entries(first, last+1, 1<<20) // an error is fine: a sum can fit what is no entry
			}
		}
		require.NoError(t, e.Close())
	})
}

// TestNumberedFrames: a valid frame that is not the next one is not taken.
func TestNumberedFrames(t *testing.T) {
	for seq, want := range map[uint64]int{1: 0, 2: 1, 3: 0} {
		opts := Options{Identity: Identity{Cluster: 1, Node: 1}, FS: vfs.NewMem(), Manual: true}
		d, err := openDirectory("d", opts)
		require.NoError(t, err)
		meta, err := (&record{hardState: &pb.HardState{Term: new(uint64(3))}}).appendMeta(nil)
		require.NoError(t, err)
		b := appendFrameHead(nil, d.sum, frameHeader{segment: 1, seq: 1, kind: frameBegin}, beginMeta{id: opts.Identity, first: 1}.append(nil))
		b = appendFrameHead(b, d.sum, frameHeader{segment: 1, seq: seq, group: 4, kind: frameWrite}, meta)
		f, _, _, err := d.create(1)
		require.NoError(t, err)
		_, err = f.WriteAt(b, 0)
		require.NoError(t, errors.Join(err, f.Close(), d.close()))
		e, err := Open("d", opts)
		require.NoError(t, err)
		require.Len(t, e.Groups(), want, "frame number %d", seq)
		require.NoError(t, e.Close())
	}
}

// TestRecordRoundTrip: what is encoded is decoded, and a header that differs in
// one bit is refused.
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &record{first: rapid.Uint64Range(1, 1<<40).Draw(t, "first"), moved: rapid.Bool().Draw(t, "moved")}
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			r.rows = append(r.rows, row{term: rapid.Uint64().Draw(t, "term"), size: rapid.Uint32Range(0, 1000).Draw(t, "size"), crc: rapid.Uint32().Draw(t, "crc")})
		}
		if len(r.rows) == 0 {
			r.first, r.moved = 0, false
		}
		if rapid.Bool().Draw(t, "hs") {
			r.hardState = &pb.HardState{Term: new(rapid.Uint64().Draw(t, "t")), Vote: new(rapid.Uint64().Draw(t, "v"))}
		}
		if rapid.Bool().Draw(t, "base") {
			r.base = &position{term: rapid.Uint64().Draw(t, "bt"), index: rapid.Uint64().Draw(t, "bi")}
		}
		meta, err := r.appendMeta(nil)
		require.NoError(t, err)
		sum := newChecksum(rapid.Uint64().Draw(t, "salt"))
		h := frameHeader{segment: 3, seq: 4, durable: 2, group: 9, metaLen: uint32(len(meta)), bodyLen: uint32(r.bodyLen()), kind: frameWrite}
		b := appendFrameHead(nil, sum, h, meta)
		got, err := parseFrameHeader(b)
		require.NoError(t, err)
		require.Equal(t, h, got)
		require.NoError(t, checkFrameHead(sum, b[:headerLen], b[headerLen:]))
		again, err := decodeRecord(b[headerLen:], h.bodyLen)
		require.NoError(t, err)
		requireSameRecord(t, r, again)

		bit := rapid.IntRange(32, len(b)*8-1).Draw(t, "bit")
		b[bit/8] ^= 1 << (bit % 8)
		require.ErrorIs(t, checkFrameHead(sum, b[:headerLen], b[headerLen:]), errNoFrame)
	})
}

// TestEntryEncoding: head and data together are an ordinary encoding of the
// entry, of the size that Raft counts, with unknown fields kept.
func TestEntryEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &pb.Entry{}
		if rapid.Bool().Draw(t, "term") {
			e.Term = new(rapid.Uint64().Draw(t, "t"))
		}
		if rapid.Bool().Draw(t, "index") {
			e.Index = new(rapid.Uint64().Draw(t, "i"))
		}
		if rapid.Bool().Draw(t, "type") {
			e.Type = pb.EntryType(rapid.Int32Range(-1, 2).Draw(t, "ty")).Enum()
		}
		if rapid.Bool().Draw(t, "data") {
			e.Data = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "d")
		}
		if rapid.Bool().Draw(t, "unknown") {
			e.ProtoReflect().SetUnknown([]byte{0x9a, 0x06, 2, 'h', 'i'}) // field 99
		}
		head := appendEntryHead(nil, e)
		r := entryRow(e, head)
		whole := append(head, e.Data...)
		require.Equal(t, proto.Size(e), int(r.size))
		require.Len(t, whole, int(r.size))
		require.Equal(t, crc32.Checksum(whole, castagnoli), r.crc)
		var got pb.Entry
		require.NoError(t, proto.Unmarshal(whole, &got))
		require.True(t, proto.Equal(e, &got))
		require.Equal(t, e.Data == nil, got.Data == nil)
	})
}

// TestSpans compares the pieces of a log with a map.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sp spans
		model := map[uint64]uint64{}
		for step := range uint64(rapid.IntRange(1, 20).Draw(t, "steps")) {
			at := rapid.Uint64Range(1, 40).Draw(t, "at")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				sp.cutFrom(at)
				for i := range model {
					if i >= at {
						delete(model, i)
					}
				}
			case 1:
				sp.cutTo(at)
				for i := range model {
					if i <= at {
						delete(model, i)
					}
				}
			default:
				n := rapid.Uint64Range(1, 10).Draw(t, "n")
				slots := make([]slot, n)
				for i := range slots {
					slots[i].term = step
					model[at+uint64(i)] = step
				}
				sp.put(at, slots)
			}
			got, end := map[uint64]uint64{}, uint64(0)
			for _, s := range sp {
				require.Greater(t, s.first, end) // in order, and neighbours joined
				for i := range s.slots {
					got[s.first+uint64(i)] = s.slots[i].term
				}
				end = s.end()
			}
			require.Equal(t, model, got)
		}
	})
}

// TestLongLogIsNotCopiedForAPiece: while a segment is purged, a crash leaves entries in it and, piece by
// piece, behind it. A log of ten million entries is 400 MB, which must not be copied for each piece, nor where
// a leader has replaced the end.
func TestLongLogIsNotCopiedForAPiece(t *testing.T) {
	var sp spans
	sp.put(1, make([]slot, 1000))
	at := &sp[0].slots[0]
	for i := range uint64(50) {
		sp.put(101+10*i, []slot{{term: i}, {term: i}})
	}
	sp.cutFrom(900)
	sp.put(900, []slot{{term: 7}})
	require.Len(t, sp, 1)
	require.Same(t, at, &sp[0].slots[0])
	require.EqualValues(t, 49, sp[0].slots[591].term)
	require.EqualValues(t, 900, len(sp[0].slots))
}
