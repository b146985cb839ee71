// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// delays count the durations of one kind of work, in buckets that grow by a fifth: those of the present
// window, and those of the window before. Several goroutines may add; one at a time reads.
//
// A sample costs an atomic addition, because each turn of each group of a node adds two.
type delays struct {
	windows [2][buckets]atomic.Uint32
	present atomic.Uint32 // index of the present window
	since   time.Duration // begin of the present window
}

// buckets reach from a microsecond to more than an hour.
const buckets = 4 * 31

// bucketOf returns the bucket of a duration: below 4 µs one for each microsecond, then four for each
// doubling.
func bucketOf(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	doublings := max(bits.Len64(us)-3, 0)
	return min(4*doublings+int(us>>doublings), buckets-1)
}

// least returns the shortest duration in a bucket.
func least(bucket int) time.Duration {
	if bucket < 8 {
		return time.Duration(bucket) * time.Microsecond
	}
	doublings := bucket/4 - 1
	return time.Duration(4+bucket%4) << doublings * time.Microsecond
}

// taken is what a duration in a bucket counts for.
func taken(bucket int) time.Duration { return max(least(bucket), time.Microsecond/2) }

// add counts a duration.
func (d *delays) add(took time.Duration) {
	d.windows[d.present.Load()&1][bucketOf(took)].Add(1)
}

// roll begins a new window if the present window has passed.
func (d *delays) roll(now, window time.Duration) {
	passed := now - d.since
	if passed < window {
		return
	}
	next := (d.present.Load() + 1) & 1
	clearWindow(&d.windows[next])
	if passed >= 2*window {
		clearWindow(&d.windows[next^1])
	}
	d.present.Store(next)
	d.since = now
}

func clearWindow(w *[buckets]atomic.Uint32) {
	for i := range w {
		w[i].Store(0)
	}
}

// figure returns the delay d such that a quarter of the time spent went into work of at least d, if that is
// four pieces of work or half a window; else the shortest duration: of so little work nothing bad is said. It is 0
// without any work.
func (d *delays) figure(window time.Duration) (figure time.Duration) {
	var counts [buckets]time.Duration
	var total time.Duration
	for i := range counts {
		counts[i] = time.Duration(d.windows[0][i].Load() + d.windows[1][i].Load())
		total += counts[i] * taken(i)
	}
	var count, spent time.Duration
	for i := buckets - 1; i >= 0; i-- {
		if counts[i] == 0 {
			continue
		}
		count += counts[i]
		spent += counts[i] * taken(i)
		figure = taken(i)
		if (count >= fewest || spent >= window/2) && spent*quarter >= total {
			break
		}
	}
	return figure
}
