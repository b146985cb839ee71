// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/shaping"
)

const shapeChunk = 16 << 10

// chunkOf returns the number of bytes that travel together, at most about a twentieth of a
// second's.
func chunkOf(s shaping.Shape) int {
	if s.BytesPerSecond == 0 {
		return shapeChunk
	}
	return min(s.BytesPerSecond/20, shapeChunk)
}

// shaper is the link to a peer, shared by all connections to the peer.
type shaper struct {
	mu    sync.Mutex
	shape shaping.Shape
	line  line
	rng   *rand.Rand
	card  *card // nil: its bytes a second are not bounded
}

// line lets bytes leave one behind the other. Urgent bytes wait only for each other,
// and delay the other bytes.
type line struct {
	free, urgent time.Time // the time when the last byte handed over has left
}

// leave returns the time when bytes that take so long have left.
func (l *line) leave(takes time.Duration, urgent bool, now time.Time) time.Time {
	l.free = later(l.free, now).Add(takes)
	if !urgent {
		return l.free
	}
	l.urgent = later(l.urgent, now).Add(takes)
	return l.urgent
}

// until keeps the line busy until the end of a narrower one.
func (l *line) until(left time.Time, urgent bool) {
	if l.free = later(l.free, left); urgent {
		l.urgent = later(l.urgent, left)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// card is shared by the links of a node, and lets so many bytes a second leave.
type card struct {
	bytesPerSecond int

	mu   sync.Mutex
	line line
}

// leave returns when the last of n bytes has left.
func (c *card) leave(n int, urgent bool, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.line.leave(takes(n, c.bytesPerSecond), urgent, now)
}

// takes returns how long n bytes take.
func takes(n, bytesPerSecond int) time.Duration {
	return time.Duration(float64(n) / float64(bytesPerSecond) * float64(time.Second))
}

func (s *shaper) set(shape shaping.Shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shape = shape
}

// get returns the shape, with the card's rate if lower.
func (s *shaper) get() shaping.Shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	shape := s.shape
	if s.card != nil && (shape.BytesPerSecond == 0 || shape.BytesPerSecond > s.card.bytesPerSecond) {
		shape.BytesPerSecond = s.card.bytesPerSecond
	}
	return shape
}

// arrival sends n bytes, and returns their time of arrival.
func (s *shaper) arrival(n int, urgent bool, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := now
	if s.shape.BytesPerSecond > 0 {
		left = s.line.leave(takes(n, s.shape.BytesPerSecond), urgent, now)
	}
	if s.card != nil {
		left = later(left, s.card.leave(n, urgent, now))
		s.line.until(left, urgent)
	}
	at := left.Add(s.shape.Delay)
	if s.shape.Jitter > 0 {
		at = at.Add(time.Duration(s.rng.Int64N(int64(s.shape.Jitter) + 1)))
	}
	return at
}

// shapedOutput writes straight to plain until its link has a shape. From then
// on, bytes are copied into a bounded queue, and a goroutine writes them to slow
// when their time has come.
type shapedOutput struct {
	plain   output
	slow    io.Writer
	conn    net.Conn // closed when slow fails, to tell the sender
	ctx     context.Context
	shaper  *shaper
	timeout time.Duration
	urgent  bool // goes ahead of other bytes
	spawn   func(func())

	pipe   atomic.Pointer[delayPipe] // nil until there is a shape
	kernel kernelQueue               // of conn
}

func (o *shapedOutput) write(pieces net.Buffers) (total int64, err error) {
	pipe := o.pipe.Load()
	if pipe == nil {
		if !o.shaper.get().Active() {
			return o.plain.write(pieces)
		}
		pipe = newDelayPipe(o.ctx, o.urgent)
		o.pipe.Store(pipe)
		o.spawn(func() {
			if err := pipe.run(o.slow); err != nil {
				_ = o.conn.Close() // the pipe tells the writer
			}
		})
	}
	for _, p := range pieces {
		for len(p) > 0 {
			shape := o.shaper.get()
			n := min(len(p), chunkOf(shape))
			if err := pipe.put(p[:n], shape, o.timeout, o.shaper); err != nil {
				return total, err
			}
			total += int64(n)
			p = p[n:]
		}
	}
	return total, nil
}

func (o *shapedOutput) try(b []byte) (int, error) {
	if o.pipe.Load() != nil || o.shaper.get().Active() {
		return 0, nil
	}
	n, err := o.plain.try(b)
	if err != nil {
		_ = o.conn.Close() // to tell the sender
	}
	return n, err
}

func (o *shapedOutput) close() {
	if pipe := o.pipe.Load(); pipe != nil {
		pipe.cancel()
	}
	o.plain.close()
}

// unsent returns the number of bytes written and not left this node, for one caller at
// a time.
func (o *shapedOutput) unsent() int {
	bytes := o.kernel.unsent(o.conn)
	if pipe := o.pipe.Load(); pipe != nil {
		bytes += pipe.unsent(time.Now().Add(o.shaper.get().Delay))
	}
	return bytes
}

// delayPipe is a queue of bytes, each with an earliest time to leave.
type delayPipe struct {
	ctx    context.Context
	cancel context.CancelFunc
	urgent bool
	wake   chan struct{} // has a token when the queue was empty
	room   chan struct{} // has a token when something left

	mu    sync.Mutex
	queue []delayed
	bytes int // in queue, or being written
	last  time.Time
	err   error
}

type delayed struct {
	data []byte
	due  time.Time
}

func newDelayPipe(ctx context.Context, urgent bool) *delayPipe {
	p := &delayPipe{urgent: urgent, wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// put queues a copy of data, waiting until there is room. put gives up when nothing
// leaves for timeout beyond the link's delay.
func (p *delayPipe) put(data []byte, shape shaping.Shape, timeout time.Duration, s *shaper) error {
	for !p.tryPut(data, shape.Buffer(), s) {
		timer := time.NewTimer(timeout + shape.Delay + shape.Jitter)
		select {
		case <-p.room:
			timer.Stop()
		case <-p.ctx.Done():
			timer.Stop()
			return errClosed
		case <-timer.C:
			return os.ErrDeadlineExceeded
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// unsent returns the bytes that arrive after a time: with the time now plus the link's
// delay, the bytes that have not left.
func (p *delayPipe) unsent(after time.Time) (bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range slices.Backward(p.queue) {
		if !d.due.After(after) {
			break
		}
		bytes += len(d.data)
	}
	return bytes
}

func (p *delayPipe) tryPut(data []byte, bound int, s *shaper) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return true
	}
	if p.bytes > 0 && p.bytes+len(data) > bound {
		return false
	}
	// Never before earlier bytes of this connection.
	if due := s.arrival(len(data), p.urgent, time.Now()); due.After(p.last) {
		p.last = due
	}
	p.queue = append(p.queue, delayed{append([]byte(nil), data...), p.last})
	p.bytes += len(data)
	signal(p.wake)
	return true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// next returns the first of the queue, once its time has come.
func (p *delayPipe) next() (delayed, bool) {
	for {
		p.mu.Lock()
		if len(p.queue) > 0 {
			d := p.queue[0]
			p.queue[0] = delayed{}
			p.queue = p.queue[1:]
			p.mu.Unlock()
			return d, p.sleepUntil(d.due)
		}
		p.mu.Unlock()
		select {
		case <-p.wake:
		case <-p.ctx.Done():
			return delayed{}, false
		}
	}
}

func (p *delayPipe) sleepUntil(due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return p.ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// run writes due bytes to out, until the pipe is closed or out fails.
func (p *delayPipe) run(out io.Writer) error {
	for {
		d, ok := p.next()
		if !ok {
			return nil
		}
		_, err := out.Write(d.data)
		p.mu.Lock()
		p.bytes -= len(d.data)
		p.err = err
		p.mu.Unlock()
		signal(p.room)
		if err != nil {
			return err
		}
	}
}
