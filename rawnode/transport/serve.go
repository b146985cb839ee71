// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/weftraft/weft/internal/wire"
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
			t.log(slog.LevelError, about{}, "accept", "error", err)
			select {
			case <-time.After(firstBackoff):
			case <-t.context.Done():
				return
			}
			continue
		}
		t.strangers.Add(conn)
		t.spawn(func() { t.serve(conn) })
	}
}

// serve reads one connection to its end.
func (t *TCP) serve(raw net.Conn) {
	defer func() { _ = raw.Close() }() // its end has been reported
	defer context.AfterFunc(t.context, func() { _ = raw.Close() })()
	conn, p, who, err := t.welcome(raw)
	if err != nil {
		t.turnAway(raw, conn, err)
		t.strangers.Remove(raw)
		return
	}
	t.strangers.Remove(raw)
	err = t.read(conn, p, who)
	t.forget(p, who)
	t.ended(p, who, err)
}

// ended counts and logs why a connection ended.
func (t *TCP) ended(p *peer, who caller, err error) {
	level, text := slog.LevelInfo, "connection broken"
	switch {
	case t.context.Err() != nil, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return
	case errors.Is(err, wire.ErrFrame), errors.Is(err, wire.ErrTooLarge), errors.Is(err, wire.ErrMemory), errors.Is(err, errMessage):
		level, text = slog.LevelError, "connection closed, the peer sends what it must not"
		t.count.badFrames.Add(1)
		p.traffic[who.class].bad.Add(1)
	}
	if errors.Is(err, wire.ErrMemory) {
		t.count.memoryRefusals.Add(1)
	}
	t.log(level, about{peer: who.node, class: who.class}, text, "peer", who.node, "class", who.class, "error", err)
}

// read takes frames until the connection ends, and returns the reason.
func (t *TCP) read(conn net.Conn, p *peer, who caller) error {
	// The replaced connection may still be delivering the peer's earlier messages.
	select {
	case p.reading[who.class] <- struct{}{}:
		defer func() { <-p.reading[who.class] }()
	case <-who.conn.replaced:
		return net.ErrClosed
	case <-t.context.Done():
		return errClosed
	}
	select {
	case <-who.conn.replaced: // and the later connection was faster
		return net.ErrClosed
	default:
	}
	r := newFrameReader(conn, t.cfg.WriteTimeout)
	traffic := &p.traffic[who.class]
	to := newDelivery(t, who, traffic)
	var buf []byte
	for {
		header, err := r.next(t.cfg.maxFrame(who.class))
		if err != nil {
			return err
		}
		if who.class != wire.ClassControl {
			waited, err := p.receive.take(t.context, header.Length())
			if err != nil {
				return err
			}
			traffic.budgetTime.Add(int64(waited))
		}
		buf, err = to.read(r, header, buf)
		if who.class != wire.ClassControl {
			p.receive.give(header.Length())
		}
		if err != nil {
			return err
		}
	}
}

// ownMemory is the payload length from which a frame gets memory of its own, where the
// large payloads of its messages stay. Smaller frames of a connection share one buffer.
const ownMemory = 64 << 10

// read reads the rest of a frame and delivers it. The result is the buffer for the next
// frame.
func (d *delivery) read(r *frameReader, header wire.Header, buf []byte) ([]byte, error) {
	decode := wire.DecodeMessages
	if header.Length() >= ownMemory {
		decode, buf = wire.DecodeShared, nil
	}
	payload, err := r.payload(header, buf)
	if err != nil {
		return nil, err
	}
	d.traffic.receivedBytes.Add(uint64(len(payload) + wire.HeaderLen))
	d.traffic.receivedFrames.Add(1)
	start := time.Now()
	err = d.frame(payload, decode)
	d.traffic.deliverTime.Add(int64(time.Since(start)))
	if header.Length() >= ownMemory {
		payload = nil
	}
	return payload, err
}
