// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// link sends the messages of one class to one peer: a queue, and a sender.
type link struct {
	t     *TCP
	peer  *peer
	class wire.Class

	wake   chan struct{}   // has a token when the sender is to look at the queue
	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	mu    sync.Mutex
	queue queue
	// Invariant: bytes and messages count the queue, and the messages taken by the
	// sender and neither written nor dropped yet. bytes is at most QueueBytes, or
	// messages is 1.
	bytes, messages int
	room            chan struct{} // closed when bytes goes down; nil while nobody waits
	failed          error         // the last failure to dial or write; nil after a success
	retryAt         time.Time     // no dial before
	connected       bool
	direct          direct
	unsent          func() int // counts bytes written and not left; nil without a connection

	frame wire.Frame // of the writer: the sender, or a caller of Send
}

// dropError is an error with the reason for not sending a message.
type dropError struct {
	reason dropReason
	error
}

func (e dropError) Unwrap() error { return e.error }

func dropped(reason dropReason, err error) error { return dropError{reason, err} }

// reasonOf returns why a message was dropped.
func reasonOf(err error) dropReason {
	var d dropError
	if errors.As(err, &d) {
		return d.reason
	}
	return dropClosed
}

func newLink(t *TCP, p *peer, class wire.Class) *link {
	l := &link{t: t, peer: p, class: class, wake: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancel(t.context)
	return l
}

// offer queues a message, or says why not. Somebody is to call start then.
func (l *link) offer(q queued) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(q)
}

// add queues a message if there is room. A message larger than the bound fits an empty
// queue. The caller holds l.mu.
func (l *link) add(q queued) error {
	if l.ctx.Err() != nil {
		return errDropClosed
	}
	if l.failed != nil && q.at.Before(l.retryAt) {
		return dropped(dropDial, fmt.Errorf("%w: node %d: %w", errUnreachable, l.peer.id, l.failed))
	}
	if messages, bytes := l.queue.supersede(q.msg); messages > 0 {
		l.peer.traffic[l.class].superseded.Add(uint64(messages))
		l.uncount(messages, bytes)
	}
	if l.messages > 0 && l.bytes+q.size > l.t.cfg.QueueBytes[l.class] {
		return errNoRoom
	}
	l.queue.put(q)
	l.bytes += q.size
	l.messages++
	return nil
}

var (
	errNoRoom     = dropped(dropFull, fmt.Errorf("%w: the queue is full", errUnreachable))
	errDropClosed = dropped(dropClosed, errClosed)
)

// offerWait queues a message, waiting for room.
func (l *link) offerWait(ctx context.Context, m wire.Message) error {
	size := m.Size()
	for {
		l.mu.Lock()
		err := l.add(queued{m, size, time.Now()})
		if err == errNoRoom && l.room == nil { //nolint:errorlint // the sentinel itself, from add
			l.room = make(chan struct{})
		}
		room := l.room
		l.mu.Unlock()
		if err == nil {
			signal(l.wake)
		}
		if err != errNoRoom { //nolint:errorlint // the same
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.ctx.Done():
			return errDropClosed
		}
	}
}

// drains returns a channel that is closed when the queue has shrunk, or nil if the
// queue is empty.
func (l *link) drains() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.messages == 0 {
		return nil
	}
	if l.room == nil {
		l.room = make(chan struct{})
	}
	return l.room
}

// waiting reports whether there is something to send.
func (l *link) waiting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.len() > 0
}

// takeToWrite moves messages of up to so many bytes from the queue to batch, for the
// sender to write; rest is the unwritten rest of their frame, if begun. Messages in
// batch still count. While a caller writes, takeToWrite returns none, and the caller
// wakes the sender afterwards.
func (l *link) takeToWrite(batch []queued, bytes int) (_ []queued, rest []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := &l.direct
	switch {
	case d.writing:
		return batch, nil
	case d.rest != nil:
		batch, rest = append(batch, d.batch...), d.rest
		d.batch, d.rest = nil, nil
	default:
		batch = l.queue.take(batch, bytes)
	}
	d.sender = len(batch) > 0
	return batch, rest
}

// takeToDrop moves all messages to batch, except messages being written.
func (l *link) takeToDrop(batch []queued) []queued {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := &l.direct; d.rest != nil {
		batch = append(batch, d.batch...)
		d.batch, d.rest = nil, nil
	}
	return l.queue.take(batch, math.MaxInt)
}

// release stops counting the taken messages, which are written or dropped.
func (l *link) release(done []queued) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releaseLocked(done)
}

func (l *link) releaseLocked(done []queued) {
	l.direct.sender = false
	bytes := 0
	for _, q := range done {
		bytes += q.size
	}
	l.uncount(len(done), bytes)
}

// uncount makes room. The caller holds l.mu.
func (l *link) uncount(messages, bytes int) {
	l.messages -= messages
	l.bytes -= bytes
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
}

// backlog returns the bytes that have not left this node, while there is a
// connection.
func (l *link) backlog() (bytes int, connected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsent == nil {
		return 0, false
	}
	return l.bytes + l.unsent(), true
}

// standing returns how long the first message of the queue has waited.
func (l *link) standing(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.len() == 0 {
		return 0
	}
	return now.Sub(l.queue.items[l.queue.head].at)
}

// measure sets the function that counts bytes written and not left; nil ends measuring.
func (l *link) measure(unsent func() int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsent = unsent
}

// setState notes the connection, or the reason for its absence and the pause before the
// next dial. The result says whether the state is news.
func (l *link) setState(connected bool, failed error, retryAt time.Time) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news = failed != nil && l.failed == nil
	l.connected, l.failed, l.retryAt = connected, failed, retryAt
	return news
}

// gauges fills in the present values.
func (l *link) gauges(t *Traffic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.QueueBytes, t.QueueMessages, t.Connected = l.bytes, l.messages, l.connected
	if l.failed != nil {
		t.Error = l.failed.Error()
	}
}

// close ends the link, and drops waiting messages.
func (l *link) close() { l.cancel() }
