// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/strangers"
)

// countedConn is a node's end of a connection: which address it is from, and how many
// are open.
type countedConn struct {
	net.Conn
	from net.Addr
	open *atomic.Int64
	once sync.Once
}

func (c *countedConn) RemoteAddr() net.Addr { return c.from }
func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// Connections that show no certificate, or a bad one, or say nothing, are at most as many
// as there are places, whatever they do; and a client of another address gets in.
func TestConnectionsOfStrangersAreBounded(t *testing.T) {
	synctest.Test(t, boundStrangers) // closing a connection that nobody reads takes 5 s
}

func boundStrangers(t *testing.T) {
	const limit = 20
	dir := t.TempDir()
	require.NoError(t, certs.Generate(dir, certs.ValidFor(time.Hour), certs.Subject{Cluster: 5, Node: 1}, certs.Subject{Cluster: 5, Client: "ann"}))
	keyring, err := certs.NewKeyring(certs.NodeFiles(dir, 1))
	require.NoError(t, err)
	var crowd, open atomic.Int64
	server := &Server{Keyring: keyring, Strangers: strangers.New(limit, 1, rand.IntN), Refused: func(why Refusal, _ net.Addr, _ error) {
		if why == refusedCrowd {
			crowd.Add(1)
		}
	}}
	var mu sync.Mutex
	var dialed []net.Conn // the other ends
	type greeted struct {
		conn net.Conn
		info authInfo
		err  error
	}
	dial := func(last byte, say func(net.Conn)) greeted {
		here, there := net.Pipe()
		mu.Lock()
		dialed = append(dialed, there)
		mu.Unlock()
		open.Add(1)
		raw := &countedConn{Conn: here, from: &net.TCPAddr{IP: net.IPv4(10, 0, 0, last)}, open: &open}
		go say(there)
		conn, info, err := serverCredentials{server}.ServerHandshake(raw)
		if err != nil {
			_ = raw.Close() // as gRPC does
			return greeted{err: err}
		}
		return greeted{conn, info.(authInfo), nil}
	}
	var bad []greeted
	for range 2 * limit {
		g := dial(1, func(c net.Conn) { _ = tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake() })
		require.Error(t, g.info.refused)
		bad = append(bad, g)
	}
	require.EqualValues(t, limit, open.Load())
	require.EqualValues(t, limit, server.Strangers.Len())

	var silent sync.WaitGroup
	for range 2 * limit {
		silent.Go(func() { assert.Error(t, dial(1, func(net.Conn) {}).err) })
	}
	synctest.Wait()
	require.GreaterOrEqual(t, crowd.Load(), int64(limit))
	require.EqualValues(t, limit, open.Load())

	ann, err := Client(certs.ClientFiles(dir, "ann"))
	require.NoError(t, err)
	g := dial(2, func(c net.Conn) { _ = tls.Client(c, ann).Handshake() })
	require.NoError(t, g.err)
	require.NoError(t, g.info.refused)
	require.LessOrEqual(t, server.Strangers.Len(), limit)

	for _, b := range append(bad, g) {
		_ = b.conn.Close() // some are closed
	}
	mu.Lock()
	for _, c := range dialed {
		_ = c.Close() // likewise
	}
	mu.Unlock()
	silent.Wait()
	time.Sleep(2 * refusedLasts) // those who refused them have ended, too
	require.Zero(t, server.Strangers.Len())
	require.Zero(t, open.Load())
}

// The connections of clients are bounded, and one that ends makes room, however often it is closed.
func TestClientsAreBounded(t *testing.T) {
	var why []Refusal
	server := &Server{MaxClients: 2, Strangers: strangers.New(5, 1, rand.IntN), Refused: func(r Refusal, _ net.Addr, err error) {
		require.EqualError(t, err, "2 clients are connected, want at most that")
		why = append(why, r)
	}}
	greet := func() (net.Conn, error) {
		here, there := net.Pipe()
		go func() { _, _ = there.Write([]byte("P")) }()
		conn, _, err := serverCredentials{server}.ServerHandshake(here)
		return conn, err
	}
	first, err := greet()
	require.NoError(t, err)
	_, err = greet()
	require.NoError(t, err)
	_, err = greet()
	require.Error(t, err)
	require.Equal(t, []Refusal{refusedCrowd}, why)
	require.NoError(t, first.Close())
	_ = first.Close() // as a server may
	_, err = greet()
	require.NoError(t, err)
	_, err = greet()
	require.Error(t, err)
	require.Zero(t, server.Strangers.Len())
}
