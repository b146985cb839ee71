// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"sync/atomic"
	"time"
)

// numBuckets is the number of buckets of a [Histogram].
const numBuckets = 17

// bounds are the upper bounds of all buckets but the last, in 1-2-5 steps. The last
// bucket has what took longer.
var bounds = [numBuckets - 1]time.Duration{
	100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

// Counts are the numbers of calls in the buckets.
type Counts [numBuckets]uint64

// Histogram counts calls by how long they took. Its methods may be called from several
// goroutines, and allocate nothing.
type Histogram struct{ counts [numBuckets]atomic.Uint64 }

// Observe counts a call.
func (h *Histogram) Observe(took time.Duration) {
	for i, b := range bounds {
		if took <= b {
			h.counts[i].Add(1)
			return
		}
	}
	h.counts[numBuckets-1].Add(1)
}

// Load returns the counts.
func (h *Histogram) Load() (c Counts) {
	for i := range c {
		c[i] = h.counts[i].Load()
	}
	return c
}

// sum is the number of calls.
func (c Counts) sum() (n uint64) {
	for _, x := range c {
		n += x
	}
	return n
}

// add adds other counts.
func (c *Counts) add(o Counts) {
	for i, x := range o {
		c[i] += x
	}
}

// since returns what was counted after before, in the same process.
func (c Counts) since(before Counts) Counts {
	for i, x := range before {
		c[i] = growth(x, c[i])
	}
	return c
}

// growth is the increase of a counter; 0 if it fell, as no counter should.
func growth(before, now uint64) uint64 { return now - min(before, now) }

// quantileMs returns, in milliseconds, the upper bound of the bucket that has the
// quantile q, 0 to 1; nil without calls. A quantile beyond
// the last bucket is reported as the last bound.
func (c Counts) quantileMs(q float64) *float64 {
	all := c.sum()
	if all == 0 {
		return nil
	}
	rank, seen := uint64(q*float64(all-1)), uint64(0)
	for i, x := range c {
		if seen += x; seen > rank {
			ms := milliseconds(bounds[min(i, len(bounds)-1)])
			return &ms
		}
	}
	return nil // not reached: seen ends as all, which is above rank
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
