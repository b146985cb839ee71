// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"bytes"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Combined sums equal the sums of the bytes, and envelopes sealed with combined sums are the same.
func TestSum(t *testing.T) {
	if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
		require.NoError(t, f.Value.Set("1")) // the same each time, unless another is asked for
	}
	rapid.Check(t, func(t *rapid.T) {
		voters := rapid.IntRange(3, 9).Draw(t, "voters")
		layout := NewLayout(voters, voters-1)
		payload := rapid.SliceOfN(rapid.Byte(), 1, 700).Draw(t, "payload")
		if rapid.Bool().Draw(t, "long") {
			payload = bytes.Repeat(payload, 37)
		}
		h := &Header{Kind: Coded, PayloadLen: len(payload), Layout: layout, Encoder: 100, Units: make([]uint8, layout.Slots)}
		for s := range layout.Slots {
			h.Members = append(h.Members, uint64(s+1))
			h.Units[s] = uint8(rapid.IntRange(0, layout.D).Draw(t, "units"))
		}
		c := NewCodeword(h, payload)
		defer c.Free()
		h.PayloadCRC = c.Sum()
		require.Equal(t, Checksum(payload), h.PayloadCRC)
		c.Moved(bytes.Clone(payload))
		plain := NewCodeword(h, payload)
		defer plain.Free()
		for _, to := range append(h.Members, h.Encoder) {
			require.Equal(t, Seal(nil, h, to, 0, plain, nil), Seal(nil, h, to, 0, c, nil), "for %d", to)
		}
	})
	none := NewCodeword(&Header{Kind: Whole, PayloadLen: 3}, []byte("abc"))
	defer none.Free()
	require.Equal(t, Checksum([]byte("abc")), none.Sum())
}
