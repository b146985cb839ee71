// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// Histogram counts latencies, to the microsecond up to 2 ms, and to a thousandth above. The zero
// value is empty.
type Histogram struct {
	counts []int64 // by cell
	total  int64
	sum    time.Duration
	max    time.Duration
}

// cellBits is the number of bits of a latency that a cell keeps, 11: half of the numbers of 11 bits
// begin with a 1, and so each power of 2 above the first has 1024 cells.
const (
	cellBits = 11
	half     = 1 << (cellBits - 1)
)

func cellOf(us uint64) int {
	shift := max(bits.Len64(us)-cellBits, 0)
	return shift*half + int(us>>shift)
}

// upTo returns the greatest number of microseconds in a cell.
func upTo(cell int) uint64 {
	shift := max(cell/half-1, 0)
	return uint64(cell-shift*half+1)<<shift - 1
}

// Record counts a latency; a negative one counts as none.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	cell := cellOf(uint64(d.Microseconds()))
	if missing := cell + 1 - len(h.counts); missing > 0 {
		h.counts = append(h.counts, make([]int64, missing)...)
	}
	h.counts[cell]++
	h.total++
	h.sum += d
	h.max = max(h.max, d)
}

// Merge adds all latencies of another histogram.
func (h *Histogram) Merge(o *Histogram) {
	if missing := len(o.counts) - len(h.counts); missing > 0 {
		h.counts = append(h.counts, make([]int64, missing)...)
	}
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

// Clone returns a copy.
func (h *Histogram) Clone() *Histogram {
	return &Histogram{slices.Clone(h.counts), h.total, h.sum, h.max}
}

// Count returns the number of latencies.
func (h *Histogram) Count() int64 { return h.total }

// Mean returns the mean, exactly; 0 if there are no latencies.
func (h *Histogram) Mean() time.Duration { return h.sum / time.Duration(max(h.total, 1)) }

// Quantile returns a latency that a share q of all latencies does not exceed, as [Quantile] does;
// 0 if there are none, and the greatest exactly for 1.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(int64(math.Ceil(q*float64(h.total))), 1)
	if rank >= h.total {
		return h.max
	}
	for cell, n := range h.counts {
		if rank -= n; rank <= 0 {
			return min(time.Duration(upTo(cell))*time.Microsecond, h.max)
		}
	}
	return h.max
}

// Millis returns a quantile in milliseconds.
func (h *Histogram) Millis(q float64) float64 { return h.Quantile(q).Seconds() * 1e3 }
