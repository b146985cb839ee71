// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// dial connects node 2 to node 1 through links, and returns both ends.
func dialed(t *testing.T, delay func(from, to int) time.Duration) (l *Links, dialer, node net.Conn) {
	t.Helper()
	n, err := NewNetwork(NetworkConfig{Hosts: 2, Kind: Relay, Delay: delay, Dialer: Hello})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	l = n.Links
	listener, err := net.Listen("tcp", n.Hosts[0].Listen)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	dialer, err = net.Dial("tcp", n.Hosts[0].Address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = dialer.Close() })
	require.NoError(t, wire.Hello{Cluster: 1, Node: 2, Peer: 1}.Write(dialer))
	node, err = listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	hello, err := wire.ReadHello(node)
	require.NoError(t, err)
	require.EqualValues(t, 2, hello.Node)
	return l, dialer, node
}

// pass sends a byte and returns how long it took.
func pass(t *testing.T, from, to net.Conn) time.Duration {
	t.Helper()
	begun := time.Now()
	_, err := from.Write([]byte{1})
	require.NoError(t, err)
	require.NoError(t, to.SetReadDeadline(begun.Add(time.Minute)))
	_, err = io.ReadFull(to, make([]byte, 1))
	require.NoError(t, err)
	return time.Since(begun)
}

func TestEachDirectionTakesItsTime(t *testing.T) {
	_, dialer, node := dialed(t, func(from, _ int) time.Duration { return time.Duration(from) * 20 * time.Millisecond })
	require.GreaterOrEqual(t, pass(t, dialer, node), 40*time.Millisecond)
	require.GreaterOrEqual(t, pass(t, node, dialer), 20*time.Millisecond)
}

// What is sent in a direction that is cut arrives when the cut is over; the other direction
// goes on.
func TestCutHoldsOneDirectionUp(t *testing.T) {
	l, dialer, node := dialed(t, nil)
	l.Cut(2, 1, true)
	_, err := dialer.Write([]byte{7})
	require.NoError(t, err)
	pass(t, node, dialer)
	arrived := make(chan byte, 1)
	go func() {
		b := make([]byte, 1)
		if _, err := io.ReadFull(node, b); err == nil {
			arrived <- b[0]
		}
		close(arrived)
	}()
	for range 10 {
		pass(t, node, dialer)
	}
	select {
	case b := <-arrived:
		require.Failf(t, "not cut", "%d arrives", b)
	default:
	}
	l.Cut(2, 1, false)
	require.EqualValues(t, 7, <-arrived)
}

// A direction that is slowed down takes longer, the other does not, and afterwards it is as
// fast as before.
func TestSlowDirectionTakesLonger(t *testing.T) {
	const slow = 200 * time.Millisecond
	l, dialer, node := dialed(t, nil)
	l.Slow(2, 1, slow)
	require.GreaterOrEqual(t, pass(t, dialer, node), slow)
	least := time.Hour // of several: the machine may be busy
	for range 20 {
		least = min(least, pass(t, node, dialer))
	}
	require.Less(t, least, slow)
	l.Slow(2, 1, 0)
	for range 20 {
		least = min(least, pass(t, dialer, node))
	}
	require.Less(t, least, slow)
}

// A connection ends at both ends, and strangers are sent away.
func TestEndsAreTold(t *testing.T) {
	_, dialer, node := dialed(t, nil)
	require.NoError(t, node.Close())
	require.NoError(t, dialer.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := dialer.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)

	stranger, err := net.Dial("tcp", dialer.RemoteAddr().String())
	require.NoError(t, err)
	_, err = stranger.Write(make([]byte, 100))
	require.NoError(t, err)
	require.NoError(t, stranger.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = stranger.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, net.ErrClosed)
	require.NoError(t, stranger.Close())
}
