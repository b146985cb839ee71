// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// listen accepts connections and has serve called with each, and its number.
func listen(t *testing.T, serve func(n int, conn net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				serve(n, conn)
			}()
		}
	}()
	return l.Addr().String()
}

// What speaks, and not gRPC, or another service, is no node: not now, and not
// later.
func TestOtherServersAreNotAskedAgain(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	go func() { _ = s.Serve(other) }() // ends with Stop
	t.Cleanup(s.Stop)
	for name, address := range map[string]string{
		"http/1": listen(t, func(_ int, conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn)
		}),
		"another service": other.Addr().String(),
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, Config{Endpoints: []string{address}, Timeout: time.Hour})
			_, err := c.Get(t.Context(), &kvpb.GetRequest{Key: "k"})
			require.ErrorIs(t, err, errUnavailable)
			require.ErrorContains(t, err, address+": this is not kvdemo's client port")
			require.NotErrorIs(t, err, ErrUnknown)
			_, err = c.Put(t.Context(), "k", nil)
			require.ErrorIs(t, err, errUnavailable)
			require.True(t, Unreachable(err))
		})
	}
}

// A port that hangs up may belong to a proxy whose node is down for a moment.
func TestPortThatHangsUpIsAskedAgain(t *testing.T) {
	node := (&fakeNode{answer: ok}).serve(t)
	proxy := listen(t, func(n int, conn net.Conn) {
		if n < 2 {
			return
		}
		to, err := net.Dial("tcp", node)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(to, conn) }()
		_, _ = io.Copy(conn, to)
	})
	c := newClient(t, Config{Endpoints: []string{proxy}, Timeout: time.Minute})
	_, err := c.Get(t.Context(), &kvpb.GetRequest{Key: "k"})
	require.NoError(t, err)

	deaf := listen(t, func(int, net.Conn) {})
	c = newClient(t, Config{Endpoints: []string{deaf}, Timeout: 300 * time.Millisecond})
	_, err = c.Get(t.Context(), &kvpb.GetRequest{Key: "k"})
	require.ErrorIs(t, err, errUnavailable)
	require.ErrorContains(t, err, deaf+": this is not kvdemo's client port: it hangs up on gRPC")
}
