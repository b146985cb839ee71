// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"fmt"
	"testing"

	"github.com/weftraft/weft/ecraft"
)

// levels runs f for each level and size.
func levels(b *testing.B, f func(b *testing.B, n, level int, p []byte)) {
	for _, n := range []int{3, 5, 7, 9} {
		for level := 1; level <= ecraft.Levels(n); level++ {
			for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
				b.Run(fmt.Sprintf("N=%d/level=%d/size=%dKiB", n, level, size>>10), func(b *testing.B) {
					p := payload(1, size)
					b.SetBytes(int64(size))
					b.ReportAllocs()
					f(b, n, level, p)
				})
			}
		}
	}
}

// sent is the header of an entry as a leader sends the entry at a level.
func sent(n, level int, p []byte) (*ecraft.Header, []int) {
	h, units := atLevel(n, level, p), make([]int, n-1)
	h.Spread(level, 0, units)
	h.Layout = h.Reduce(units)
	for slot, n := range units {
		h.Units[slot] = uint8(n)
	}
	return h, units
}

// BenchmarkEncode computes the parity units of all followers.
func BenchmarkEncode(b *testing.B) {
	levels(b, func(b *testing.B, n, level int, p []byte) {
		h, units := sent(n, level, p)
		for b.Loop() {
			c := ecraft.NewCodeword(h, p)
			c.Prepare(units)
			c.Free()
		}
	})
}

// BenchmarkDecode puts a payload together from units of the followers with the fewest data units.
// The units were checked on arrival, and the memory is used again. The time includes the payload's
// checksum.
func BenchmarkDecode(b *testing.B) {
	levels(b, func(b *testing.B, n, level int, p []byte) {
		h, strips := fewest(n, level, p)
		a := assemble(b, h, strips)
		defer a.Free()
		dst := make([]byte, 0, len(p)+h.D)
		for b.Loop() {
			if _, err := a.AppendPayload(dst); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkAssemble is BenchmarkDecode with the checks of the units.
func BenchmarkAssemble(b *testing.B) {
	levels(b, func(b *testing.B, n, level int, p []byte) {
		h, strips := fewest(n, level, p)
		dst := make([]byte, 0, len(p)+h.D)
		for b.Loop() {
			a := assemble(b, h, strips)
			if _, err := a.AppendPayload(dst); err != nil {
				b.Fatal(err)
			}
			a.Free()
		}
	})
}

// fewest returns the strips of the last slots, which suffice at a level.
func fewest(n, level int, p []byte) (*ecraft.Header, []ecraft.Strip) {
	h, _ := sent(n, level, p)
	c := ecraft.NewCodeword(h, p)
	defer c.Free()
	var strips []ecraft.Strip
	for slot := h.Slots - level; slot < h.Slots; slot++ {
		strips = append(strips, c.Strip(slot, 0, int(h.Units[slot])))
	}
	return h, strips
}

func assemble(tb testing.TB, h *ecraft.Header, strips []ecraft.Strip) *ecraft.Assembly {
	a := ecraft.NewAssembly(h)
	for _, s := range strips {
		if _, err := a.Add(s); err != nil {
			tb.Fatal(err)
		}
	}
	return a
}

// BenchmarkSeal makes the Data of all followers: parity, copies, checksums.
func BenchmarkSeal(b *testing.B) {
	levels(b, func(b *testing.B, n, level int, p []byte) {
		h, units := sent(n, level, p)
		dst := make([]byte, 0, len(p)+1000)
		for b.Loop() {
			c := ecraft.NewCodeword(h, p)
			c.Prepare(units)
			for _, to := range h.Members {
				ecraft.Seal(dst, h, to, 0, c, nil)
			}
			c.Free()
		}
	})
}

// BenchmarkSealOne makes the Data of one follower from computed parity.
func BenchmarkSealOne(b *testing.B) {
	levels(b, func(b *testing.B, n, level int, p []byte) {
		h, _ := sent(n, level, p)
		dst := make([]byte, 0, len(p)+1000)
		c := ecraft.NewCodeword(h, p)
		defer c.Free()
		for b.Loop() {
			ecraft.Seal(dst, h, uint64(n), 0, c, nil)
		}
	})
}

// BenchmarkParse takes apart the Data of a follower.
func BenchmarkParse(b *testing.B) {
	levels(b, func(b *testing.B, n, level int, p []byte) {
		h, _ := sent(n, level, p)
		c := ecraft.NewCodeword(h, p)
		defer c.Free()
		data := ecraft.Seal(nil, h, uint64(n), 0, c, nil)
		for b.Loop() {
			if _, err := ecraft.Parse(data, 0, uint64(n)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCopy is memcpy, for comparison.
func BenchmarkCopy(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%dKiB", size>>10), func(b *testing.B) {
			p := payload(1, size)
			dst := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				copy(dst, p)
			}
		})
	}
}
