// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/weftraft/weft/rawnode/wire"
)

// accept takes connections until the listener is closed.
func (t *TCP) accept() {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			if t.context.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of file descriptors, most likely: going on at once would burn
			// the processor, and ending would cut the node off.
			t.cfg.Logger.Error("accept", "error", err)
			select {
			case <-time.After(firstBackoff):
			case <-t.context.Done():
				return
			}
			continue
		}
		select {
		case t.hellos <- struct{}{}:
			t.spawn(func() { t.serve(conn) })
		default:
			t.count.refused.Add(1)
			_ = conn.Close() // too many strangers
		}
	}
}

// serve reads one connection to its end.
func (t *TCP) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }() // its end has been reported
	defer context.AfterFunc(t.context, func() { _ = conn.Close() })()
	hello, p, err := t.welcome(conn)
	<-t.hellos
	if err != nil {
		t.count.refused.Add(1)
		t.cfg.Logger.Warn("connection refused", "from", conn.RemoteAddr(), "error", err)
		return
	}
	err = t.read(conn, hello, p)
	t.forget(p, hello.Class, conn)
	switch {
	case t.context.Err() != nil, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
	case errors.Is(err, wire.ErrFrame), errors.Is(err, wire.ErrTooLarge), errors.Is(err, ErrMessage):
		t.count.badFrames.Add(1)
		t.cfg.Logger.Error("connection closed, the peer sends what it must not", "peer", hello.Node, "class", hello.Class, "error", err)
	default:
		t.cfg.Logger.Info("connection broken", "peer", hello.Node, "class", hello.Class, "error", err)
	}
}

// welcome reads and answers a hello.
func (t *TCP) welcome(conn net.Conn) (wire.Hello, *peer, error) {
	if err := conn.SetDeadline(time.Now().Add(t.cfg.DialTimeout)); err != nil {
		return wire.Hello{}, nil, err
	}
	hello, err := wire.ReadHello(conn)
	if err != nil {
		return hello, nil, fmt.Errorf("read hello: %w", err)
	}
	p, refusal := t.admit(hello, conn)
	answer := wire.Answer{Kinds: wire.AllKinds}
	if refusal != nil {
		answer.Refused = refusal.Error()
	}
	if err := answer.Write(conn); err != nil && refusal == nil {
		t.forget(p, hello.Class, conn)
		return hello, nil, fmt.Errorf("answer hello: %w", err)
	}
	if refusal != nil {
		return hello, nil, fmt.Errorf("%w: %w", ErrRefused, refusal)
	}
	return hello, p, conn.SetDeadline(time.Time{})
}

// admit decides about a hello. A peer that connects again replaces its old
// connection, which it has lost even if this end does not know yet.
func (t *TCP) admit(h wire.Hello, conn net.Conn) (*peer, error) {
	switch {
	case h.Cluster != t.cfg.Cluster:
		return nil, fmt.Errorf("this is cluster %d, you are of cluster %d", t.cfg.Cluster, h.Cluster)
	case h.Peer != t.cfg.Node:
		return nil, fmt.Errorf("this is node %d, you want node %d: check the addresses of peers", t.cfg.Node, h.Peer)
	case h.Class >= wire.NumClasses:
		return nil, fmt.Errorf("%v is not known here", h.Class)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[h.Node]
	switch {
	case t.closed:
		return nil, ErrClosed
	case p == nil:
		return nil, fmt.Errorf("node %d is not known here: add it to the peers of node %d", h.Node, t.cfg.Node)
	}
	if old := p.incoming[h.Class]; old != nil {
		_ = old.Close() // it is replaced
	}
	p.incoming[h.Class] = conn
	return p, nil
}

func (t *TCP) forget(p *peer, class wire.Class, conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.incoming[class] == conn {
		p.incoming[class] = nil
	}
}

// keepBuffer bounds the memory that a connection keeps for its next frame.
const keepBuffer = 1 << 20

// read takes frames until the connection ends, and says why it did.
func (t *TCP) read(conn net.Conn, hello wire.Hello, p *peer) error {
	traffic := &p.traffic[hello.Class]
	r := bufio.NewReaderSize(conn, 64<<10)
	var buf []byte
	for {
		payload, err := wire.ReadFrame(r, wire.FrameMessages, t.cfg.MaxFrameBytes, buf)
		if err != nil {
			return err
		}
		traffic.receivedBytes.Add(uint64(len(payload) + wire.HeaderLen))
		traffic.receivedFrames.Add(1)
		if err := t.deliver(payload, hello, traffic); err != nil {
			return err
		}
		if buf = payload; cap(buf) > keepBuffer {
			buf = nil
		}
	}
}

// deliver takes the messages of a frame to their groups.
func (t *TCP) deliver(payload []byte, hello wire.Hello, traffic *traffic) error {
	var refused error
	unknown, err := wire.DecodeMessages(payload, func(m wire.Message) {
		if refused == nil {
			refused = t.permits(hello, m)
		}
		if refused != nil {
			return
		}
		traffic.receivedMessages.Add(1)
		if r := t.receiver(m.Group); r != nil {
			r.Receive(m)
		} else {
			t.count.noGroup.Add(1)
		}
	})
	t.count.unsupported.Add(uint64(unknown))
	return errors.Join(refused, err)
}

// permits says what a connection may carry.
func (t *TCP) permits(hello wire.Hello, m wire.Message) error {
	switch {
	case m.From != hello.Node || m.To != t.cfg.Node:
		return fmt.Errorf("%w: it goes from node %d to node %d, on a connection from %d to %d", ErrMessage, m.From, m.To, hello.Node, t.cfg.Node)
	case m.Class() != hello.Class:
		return fmt.Errorf("%w: a %v of class %v, on a connection for %v", ErrMessage, m.Kind(), m.Class(), hello.Class)
	case t.cfg.Allow == nil:
		return nil
	}
	if err := t.cfg.Allow(hello.Node, m.Kind()); err != nil {
		return fmt.Errorf("%w: a %v from node %d: %w", ErrMessage, m.Kind(), hello.Node, err)
	}
	return nil
}
