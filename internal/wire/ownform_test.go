// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// TestOwnForm encodes messages whose entries are in the sender's form: they
// arrive as what each receiver is to have, whatever the sizes, with plain
// entries, carriers' neighbours and unknown fields around them.
func TestOwnForm(t *testing.T) {
	for _, prefix := range []int{0, 16} {
		for _, size := range []int{17, 1000, referBytes, 3 * referBytes, 30*referBytes + 1} {
			payload := bytes.Repeat([]byte("payload and more of it"), size/22+1)[:size]
			layout := ecraft.NewLayout(5, 4)
			h := &ecraft.Header{
				Kind: ecraft.Coded, PayloadLen: size, PayloadCRC: ecraft.Checksum(payload), Layout: layout,
				Encoder: 1, Members: []uint64{2, 3, 4, 5}, Units: []uint8{2, 2, uint8(layout.D), 0},
			}
			word := ecraft.NewCodeword(h, payload)
			own := ecraft.Seal(nil, h, 1, prefix, word, nil)
			for to := uint64(2); to <= 6; to++ {
				want := ecraft.Seal(nil, h, to, prefix, word, nil)
				body := Raft{Message: &pb.Message{
					Type: pb.MsgApp.Enum(), From: new(uint64(1)), To: new(to), Term: new(uint64(3)), Index: new(uint64(6)),
					LogTerm: new(uint64(2)), Commit: new(uint64(5)),
				}, OwnForm: true, ClearPrefix: prefix, Saves: len(own) - len(want)}
				for i, data := range [][]byte{nil, payload, own, []byte("small"), own} {
					body.Entries = append(body.Entries, &pb.Entry{Type: pb.EntryNormal.Enum(), Term: new(uint64(3)), Index: new(uint64(7 + i)), Data: data})
				}
				unknown := protowire.AppendVarint(protowire.AppendTag(nil, 100, protowire.VarintType), 7)
				body.Entries[2].ProtoReflect().SetUnknown(unknown)
				body.ProtoReflect().SetUnknown(unknown)
				body.Saves *= 2

				var frame Frame
				frame.Reset()
				for range 2 { // a frame is used again
					m := Message{Group: 1, From: 1, To: to, Body: body}
					frame.AppendMessage(m)
					require.LessOrEqual(t, frame.Len()-HeaderLen, m.Size())
					var b bytes.Buffer
					_, err := frame.WriteMessages(&b)
					require.NoError(t, err)
					frame.Reset()
					raw, err := ReadFrame(&b, FrameMessages, MaxFrame, nil)
					require.NoError(t, err, "the checksum is that of what was written")
					_, err = DecodeMessages(raw, func(m Message) {
						got := m.Body.(Raft)
						require.Equal(t, unknown, []byte(got.ProtoReflect().GetUnknown()))
						require.Equal(t, unknown, []byte(got.Entries[2].ProtoReflect().GetUnknown()))
						for i, data := range [][]byte{nil, payload, want, []byte("small"), want} {
							require.True(t, bytes.Equal(data, got.Entries[i].Data), "entry %d for %d", i, to)
							require.Equal(t, uint64(7+i), got.Entries[i].GetIndex())
						}
					})
					require.NoError(t, err)
				}
			}
			word.Free()
		}
	}
}
