// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// Bytes of riders are counted apart from the bytes of the carrier's own entry.
func TestRidersAreCounted(t *testing.T) {
	payload := make([]byte, 6000)
	members, units := []uint64{2, 3, 4, 5}, []uint8{2, 2, 2, 2}
	header := func(kind ecraft.Kind, riders ...ecraft.Rider) *ecraft.Header {
		h := &ecraft.Header{Kind: kind, Encoder: 1, Riders: riders}
		if kind == ecraft.Coded {
			h.PayloadLen, h.PayloadCRC = len(payload), ecraft.Checksum(payload)
			h.Layout, h.Members, h.Units = ecraft.NewLayout(5, 4), members, units
		}
		return h
	}
	old := header(ecraft.Coded)
	rider := ecraft.Rider{ID: ecraft.ID{Term: 2, Index: 7}, Totals: []uint8{3, 3, 3, 3}}
	oldUnits := ecraft.NewCodeword(old, payload)
	send := func(h *ecraft.Header) (Kind, int, int, int) {
		var c *ecraft.Codeword
		if h.Kind == ecraft.Coded {
			c = ecraft.NewCodeword(h, payload)
		}
		var riders []*ecraft.Codeword
		if len(h.Riders) > 0 {
			riders = append(riders, oldUnits)
		}
		data := ecraft.Seal(nil, h, 3, 0, c, riders)
		m := &pb.Message{Type: pb.MsgApp.Enum(), To: new(uint64(3)), Entries: []*pb.Entry{{Data: data}}}
		k, size, riding := sizeOf(m)
		require.Equal(t, proto.Size(m), size)
		return k, size, riding, len(data)
	}

	k, _, riding, plain := send(old)
	require.Equal(t, appendKind, k)
	require.Zero(t, riding)
	_, _, riding, all := send(header(ecraft.Coded, rider))
	require.Equal(t, all-plain, riding)
	require.Greater(t, riding, 1000)
	_, _, riding, all = send(header(ecraft.Carrier, rider))
	require.Equal(t, all, riding)

	k, _, riding = sizeOf(&pb.Message{Type: raft.MsgUnits.Enum()})
	require.Equal(t, gossipKind, k)
	require.Zero(t, riding)
	k, _, _ = sizeOf(&pb.Message{Type: pb.MsgApp.Enum()})
	require.Equal(t, Control, k)
}
