// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// pieces is a sink that sums as a frame does.
type pieces struct {
	bytes []byte
	crc   uint32
}

func (p *pieces) Copy(b []byte) {
	p.bytes = append(p.bytes, b...)
	p.crc = ecraft.Checksum(p.bytes)
}

func (p *pieces) Refer(b []byte, sum ecraft.PieceSum) {
	p.bytes = append(p.bytes, b...)
	p.crc = sum.After(p.crc)
}

// TestOutgoing makes every member's form from the form of every member with the payload: the same
// bytes as Seal makes, with the right sums.
func TestOutgoing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	made := 0
	for range 400 {
		voters := 3 + rng.IntN(7)
		layout := ecraft.NewLayout(voters, voters-1+rng.IntN(2))
		p := payload(rng.Uint64(), 1+rng.IntN(5000))
		h := &ecraft.Header{
			Kind: ecraft.Coded, PayloadLen: len(p), PayloadCRC: ecraft.Checksum(p),
			Layout: layout, Encoder: 100, Units: make([]uint8, layout.Slots),
		}
		for s := range layout.Slots {
			h.Members = append(h.Members, uint64(s+1))
			h.Units[s] = uint8(rng.IntN(layout.D + 1))
		}
		prefix := rng.IntN(3) * 10
		c := ecraft.NewCodeword(h, p)
		nodes := append([]uint64{h.Encoder, 200}, h.Members...) // 200 has no slot
		for _, from := range nodes {
			own := ecraft.Seal(nil, h, from, prefix, c, nil)
			for _, to := range nodes {
				want := ecraft.Seal(nil, h, to, prefix, c, nil)
				o := ecraft.NewOutgoing(own, prefix, from, to)
				require.Equal(t, h.LeavesLate(from, to), o != nil)
				if o == nil {
					if h.Whole(from) {
						require.Equal(t, want, own)
					}
					continue
				}
				made++
				var p pieces
				o.WriteTo(&p)
				require.Equal(t, want, p.bytes)
				require.Equal(t, ecraft.Checksum(want), p.crc)
				require.Equal(t, len(want), o.Len())
				require.Equal(t, want, o.Append(nil), "once more")
				o.Free()
			}
		}
		c.Free()
	}
	require.Positive(t, made)
}

// TestOutgoingOfNothing checks that data that is no envelope, or a bad envelope, leaves unchanged.
func TestOutgoingOfNothing(t *testing.T) {
	p := payload(1, 600)
	h, _ := sent(5, 3, p)
	c := ecraft.NewCodeword(h, p)
	defer c.Free()
	own := ecraft.Seal(nil, h, h.Encoder, 0, c, nil)
	for at := range own[:100] {
		bad := bytes.Clone(own)
		bad[at] ^= 1
		if o := ecraft.NewOutgoing(bad, 0, h.Encoder, 2); o != nil {
			require.Greater(t, at, 70, "a header's byte %d is wrong", at) // the payload's are not looked at
			o.Free()
		}
	}
	for n := range own {
		require.Nil(t, ecraft.NewOutgoing(own[:n], 0, h.Encoder, 2))
	}
	require.Nil(t, ecraft.NewOutgoing(p, 0, h.Encoder, 2))
	require.Nil(t, ecraft.NewOutgoing(own, 10, h.Encoder, 2))
}
