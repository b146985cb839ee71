// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUnfinishedCommandsOfAllClientsAreBounded(t *testing.T) {
	s := New(Config{})
	b := &s.budget
	b.used.Store(maxPendingBytes)
	ours, theirs := net.Pipe()
	g := &guard{Conn: ours, raw: ours, server: s}
	go func() {
		_, _ = io.WriteString(theirs, "*2\r\n$4000000\r\n"+strings.Repeat("x", maxInlineBytes))
		_, _ = io.Copy(io.Discard, theirs) // what the guard says
	}()
	buf := make([]byte, 128<<10)
	var err error
	for err == nil {
		_, err = g.Read(buf)
	}
	require.ErrorIs(t, err, errRefused)
	require.ErrorContains(t, err, "try again later")
	require.NoError(t, g.Close())
	require.NoError(t, g.Close())
	require.EqualValues(t, maxPendingBytes, b.used.Load())
}

// A subscriber's connection is closed by the goroutine that sends, if that fails (make race).
func TestConnectionIsClosedWhileItIsRead(t *testing.T) {
	s := New(Config{})
	ours, theirs := net.Pipe()
	g := &guard{Conn: ours, raw: ours, server: s}
	read := make(chan error)
	go func() {
		var err error
		for buf := make([]byte, 128<<10); err == nil; {
			_, err = g.Read(buf)
		}
		read <- err
	}()
	_, err := io.WriteString(theirs, "*2\r\n$4000000\r\n"+strings.Repeat("x", maxInlineBytes))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.budget.used.Load() > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, g.Close())
	require.Error(t, <-read)
	require.Zero(t, s.budget.used.Load())
}

func TestWhatWaitsForExecAtAllClientsIsBounded(t *testing.T) {
	s := New(Config{Backend: newGroups(t, 1), Log: slog.New(slog.DiscardHandler)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	w := dialWire(t, l.Addr().String())
	w.send("WATCH a\r\nMULTI\r\nSET a 1\r\n")
	w.want("+OK\r\n+OK\r\n+QUEUED\r\n")
	s.budget.used.Add(maxPendingBytes)
	w.send("SET a 2\r\nEXEC\r\nWATCH a\r\n")
	const refused = "-TRYAGAIN commands and watched keys that wait for EXEC, of all clients, take"
	require.Contains(t, w.line(), refused)
	require.Equal(t, "-EXECABORT Transaction discarded because of previous errors.", w.line())
	require.Contains(t, w.line(), refused)
	require.EqualValues(t, maxPendingBytes, s.budget.used.Swap(0))
	w.send("WATCH a\r\n")
	w.want("+OK\r\n")
	require.Positive(t, s.budget.used.Load())
	require.NoError(t, w.Close())
	require.Eventually(t, func() bool { return s.budget.used.Load() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
}

// FuzzFrame checks that the guard accepts the same bytes however they are cut, and counts
// no further than its bounds.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n"), 3)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var whole, pieces frame
		err := whole.scan(b)
		cut = max(0, min(cut, len(b)))
		err2 := errors.Join(pieces.scan(b[:cut]))
		if err2 == nil {
			err2 = pieces.scan(b[cut:])
		}
		require.Equal(t, err == nil, err2 == nil)
		if err == nil {
			require.Equal(t, whole, pieces)
			require.LessOrEqual(t, whole.bytes, maxRequestBytes+2)
		}
	})
}
