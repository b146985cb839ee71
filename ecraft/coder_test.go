// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCoder multiplies random matrices of all shapes with shards of lengths near those of blocks
// and pieces, and compares with a plain loop.
func TestCoder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lengths := []int{1, 2, 63, 64, 65, 127, 128, 200, piece - 1, piece, piece + 1, piece + 63, piece + 64, 2*piece + 65}
	for in := 1; in <= MaxD; in++ {
		for _, out := range []int{1, 2, 5, 6, 10, 11, 12, 21, 40} {
			n := lengths[rng.IntN(len(lengths)-5*min(out/12, 1))] // short for many rows
			rows, shards := make([][]byte, out), make([][]byte, in+out)
			for i := range rows {
				rows[i] = make([]byte, in)
				for j := range rows[i] {
					rows[i][j] = byte(rng.IntN(256))
				}
			}
			for i := range shards {
				shards[i] = bytes.Repeat([]byte{byte(rng.IntN(256)), byte(i)}, n)[:n]
			}
			want := make([][]byte, out)
			for i, row := range rows {
				want[i] = make([]byte, n)
				for j, factor := range row {
					for at, b := range shards[j] {
						want[i][at] ^= mul(factor, b)
					}
				}
			}
			c, err := newCoder(rows)
			require.NoError(t, err)
			require.NoError(t, c.code(shards))
			for i := range want {
				require.True(t, bytes.Equal(want[i], shards[in+i]), "%d to %d shards of %d bytes: output %d", in, out, n, i)
			}
		}
	}
}

// TestCodersAreBounded makes more coders than are kept.
func TestCodersAreBounded(t *testing.T) {
	for r := MaxD; r < MaxUnits; r++ {
		for other := r + 1; other < min(r+4, MaxUnits); other++ {
			var rows Set
			rows.Add(r)
			rows.Add(other)
			c, err := encoderFor(3, rows)
			require.NoError(t, err)
			again, err := encoderFor(3, rows)
			require.NoError(t, err)
			require.Same(t, c, again)
		}
	}
	require.LessOrEqual(t, len(coders.made), maxCoders)
}

// TestBuffers checks that a buffer has at least the requested size, and at most a quarter more.
func TestBuffers(t *testing.T) {
	for size := 0; size < 1<<24; size += 1 + size/100 {
		b := newBuffer(size)
		require.GreaterOrEqual(t, len(b.bytes), size)
		require.LessOrEqual(t, len(b.bytes), max(256, size+size/4+1), "%d", size)
		b.free()
	}
}

// TestCodewordMemory counts the memory of a codeword for parity, and checks that each row is
// computed once.
func TestCodewordMemory(t *testing.T) {
	p := bytes.Repeat([]byte("payload"), 6000)
	h := &Header{
		Kind: Coded, PayloadLen: len(p), PayloadCRC: Checksum(p), Layout: NewLayout(5, 4), Encoder: 1,
		Members: []uint64{2, 3, 4, 5}, Units: []uint8{2, 2, 2, 2},
	}
	c := NewCodeword(h, p)
	require.Equal(t, h, c.Header())
	require.Equal(t, p, c.Payload())
	require.Zero(t, c.Size())
	c.Prepare([]int{2, 2, 2, 2})
	size := c.Size()
	require.GreaterOrEqual(t, size, 2*h.UnitLen())
	require.LessOrEqual(t, size, 4*h.UnitLen()) // two rows, and the padded end
	before := fmt.Sprintf("%p", c.parity[0])
	c.Prepare([]int{2, 2, 2, 2})
	c.Strip(2, 0, 2)
	require.Equal(t, size, c.Size())
	require.Equal(t, before, fmt.Sprintf("%p", c.parity[0]))
	c.Strip(2, 0, 3)
	require.Greater(t, c.Size(), size)
	c.Free()
}
