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

// TestEnvelopesOfAnyPrefixAreDetected: envelopes of each kind and prefix are found, and
// the length of their prefix, as long as the header is whole.
func TestEnvelopesOfAnyPrefixAreDetected(t *testing.T) {
	for _, data := range examples(t)[:2] { // both with a prefix of one byte
		prefix, found := ecraft.Detect(data)
		require.True(t, found)
		require.Equal(t, 1, prefix)
	}
	for _, prefix := range []int{0, 1, 7, 8, 22, 1000, ecraft.MaxPrefix} {
		for kind, data := range map[string][]byte{
			"coded":   sealed(5000, prefix, 4),
			"whole":   sealedWhole(payload(9, 5000), prefix),
			"carrier": ecraft.Seal(nil, &ecraft.Header{Kind: ecraft.Carrier, Encoder: 1}, 2, prefix, nil, nil),
		} {
			got, found := ecraft.Detect(data)
			require.True(t, found, "%s, prefix %d", kind, prefix)
			require.Equal(t, prefix, got)
			h, body, err := ecraft.ParseHeader(data, prefix)
			require.NoError(t, err)
			require.NotNil(t, h)
			for at := range len(data) - len(body) { // every byte of the header counts
				bad := bytes.Clone(data)
				bad[at] ^= 4
				_, found = ecraft.Detect(bad)
				require.False(t, found, "%s, prefix %d, byte %d", kind, prefix, at)
			}
			_, found = ecraft.Detect(data[:len(data)-len(body)-1])
			require.False(t, found)
		}
	}
}

func sealed(size, prefix int, to uint64) []byte {
	p := payload(3, size)
	h := atLevel(5, 3, p)
	c := ecraft.NewCodeword(h, p)
	defer c.Free()
	return ecraft.Seal(nil, h, to, prefix, c, nil)
}

func sealedWhole(p []byte, prefix int) []byte {
	h := &ecraft.Header{Kind: ecraft.Whole, PayloadLen: len(p), PayloadCRC: ecraft.Checksum(p), Encoder: 1}
	c := ecraft.NewCodeword(h, p)
	defer c.Free()
	return ecraft.Seal(nil, h, 1, prefix, c, nil)
}

// TestPayloadsAreNotDetected checks payloads that are no envelopes: payloads that begin with the
// magic, that repeat the magic, or that have an envelope at a place where no prefix ends.
func TestPayloadsAreNotDetected(t *testing.T) {
	magic := sealed(100, 0, 2)[:8]
	rng := rand.New(rand.NewPCG(1, 1))
	payloads := [][]byte{nil, {}, magic, magic[:7], append(bytes.Clone(magic), payload(1, 100)...), bytes.Repeat(magic, 3000)}
	payloads = append(payloads, append([]byte("x"), sealed(5000, 0, 4)...), append(make([]byte, ecraft.MaxPrefix), sealed(500, 1, 4)...))
	payloads = append(payloads, sealed(5000, 1, 4)[1:])
	for range 1000 {
		data := make([]byte, rng.IntN(6000))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		for range 3 { // the magic and the right prefix, but no header
			if at := rng.IntN(len(data) + 1); at+20 < len(data) {
				feign(data, at, rng)
			}
		}
		payloads = append(payloads, data)
	}
	for _, p := range payloads {
		prefix, found := ecraft.Detect(p)
		require.False(t, found, "%x", p[:min(len(p), 100)])
		require.Zero(t, prefix)
	}
}

// feign makes a place look like the begin of a header.
func feign(data []byte, at int, rng *rand.Rand) {
	copy(data[at:], sealed(100, 0, 2)[:8])
	data[at+10], data[at+11] = byte(at), byte(at>>8)
	data[at+12], data[at+13], data[at+14], data[at+15] = byte(rng.Uint32()), byte(rng.IntN(8)), 0, 0
}

// TestEnvelopeBehindFeintsIsDetected: a client's bytes stand in the clear prefix, and may look like headers as often as
// they like. A leader that took the entry for a plain one would send names of it, and no member has the same bytes; a member
// without coding would apply it.
func TestEnvelopeBehindFeintsIsDetected(t *testing.T) {
	const prefix = 500
	p := payload(3, 5000)
	for n := range 20 {
		feign(p, 20*(n+1), rand.New(rand.NewPCG(1, 1)))
		h := atLevel(5, 3, p)
		c := ecraft.NewCodeword(h, p)
		_, found := ecraft.Detect(ecraft.Seal(nil, h, 4, prefix, c, nil))
		c.Free()
		require.True(t, found, "behind %d feints", n+1)
	}
}

func BenchmarkDetect(b *testing.B) {
	for name, data := range map[string][]byte{"100B": payload(1, 100), "4KiB": payload(1, 4096), "64KiB": payload(1, 1<<16)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, found := ecraft.Detect(data); found {
					b.Fatal("found")
				}
			}
		})
	}
}
