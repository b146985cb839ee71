// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogramIsExactToAThousandth(t *testing.T) {
	var h, other Histogram
	require.Zero(t, h.Quantile(0.5))
	rng := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for i := range 20_000 {
		d := time.Duration(rng.ExpFloat64() * float64(time.Second))
		all = append(all, d)
		if i%2 == 0 {
			h.Record(d)
		} else {
			other.Record(d)
		}
	}
	before := h.Clone()
	h.Merge(&other)
	require.EqualValues(t, len(all), h.Count())
	require.EqualValues(t, len(all)/2, before.Count())
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.9999} {
		want := Quantile(all, q)
		require.InDelta(t, want, h.Quantile(q), float64(max(want/1000, time.Microsecond)), "quantile %v", q)
	}
	require.Equal(t, Quantile(all, 1), h.Quantile(1))
	last := -1
	for us := uint64(0); us < 1<<14; us++ {
		cell := cellOf(us)
		require.True(t, cell == last || cell == last+1, "%d µs", us)
		require.GreaterOrEqual(t, upTo(cell), us)
		last = cell
	}
}

func TestChangedValueIsFound(t *testing.T) {
	for _, size := range []int{0, 1, 8, 9, 16, 100, 4096} {
		a, b := make([]byte, size), make([]byte, size)
		Value("k", 1, a)
		Value("k", 2, b)
		require.NoError(t, CheckValue("k", a, size))
		require.Error(t, CheckValue("k", a, size+1))
		if size <= stampBytes {
			continue
		}
		require.Error(t, CheckValue("other", a, size))
		require.Error(t, CheckValue("k", append(bytes.Clone(a[:size-1]), a[size-1]^1), size))
		for at := 0; at+8 <= size; at += 8 {
			require.NotEqual(t, a[at:at+8], b[at:at+8], "values differ everywhere")
		}
	}
}

func TestClosedLoopWaitsForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		l := Load{Clients: 2, Duration: time.Second, Do: func(_ context.Context, c *Call) error {
			time.Sleep(100 * time.Millisecond)
			if c.Kind = c.Client; c.Number == 3 {
				return failed
			}
			return nil
		}}
		r, err := l.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 20, r.Calls, "11 of each client, the last of which begins at the end, and one failed")
		require.EqualValues(t, 2, r.Failed)
		require.ErrorIs(t, r.Err, failed)
		require.EqualValues(t, 10, r.Kind(1).Calls)
		require.Zero(t, r.Kind(7).Calls)
		require.Equal(t, 1100*time.Millisecond, r.Elapsed)
		require.InDelta(t, 100, r.Latency.Millis(0.5), 0.1)
		require.InDelta(t, 20/1.1, r.PerSecond(), 1e-9)
	})
}

func TestOpenLoopCountsFromWhenACallWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, *Call) error { time.Sleep(100 * time.Millisecond); return nil }
		r, err := (&Load{Clients: 1, Rate: 20, Calls: 10, Do: slow}).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 100*time.Millisecond+9*50*time.Millisecond, r.Latency.Quantile(1), "one client falls behind")
		r, err = (&Load{Rate: 20, Calls: 10, Do: slow}).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 100*time.Millisecond, r.Latency.Quantile(1), "a client for each call does not")
	})
}

func TestBoundsOfALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		noted := 0
		l := Load{
			Clients: 2, Warm: time.Second, Duration: time.Second, Calls: 5, Least: 20,
			Do:   func(context.Context, *Call) error { time.Sleep(100 * time.Millisecond); return nil },
			Note: func(*Call) { mu.Lock(); defer mu.Unlock(); noted++ },
		}
		r, err := l.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 20, r.Calls, "each client makes 20 calls, and the first 10 warm up")
		require.Equal(t, 20, noted)

		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		l = Load{Clients: 1, Do: l.Do}
		r, err = l.Run(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, r.Calls, "the call that is cut off does not count")
		ctx, cancel = context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		l.Finish = true
		r, err = l.Run(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 3, r.Calls, "the call came to its end")

		_, err = (&Load{Clients: 1, Calls: 1, Timeout: time.Second, Do: func(ctx context.Context, _ *Call) error {
			<-ctx.Done()
			return ctx.Err()
		}}).Run(t.Context())
		require.ErrorIs(t, err, errNoAnswer)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestNextEndsALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Load{
			Clients: 3, Retreat: time.Second, Rest: 10 * time.Millisecond,
			Next: func(_ context.Context, n int) (time.Time, bool) { return time.Now(), n < 7 },
			Do: func(_ context.Context, c *Call) error {
				if c.All == 0 {
					return errors.New("once")
				}
				return nil
			},
		}
		r, err := l.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, []int64{6, 1}, []int64{r.Calls, r.Failed})
		require.Equal(t, time.Second, r.Elapsed, "the client of the failed call retreats")
	})
}

// A gap begins at the kill, or at the last answer before the longest silence.
func TestLongestGap(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	gap := func(ms ...int) time.Duration {
		var a Acks
		for _, m := range ms {
			a.Note(&Call{Done: at(m)})
		}
		a.Note(&Call{Done: at(500), Err: errors.New("no answer")})
		require.Error(t, a.Err())
		return a.LongestGap(at(100), at(1000))
	}
	require.Equal(t, 600*time.Millisecond, gap(10, 90, 700, 710, 900))
	require.Equal(t, 590*time.Millisecond, gap(710, 10, 110, 700, 900), "answers that were under way, in any order")
	require.Equal(t, 900*time.Millisecond, gap(10, 90), "no answer at all")
	require.Equal(t, 701*time.Millisecond, gap(300, 1001, 5000), "what begins after the second instant does not count")
	require.Equal(t, 1100*time.Millisecond, gap(10, 1200), "a gap that began before the second instant counts to its end")
}
