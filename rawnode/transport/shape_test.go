// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/shaping"
	"github.com/weftraft/weft/internal/wire"
)

// arrivals notes what is written, and when.
type arrivals struct {
	start time.Time
	data  bytes.Buffer
	first time.Duration
	last  time.Duration
	err   error
}

func (a *arrivals) Write(p []byte) (int, error) {
	if a.data.Len() == 0 {
		a.first = time.Since(a.start)
	}
	a.last = time.Since(a.start)
	a.data.Write(p)
	return len(p), a.err
}

// shaped writes data through links of one shaper, in virtual time.
func shaped(t *testing.T, shape shaping.Shape, data ...[]byte) (*shaper, []*arrivals) {
	s := &shaper{shape: shape, rng: rand.New(rand.NewPCG(1, 2))}
	var all []*arrivals
	for _, d := range data {
		a := &arrivals{start: time.Now()}
		all = append(all, a)
		out := shapedOn(t.Context(), s, a)
		go func() {
			_, err := out.write(net.Buffers{d[:len(d)/3], d[len(d)/3:]})
			if !errors.Is(err, errClosed) && err != nil {
				t.Error(err)
			}
		}()
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	return s, all
}

func shapedOn(ctx context.Context, s *shaper, a *arrivals) *shapedOutput {
	c, _ := net.Pipe()
	return &shapedOutput{slow: a, conn: c, ctx: ctx, shaper: s, timeout: time.Second, spawn: func(f func()) { go f() }}
}

func TestShape(t *testing.T) {
	data := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(data) //nolint:errcheck // it never fails
	for name, c := range map[string]struct {
		shape       shaping.Shape
		first, last time.Duration
	}{
		"delay":         {shaping.Shape{Delay: 30 * time.Millisecond}, 30 * time.Millisecond, 30 * time.Millisecond},
		"rate":          {shaping.Shape{BytesPerSecond: 1 << 20}, 16 * time.Millisecond, time.Second},
		"rate, small":   {shaping.Shape{BytesPerSecond: 1 << 10, BufferBytes: 1}, 50 * time.Millisecond, 1024 * time.Second},
		"both":          {shaping.Shape{BytesPerSecond: 1 << 20, Delay: 200 * time.Millisecond}, 216 * time.Millisecond, 1200 * time.Millisecond},
		"a long delay":  {shaping.Shape{Delay: time.Minute}, time.Minute, time.Minute},
		"and with both": {shaping.Shape{BytesPerSecond: 1 << 30, Delay: 50 * time.Millisecond, Jitter: 50 * time.Millisecond}, 75 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, c.shape.Validate())
				_, a := shaped(t, c.shape, data)
				require.True(t, bytes.Equal(data, a[0].data.Bytes()), "all bytes, in order")
				slack := c.shape.Jitter/2 + 2*time.Millisecond
				require.InDelta(t, c.first, a[0].first, float64(slack))
				require.InDelta(t, c.last, a[0].last, float64(slack))
			})
		})
	}
}

// What is urgent waits neither for the link nor for the card, and all together is
// no faster for it.
func TestUrgentFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, shape := range []shaping.Shape{{}, {BytesPerSecond: 1 << 20}} {
			s := &shaper{shape: shape, card: &card{bytesPerSecond: 1 << 20}}
			write := func(urgent bool, bytes int) *arrivals {
				a := &arrivals{start: time.Now()}
				out := shapedOn(t.Context(), s, a)
				out.urgent = urgent
				go func() {
					_, err := out.write(net.Buffers{make([]byte, bytes)})
					if err != nil {
						t.Error(err)
					}
				}()
				return a
			}
			bulk := []*arrivals{write(false, 512<<10), write(false, 512<<10)}
			time.Sleep(200 * time.Millisecond)
			urgent := write(true, 8<<10)
			time.Sleep(time.Hour)
			synctest.Wait()
			require.LessOrEqual(t, urgent.last, time.Second/128+time.Millisecond)
			require.InDelta(t, time.Second+time.Second/128, max(bulk[0].last, bulk[1].last), float64(time.Millisecond))
		}
	})
}

// Two connections to a peer share its link, and each gets its part.
func TestShapeIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large, small := make([]byte, 1<<20), make([]byte, 64<<10)
		_, a := shaped(t, shaping.Shape{BytesPerSecond: 1 << 20, BufferBytes: 64 << 10}, large, small)
		require.InDelta(t, time.Second+time.Second/16, a[0].last, float64(2*time.Millisecond))
		require.Less(t, a[1].last, 200*time.Millisecond, "the small one does not wait for all of the large one")
	})
}

