// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"slices"
	"time"

	"github.com/weftraft/weft/rawnode/wire"
)

// To hand a small message to the sender's goroutine costs more than to write it:
// another thread has to wake up. So where nothing waits and nobody writes, the
// caller of Send writes it. What the kernel has no room for is left to the sender,
// so that no caller ever waits for a peer.

// directBytes is the most that callers write themselves. No payload of that size
// is referred to, so such a frame is one piece.
const directBytes = 4 << 10

// direct is what callers of Send need to write. It is guarded by link.mu; batch and
// the link's frame belong to who has set sender or writing.
//
// Invariant: sender and writing are not both set.
type direct struct {
	to      *target  // the connection that there is; nil if callers cannot write
	sender  bool     // the sender writes
	writing bool     // a caller of Send writes
	batch   []queued // what it took
	rest    []byte   // what the kernel had no room for of the frame of batch
}

// target is a connection to write to, and the kinds that the peer takes.
type target struct {
	output
	kinds wire.Kinds
}

// start has the messages that wait sent: by the caller, if they are few and it
// may, or else by the sender. What is lost by that is added to drops.
func (l *link) start(now time.Time, drops *drops) {
	to, wake := l.mayWrite()
	if to != nil {
		wake = l.writeDirect(to, now, drops)
	}
	if wake {
		signal(l.wake)
	}
}

// mayWrite returns the connection if the caller may write to it what it finds in
// direct.batch, and else whether the sender is to be woken.
func (l *link) mayWrite() (to *target, wake bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := &l.direct
	switch {
	case l.queue.len() == 0 || d.writing: // who writes will look again
		return nil, false
	case d.to == nil || d.sender || d.rest != nil || l.bytes > directBytes || slices.ContainsFunc(l.queue.items[l.queue.head:], isWork):
		return nil, true
	}
	d.writing = true
	d.batch = l.queue.take(d.batch[:0], directBytes)
	return d.to, false
}

// isWork reports whether a message has coded entries, which become what their
// receiver is to have as they are encoded.
func isWork(q queued) bool {
	b, ok := q.msg.Body.(wire.Raft)
	return ok && b.Saves > 0
}

// writeDirect writes direct.batch, and returns whether there is something for the
// sender to do.
func (l *link) writeDirect(to *target, start time.Time, drops *drops) (wake bool) {
	d := &l.direct
	var rest []byte
	sent, err := l.encode(d.batch, to.kinds, start), error(nil)
	if sent > 0 {
		rest, err = l.writeSome(to, sent, start)
	}
	l.frame.Reset()
	l.mu.Lock()
	defer l.mu.Unlock()
	d.writing = false
	lost := err != nil || d.to != to // or the connection was given up meanwhile
	if !lost && len(rest) > 0 {
		d.rest = rest
		return true
	}
	l.releaseLocked(d.batch)
	if lost {
		for _, q := range d.batch {
			drops.add(q.msg, l.peer, DropBroken)
		}
	}
	clear(d.batch)
	return l.queue.len() > 0
}

// writeSome writes what the kernel has room for of the link's frame, and returns a
// copy of the rest.
func (l *link) writeSome(to *target, sent int, start time.Time) (rest []byte, err error) {
	pieces := l.frame.Messages()
	frame := pieces[0]
	if len(pieces) > 1 {
		frame = slices.Concat(pieces...)
	}
	n, err := to.try(frame)
	if err != nil {
		sent = 0
	}
	l.wrote(int64(n), sent, start)
	return slices.Clone(frame[n:]), err
}

// writable lets callers write to a connection, nil for none. Only connections of
// classes that somebody waits for are written to by callers.
func (l *link) writable(to *target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.class == wire.ClassControl || l.class == wire.ClassAppend {
		l.direct.to = to
	}
}
