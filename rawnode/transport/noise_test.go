// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weftraft/weft/internal/wire"
)

// fewLines is more than what quiet.Log lets through within the time that a test may
// take: lines of a kind are 1, 2, 4 seconds apart, and so on.
const fewLines = 8

func lines(log *syncBuilder, text string) int { return strings.Count(log.String(), text) }

// However many connections are refused, the log gets a few lines, and the counters
// get all.
func TestRefusedConnectionsDoNotFillTheLog(t *testing.T) {
	log := &syncBuilder{}
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	const n = 500
	for range n {
		c, err := net.Dial("tcp", a.Addr().String())
		require.NoError(t, err)
		_, err = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		_, err = io.Copy(io.Discard, c)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	_, answer := connect(t, a, wire.Hello{Cluster: 6, Node: 2, Peer: 1, Kinds: wire.AllKinds})
	require.NotEmpty(t, answer.Refused)
	eventually(t, "all are counted", func() bool { return a.Stats().Refused == n+1 })
	require.Less(t, lines(log, "is this a Weft peer?"), fewLines, log)
	require.NotZero(t, lines(log, "is this a Weft peer?"))
	require.Equal(t, 1, lines(log, "this is cluster 5, you are of cluster 6"), "another reason is not hidden")
}

// A log in JSON has addresses as text.
func TestLogInJSONHasAddressesAsText(t *testing.T) {
	log := &syncBuilder{}
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	c, err := net.Dial("tcp", a.Addr().String())
	require.NoError(t, err)
	defer func() { _ = c.Close() }() // the other end closes it, too
	_, err = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	eventually(t, "the stranger's address is in the log", func() bool {
		return strings.Contains(log.String(), `"from":"`+c.LocalAddr().String()+`"`)
	})
}

// A peer that takes connections and drops them, again and again, gets a few lines.
func TestFlappingPeerDoesNotFillTheLog(t *testing.T) {
	log := &syncBuilder{}
	l := listen(t)
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: l.Addr().String()}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err = wire.ReadHello(c); err == nil {
				_ = wire.Answer{Kinds: wire.AllKinds}.Write(c) // it is closed anyway
			}
			_ = c.Close() // that is what this is about
		}
	}()
	eventually(t, "it has come and gone many times", func() bool {
		a.Send([]wire.Message{heartbeat(1, 2)})
		return a.Stats().Peers[2][wire.ClassControl].Connects > 20
	})
	require.NoError(t, l.Close())
	<-done
	require.Less(t, lines(log, "msg=connected"), fewLines, log)
	require.Less(t, lines(log, "peer unreachable"), fewLines, log)
}

// A frame of entries of two bytes is refused before its entries are objects. The
// connection ends, a counter and the log say why.
func TestFrameThatWouldTakeTooMuchMemoryIsRefused(t *testing.T) {
	log := &syncBuilder{}
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	entries := bytes.Repeat([]byte{8*7 + 2, 0}, 4<<20)
	frame := rawFrame(protowire.AppendBytes([]byte{byte(wire.KindRaft), 1, 2, 1}, entries))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range fewLines {
		c, answer := connect(t, a, hello(wire.ClassAppend))
		require.Empty(t, answer.Refused)
		_, err := c.Write(frame)
		require.NoError(t, err)
		requireClosed(t, c)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(fewLines*4*len(frame)), "the frame's memory grows as it comes")
	eventually(t, "each is counted", func() bool { return a.Stats().MemoryRefusals == fewLines })
	require.Equal(t, uint64(fewLines), a.Stats().BadFrames)
	require.Equal(t, uint64(fewLines), a.Stats().Peers[2][wire.ClassAppend].BadFrames)
	require.Empty(t, box.got)
	require.Contains(t, log.String(), "with 4194304 entries: 536870912 bytes for its objects, the bound is 33554432")
	require.Less(t, lines(log, "the peer sends what it must not"), fewLines, log)
}
