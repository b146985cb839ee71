// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// output writes frames to a connection.
type output interface {
	// write writes all pieces, or returns an error if the peer has read nothing
	// for a while. It consumes pieces.
	write(pieces net.Buffers) (int64, error)
	// try writes as much as possible without waiting. After an error the connection is
	// closed.
	try(b []byte) (int, error)
	// close ends the work left by write.
	close()
}

// newOutput returns the output for conn, which is raw or TLS over raw.
func newOutput(ctx context.Context, raw, conn net.Conn, timeout time.Duration, s *shaper, spawn func(func())) *shapedOutput {
	var out output
	if tcp, ok := conn.(*net.TCPConn); ok {
		out = &vectorOutput{conn: tcp, timeout: timeout}
	} else {
		out = bufferedOutput{bufio.NewWriterSize(patientWriter{conn, timeout}, 16<<10)}
	}
	return &shapedOutput{plain: out, slow: patientWriter{conn, timeout}, conn: raw, ctx: ctx, shaper: s, timeout: timeout, spawn: spawn}
}

// vectorOutput hands the pieces to the kernel unchanged.
type vectorOutput struct {
	conn    *net.TCPConn
	timeout time.Duration
	attempt attempt
}

func (o *vectorOutput) write(pieces net.Buffers) (total int64, err error) {
	for {
		if err := o.conn.SetWriteDeadline(time.Now().Add(o.timeout)); err != nil {
			return total, err
		}
		n, err := pieces.WriteTo(o.conn)
		total += n
		// A slowly reading peer gets time as long as it reads.
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return total, err
		}
	}
}

func (o *vectorOutput) try(b []byte) (int, error) { return o.attempt.write(o.conn, b) }

func (*vectorOutput) close() {}

// bufferedOutput is for connections without scatter-gather writes. TLS copies all bytes
// on encryption, and each write is a record of its own, so small pieces are put
// together.
type bufferedOutput struct{ w *bufio.Writer }

func (o bufferedOutput) write(pieces net.Buffers) (total int64, err error) {
	for _, p := range pieces {
		n, err := o.w.Write(p)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, o.w.Flush()
}

func (bufferedOutput) try([]byte) (int, error) { return 0, nil }

func (bufferedOutput) close() {}

// patientWriter writes in steps, and gives the peer time for each. (A TLS
// connection is of no use after a write that timed out half way.)
type patientWriter struct {
	conn    net.Conn
	timeout time.Duration
}

const patientStep = 64 << 10

func (w patientWriter) Write(p []byte) (total int, err error) {
	for len(p) > 0 {
		step := p[:min(len(p), patientStep)]
		if err := w.conn.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
			return total, err
		}
		n, err := w.conn.Write(step)
		total += n
		if err != nil {
			return total, err
		}
		p = p[n:]
	}
	return total, nil
}
