// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/weftraft/weft/rawnode/wire"
)

// link sends the messages of one class to one peer: a queue, and a goroutine
// that dials and writes.
type link struct {
	t     *TCP
	peer  *peer
	class wire.Class

	wake   chan struct{}   // has a token while the queue is not empty
	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	mu      sync.Mutex
	queue   []wire.Message
	bytes   int
	room    chan struct{} // closed, and made anew, when the queue is taken or dropped
	failed  error         // why the last dial or write did not work; nil once one does
	retryAt time.Time     // no dial before

	// Of the goroutine only.
	conn    net.Conn
	spare   func() bool   // undoes that conn is closed when ctx ends
	lost    chan struct{} // closed when the peer has closed conn
	kinds   wire.Kinds
	backoff time.Duration
	frame   wire.Frame
}

func newLink(t *TCP, p *peer, class wire.Class) *link {
	l := &link{t: t, peer: p, class: class, wake: make(chan struct{}, 1), room: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(t.context)
	return l
}

// offer queues a message, or says why not.
func (l *link) offer(m wire.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(m)
}

// add queues a message if there is room. One that is larger than the bound fits
// an empty queue. The caller holds l.mu.
func (l *link) add(m wire.Message) error {
	switch size := m.Size(); {
	case l.ctx.Err() != nil:
		return ErrClosed
	case l.failed != nil && time.Now().Before(l.retryAt):
		return fmt.Errorf("%w: node %d: %w", ErrUnreachable, l.peer.id, l.failed)
	case l.bytes > 0 && l.bytes+size > l.t.cfg.QueueBytes[l.class]:
		return errNoRoom
	default:
		l.queue = append(l.queue, m)
		l.bytes += size
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

var errNoRoom = fmt.Errorf("%w: the queue is full", ErrUnreachable)

// offerWait queues a message, waiting for room.
func (l *link) offerWait(ctx context.Context, m wire.Message) error {
	for {
		l.mu.Lock()
		err := l.add(m)
		room := l.room
		l.mu.Unlock()
		if err != errNoRoom { //nolint:errorlint // the sentinel itself, from add above
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.ctx.Done():
			return ErrClosed
		}
	}
}

// take empties the queue.
func (l *link) take() []wire.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue
	l.queue, l.bytes = nil, 0
	close(l.room)
	l.room = make(chan struct{})
	return q
}

// close ends the link. What waits is dropped.
func (l *link) close() { l.cancel() }

// run is the link's goroutine.
func (l *link) run() {
	defer l.hangUp()
	for {
		select {
		case <-l.wake:
		case <-l.lost:
			l.hangUp()
			l.fail(fmt.Errorf("node %d closed the connection", l.peer.id), nil)
			continue
		case <-l.ctx.Done():
			return
		}
		if l.conn == nil {
			if err := l.dial(); err != nil {
				l.fail(err, l.take())
				continue
			}
		}
		l.send(l.take())
	}
}

// send writes messages, a frame's worth at a time. The queue is taken whole, so
// up to twice its bound is in memory: once waiting, once being written.
func (l *link) send(messages []wire.Message) {
	for len(messages) > 0 {
		n, err := l.writeFrame(messages)
		if err != nil {
			l.hangUp()
			l.fail(fmt.Errorf("write: %w", err), messages)
			return
		}
		messages = messages[n:]
	}
}

// frameBytes is the size at which a frame is full: large enough that a header
// costs nothing, small enough that the receiver works while the next is sent.
const frameBytes = 256 << 10

// writeFrame writes some of the messages and returns how many.
func (l *link) writeFrame(messages []wire.Message) (n int, err error) {
	l.frame.Reset()
	for n < len(messages) && (n == 0 || l.frame.Len()+messages[n].Size() <= frameBytes) {
		if m := messages[n]; l.kinds.Has(m.Kind()) {
			l.frame.AppendMessage(m)
		} else {
			l.t.count.unsupported.Add(1)
		}
		n++
	}
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.t.cfg.WriteTimeout)); err != nil {
		return 0, err
	}
	written, err := l.frame.WriteMessages(l.conn)
	l.frame.Reset() // let go of the payloads
	traffic := &l.peer.traffic[l.class]
	traffic.sentBytes.Add(uint64(written))
	traffic.sentFrames.Add(1)
	traffic.sentMessages.Add(uint64(n))
	return n, err
}

// dial makes a connection and introduces this node.
func (l *link) dial() error {
	ctx, cancel := context.WithTimeout(l.ctx, l.t.cfg.DialTimeout)
	defer cancel()
	conn, err := l.t.cfg.Dial(ctx, l.t.address(l.peer))
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	kinds, err := l.introduce(conn)
	if err != nil {
		_ = conn.Close() // it is given up
		return err
	}
	l.t.cfg.Logger.Info("connected", "peer", l.peer.id, "class", l.class, "address", conn.RemoteAddr())
	l.peer.traffic[l.class].connects.Add(1)
	l.conn, l.kinds, l.backoff = conn, kinds, 0
	l.spare = context.AfterFunc(l.ctx, func() { _ = conn.Close() }) // so that a write ends
	l.mu.Lock()
	l.failed = nil
	l.mu.Unlock()
	l.watch(conn)
	return nil
}

func (l *link) introduce(conn net.Conn) (wire.Kinds, error) {
	if err := conn.SetDeadline(time.Now().Add(l.t.cfg.DialTimeout)); err != nil {
		return 0, err
	}
	hello := wire.Hello{Cluster: l.t.cfg.Cluster, Node: l.t.cfg.Node, Peer: l.peer.id, Class: l.class, Kinds: wire.AllKinds}
	if err := hello.Write(conn); err != nil {
		return 0, fmt.Errorf("say hello: %w", err)
	}
	answer, err := wire.ReadAnswer(conn)
	if err != nil {
		return 0, fmt.Errorf("read the answer to hello: %w", err)
	}
	if answer.Refused != "" {
		return 0, fmt.Errorf("%w by node %d at %v: %s", ErrRefused, l.peer.id, conn.RemoteAddr(), answer.Refused)
	}
	return answer.Kinds, conn.SetDeadline(time.Time{})
}

// watch notices when the peer closes the connection, which sends nothing.
func (l *link) watch(conn net.Conn) {
	lost := make(chan struct{})
	l.lost = lost
	l.t.spawn(func() {
		defer close(lost)
		_, _ = conn.Read(make([]byte, 1)) // whatever it returns, the connection is of no use
	})
}

func (l *link) hangUp() {
	if l.conn != nil {
		l.spare()
		_ = l.conn.Close() // it is given up
		l.conn, l.lost = nil, nil
	}
}

// fail notes that the peer cannot be reached, and drops messages.
func (l *link) fail(err error, messages []wire.Message) {
	l.backoff = min(max(2*l.backoff, firstBackoff), l.t.cfg.MaxBackoff)
	l.mu.Lock()
	news := l.failed == nil && l.ctx.Err() == nil
	l.failed = err
	l.retryAt = time.Now().Add(l.backoff)
	l.mu.Unlock()
	l.t.count.dropped.Add(uint64(len(messages)))
	if news {
		l.t.cfg.Logger.Warn("peer unreachable", "peer", l.peer.id, "class", l.class, "error", err)
	}
	l.t.broken(l.peer.id)
}
