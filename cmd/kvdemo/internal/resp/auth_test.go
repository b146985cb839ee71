// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/strangers"
)

// With a password, a connection is of no use before AUTH, and client libraries give the
// password in both versions of the protocol.
func TestPassword(t *testing.T) {
	address := listen(t, Config{Backend: newGroups(t, 1), Password: "a secret"})
	dial := func(version int, o redis.Options) *redis.Client {
		o.Addr, o.Protocol, o.MaxRetries, o.DialTimeout, o.ReadTimeout = address, version, -1, time.Minute, time.Minute
		return redis.NewClient(&o)
	}
	for _, version := range []int{2, 3} {
		c := dial(version, redis.Options{Password: "a secret"})
		require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
		require.NoError(t, c.Close())
		for _, bad := range []redis.Options{{Password: "another"}, {Username: "ann", Password: "a secret"}, {}} {
			c := dial(version, bad)
			require.ErrorContains(t, c.Get(t.Context(), "k").Err(), map[bool]string{true: "NOAUTH", false: "WRONGPASS"}[bad.Password == ""])
			require.NoError(t, c.Close())
		}
	}
	w := dialWire(t, address)
	w.send("GET k\r\nMULTI\r\nSUBSCRIBE __keyspace@0__:k\r\nHELLO 2\r\nINFO\r\nAUTH default \"a secret\"\r\nGET k\r\nRESET\r\nGET k\r\n")
	w.want(strings.Repeat("-NOAUTH Authentication required.\r\n", 3))
	require.Contains(t, w.line(), "-NOAUTH HELLO must be called")
	w.want("-NOAUTH Authentication required.\r\n+OK\r\n$1\r\nv\r\n+RESET\r\n-NOAUTH Authentication required.\r\n")
	w.send(strings.Repeat("AUTH no\r\n", 2*maxGuesses) + "AUTH \"a secret\"\r\nGET k\r\n")
	all, err := io.ReadAll(w.r)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("-WRONGPASS invalid username-password pair\r\n", maxGuesses), string(all), "then guesses need another connection")
}

// Connections that have not given the password take no client's place, and little memory.
func TestConnectionsBeforeThePasswordAreStrangers(t *testing.T) {
	s := New(Config{Backend: newGroups(t, 1), Password: "p", Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	s.maxClients = 1
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	for range strangers.Limit + 10 {
		w := dialWire(t, l.Addr().String())
		_, _ = io.WriteString(w.Conn, "PING\r\n") // another may have taken the place
	}
	require.Eventually(t, func() bool { return s.cfg.Strangers.Len() == strangers.Limit }, time.Minute, time.Millisecond)
	big := dialWire(t, l.Addr().String())
	big.send("*2\r\n$4\r\nAUTH\r\n$100000\r\n" + strings.Repeat("x", maxInlineBytes))
	require.Contains(t, big.line(), "-ERR refused: a command of more than 65536 bytes before the password")
	one := dialWire(t, l.Addr().String())
	one.send("AUTH p\r\nPING\r\n")
	one.want("+OK\r\n+PONG\r\n")
	require.EqualValues(t, 1, s.clients.Load())
	two := dialWire(t, l.Addr().String())
	two.send("AUTH p\r\n")
	require.Equal(t, "-ERR max number of clients reached", two.line())
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
}