// Links to two peers share the node's card, and a slower link stays slower.
func TestEgressIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &card{bytesPerSecond: 1 << 20}
		var all []*arrivals
		half := shaping.Shape{BufferBytes: 64 << 10} // a larger buffer would let the first of them have the card at once
		for _, shape := range []shaping.Shape{half, half, {BytesPerSecond: 64 << 10}} {
			s, a := &shaper{shape: shape, card: shared}, &arrivals{start: time.Now()}
			all = append(all, a)
			out := shapedOn(t.Context(), s, a)
			go func() {
				_, err := out.write(net.Buffers{make([]byte, 512<<10)})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, a := range all[:2] {
			require.InDelta(t, time.Second, a.last, float64(200*time.Millisecond), "half of the card each, and a bit for the slow link")
		}
		require.InDelta(t, 8*time.Second, all[2].last, float64(time.Second))
	})
}

// What waits behind a bound on the bytes has not left; what is on its way has.
func TestUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := shapedOn(t.Context(), &shaper{shape: shaping.Shape{Delay: time.Second, BytesPerSecond: 100_000}}, &arrivals{start: time.Now()})
		require.Zero(t, slow.unsent())
		_, err := slow.write(net.Buffers{make([]byte, 100_000)})
		require.NoError(t, err)
		synctest.Wait()
		require.InDelta(t, 100_000, slow.unsent(), 10_000)
		time.Sleep(500 * time.Millisecond)
		require.InDelta(t, 50_000, slow.unsent(), 10_000)
		time.Sleep(600 * time.Millisecond)
		require.Zero(t, slow.unsent(), "all of it is on its way")
	})
}

// What is on its way is bounded, and a shape can change on the way.
func TestShapeBufferAndChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shaper{shape: shaping.Shape{Delay: time.Second, BufferBytes: 100_000}}
		a := &arrivals{start: time.Now()}
		out := shapedOn(t.Context(), s, a)
		wrote := make(chan error, 1)
		go func() {
			_, err := out.write(net.Buffers{make([]byte, 300_000)})
			wrote <- err
		}()
		synctest.Wait()
		pipe := out.pipe.Load()
		pipe.mu.Lock()
		require.LessOrEqual(t, pipe.bytes, 100_000)
		pipe.mu.Unlock()
		s.set(shaping.Shape{})
		require.NoError(t, <-wrote)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 300_000, a.data.Len())
		require.InDelta(t, time.Second, a.last, float64(time.Millisecond), "once the first is there, the rest is not delayed")

		// A failing connection is reported to the writer; a closed one lets it go.
		a.err = os.ErrDeadlineExceeded
		_, err := out.write(net.Buffers{[]byte("x")})
		for err == nil {
			time.Sleep(time.Second)
			_, err = out.write(net.Buffers{[]byte("x")})
		}
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = out.conn.Write([]byte("x"))
		require.Error(t, err, "the connection is closed, so that its reader notices")

		b := &arrivals{start: time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stuck := shapedOn(ctx, &shaper{shape: shaping.Shape{Delay: time.Minute, BufferBytes: 1}}, b)
		_, err = stuck.write(net.Buffers{[]byte("xy"), []byte("z")})
		require.ErrorIs(t, err, errClosed)
	})
}

// The same seed delays the same bytes by the same time.
func TestJitterIsRepeatable(t *testing.T) {
	draw := func() (all []time.Time) {
		s := &shaper{shape: shaping.Shape{Jitter: time.Second}, rng: rand.New(rand.NewPCG(1, 2))}
		for range 20 {
			all = append(all, s.arrival(1, false, time.Unix(0, 0)))
		}
		return all
	}
	require.Equal(t, draw(), draw())
}

// On real sockets: what is sent arrives later by at least the delay, and a link
// can be given a shape while it is in use.
func TestShapedLink(t *testing.T) {
	a, _, _, boxB := pair(t)
	a.Send([]wire.Message{heartbeat(1, 2)})
	boxB.next(t)
	require.NoError(t, a.SetShape(2, shaping.Shape{Delay: 50 * time.Millisecond, BytesPerSecond: 4 << 20}))
	start := time.Now()
	a.Send([]wire.Message{heartbeat(1, 2)})
	boxB.next(t)
	require.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
	start = time.Now()
	for i := range uint64(10) {
		a.Send([]wire.Message{appends(1, 2, i, 40<<10)})
	}
	for i := range uint64(10) {
		require.Equal(t, i, boxB.next(t).Body.(wire.Raft).GetIndex())
	}
	require.GreaterOrEqual(t, time.Since(start), 100*time.Millisecond, "400 KiB at 4 MiB a second")
	require.NoError(t, a.SetShape(2, shaping.Shape{}))
	a.Send([]wire.Message{heartbeat(1, 2)})
	boxB.next(t)

	require.ErrorIs(t, a.SetShape(9, shaping.Shape{}), errUnreachable)
	err := a.SetShape(2, shaping.Shape{Delay: -1, Jitter: time.Hour, BytesPerSecond: 1, BufferBytes: -1})
	for _, want := range []string{"Shape.Delay is -1ns", "Shape.Jitter is 1h0m0s, want 0 to 1m0s", "Shape.BytesPerSecond is 1, want 0, or 1024 to", "Shape.BufferBytes is -1"} {
		require.ErrorContains(t, err, want)
	}
}
