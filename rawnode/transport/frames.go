// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"errors"
	"io"
	"net"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// frameReader reads frames from a connection. The wait for a frame's first byte has no
// limit; then bytes must keep coming.
type frameReader struct {
	idle idleReader
	r    *bufio.Reader
}

// smallReads is the size of the buffer for reading, small enough to let most of a large
// payload go straight to its place.
const smallReads = 8 << 10

func newFrameReader(conn net.Conn, timeout time.Duration) *frameReader {
	f := &frameReader{idle: idleReader{conn: conn, timeout: timeout}}
	f.r = bufio.NewReaderSize(&f.idle, smallReads)
	return f
}

// next waits for a frame and reads its header.
func (f *frameReader) next(limit int) (wire.Header, error) {
	f.idle.eager = false
	if _, err := f.r.Peek(1); err != nil {
		return wire.Header{}, err
	}
	f.idle.eager = true
	head, err := f.r.Peek(wire.HeaderLen)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return wire.Header{}, err
	}
	h, err := wire.ParseHeader(head, wire.FrameMessages, limit)
	_, _ = f.r.Discard(len(head)) // they are there
	return h, err
}

// payload reads the rest of the frame.
func (f *frameReader) payload(h wire.Header, buf []byte) ([]byte, error) {
	return h.ReadPayload(f.r, buf)
}

// idleReader reads from a connection. While eager is set, bytes must keep
// coming.
type idleReader struct {
	conn    net.Conn
	timeout time.Duration
	eager   bool
}

func (r *idleReader) Read(p []byte) (int, error) {
	var deadline time.Time
	if r.eager {
		deadline = time.Now().Add(r.timeout)
	}
	if err := r.conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	return r.conn.Read(p)
}
