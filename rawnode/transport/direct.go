// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"slices"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// Handing a small message to the sender's goroutine costs more than writing the
// message, because another thread has to wake up. So with an empty queue and no writer,
// the caller of Send writes. Bytes without room in the kernel are left to the sender,
// so that no caller ever waits for a peer.

// directBytes is the most that callers write themselves. Payloads of this size are
// copied, not referred to, so the frame is one piece.
const directBytes = 4 << 10

// direct is the state for writing by callers of Send. It is guarded by link.mu; batch
// and the link's frame belong to the goroutine that has set sender or writing.
//
// Invariant: sender and writing are not both set.
type direct struct {
	to      *target  // the present connection; nil if callers cannot write
	sender  bool     // the sender writes
	writing bool     // a caller of Send writes
	batch   []queued // bytes taken by the kernel
	rest    []byte   // the rest of batch's frame, without room in the kernel
}

// target is a connection to write to, and the kinds taken by the peer.
type target struct {
	output
	kinds wire.Kinds
}

// start gets the waiting messages sent: by the caller, if they are few and the caller
// may write, or else by the sender. Lost messages are added to drops.
func (l *link) start(now time.Time, drops *drops) {
	to, wake := l.mayWrite()
	if to != nil {
		wake = l.writeDirect(to, now, drops)
	}
	if wake {
		signal(l.wake)
	}
}

// mayWrite returns the connection if the caller may write direct.batch, and otherwise
// whether to wake the sender.
func (l *link) mayWrite() (to *target, wake bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := &l.direct
	switch {
	case l.queue.len() == 0 || d.writing: // the writer will look again
		return nil, false
	case d.to == nil || d.sender || d.rest != nil || l.bytes > directBytes || slices.ContainsFunc(l.queue.items[l.queue.head:], isWork):
		return nil, true
	}
	d.writing = true
	d.batch = l.queue.take(d.batch[:0], directBytes)
	return d.to, false
}

// isWork reports whether a message has coded entries, which encoding turns into their
// receiver's form.
func isWork(q queued) bool {
	b, ok := q.msg.RaftBody()
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
			drops.add(q.msg, l.peer, dropBroken)
		}
	}
	clear(d.batch)
	return l.queue.len() > 0
}

// writeSome writes as much of the link's frame as the kernel has room for, and returns
// a copy of the rest.
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

// writable lets callers write to a connection, nil for none. Callers write only to
// connections of urgent classes.
func (l *link) writable(to *target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.class == wire.ClassControl || l.class == wire.ClassAppend {
		l.direct.to = to
	}
}
