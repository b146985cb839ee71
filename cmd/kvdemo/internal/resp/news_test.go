// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/internal/strangers"
)

func TestSubscribersHearOfChanges(t *testing.T) {
	g := newGroups(t, 3)
	address := listen(t, Config{Backend: g})
	c, ctx := dial(t, address), t.Context()
	sub := c.Subscribe(ctx, "__keyspace@0__:a")
	defer func() { _ = sub.Close() }()
	_, err := sub.Receive(ctx)
	require.NoError(t, err)
	all := c.PSubscribe(ctx, "__keyevent@0__:*")
	defer func() { _ = all.Close() }()
	_, err = all.Receive(ctx)
	require.NoError(t, err)

	require.NoError(t, c.Set(ctx, "a", 1, 0).Err())
	require.NoError(t, c.Set(ctx, "b", 1, 0).Err())
	require.NoError(t, c.Expire(ctx, "a", time.Hour).Err())
	require.NoError(t, c.Del(ctx, "a").Err())
	for _, want := range []string{"set", "expire", "del"} {
		m, err := sub.ReceiveMessage(ctx)
		require.NoError(t, err)
		require.Equal(t, want, m.Payload)
		require.Equal(t, "__keyspace@0__:a", m.Channel)
	}
	seen := map[string]bool{}
	for range 4 {
		m, err := all.ReceiveMessage(ctx)
		require.NoError(t, err)
		seen[m.Channel+" "+m.Payload] = true
	}
	require.Equal(t, map[string]bool{
		"__keyevent@0__:set a": true, "__keyevent@0__:set b": true, "__keyevent@0__:expire a": true, "__keyevent@0__:del a": true,
	}, seen)
	require.NoError(t, sub.Ping(ctx, "x"))
	pong, err := sub.Receive(ctx)
	require.NoError(t, err)
	require.Equal(t, "Pong<x>", fmt.Sprint(pong))

	w := dialWire(t, address)
	w.send("PSUBSCRIBE *\r\nGET a\r\nSUBSCRIBE x\r\nPUNSUBSCRIBE\r\nUNSUBSCRIBE\r\nQUIT\r\n")
	w.want("*3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:1\r\n")
	require.Contains(t, w.line(), "-ERR 'GET' cannot be used by a subscriber")
	require.Contains(t, w.line(), "-ERR channel 'x'")
	w.want("*3\r\n$12\r\npunsubscribe\r\n$1\r\n*\r\n:0\r\n*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n+OK\r\n")
	_, err = w.r.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// unsent is a connection that counts bytes which wait to be sent.
type unsent struct {
	redcon.DetachedConn
	bytes, most int
}

func (u *unsent) Context() any   { return nil }
func (u *unsent) WriteArray(int) {}
func (u *unsent) Flush() error   { u.bytes = 0; return nil }
func (u *unsent) WriteBulkString(s string) {
	u.bytes += len(s)
	u.most = max(u.most, u.bytes)
}

// A change can be news for each of many patterns.
func TestMessagesOfManyPatternsTakeLittleMemory(t *testing.T) {
	conn := &unsent{}
	sub := &subscriber{conn: conn, patterns: map[string]*regexp.Regexp{}}
	for i := range 100 {
		pattern := strings.Repeat("*", i+1)
		_, sub.patterns[pattern], _ = glob(pattern)
	}
	require.NoError(t, sub.messages(slices.Repeat([]kv.Event{{Kind: kv.EventPut, Key: strings.Repeat("k", kv.MaxKeyBytes)}}, 10)))
	require.Zero(t, conn.bytes)
	require.Less(t, conn.most, 2*flushBytes)
}

func TestPatternsOfAClientAreBoundedTogether(t *testing.T) {
	w := dialWire(t, listen(t, Config{Backend: newGroups(t, 1)}))
	for i := range 5 {
		w.send("PSUBSCRIBE " + strings.Repeat("?", 4000+i) + "\r\n")
		if i < 4 {
			w.want("*3\r\n")
			for range 5 {
				w.line()
			}
		}
	}
	require.Equal(t, "-ERR patterns of 20010 bytes, want at most 16384 together", w.line())
}

// A client can tell a write that did nothing from one whose outcome is unknown.
func TestFailuresSayWhatBecameOfAWrite(t *testing.T) {
	g := newGroups(t, 1)
	c := dial(t, listen(t, Config{Backend: g}))
	for _, step := range []struct {
		err  error
		want string
	}{
		{errors.New("no\nleader"), "TRYAGAIN no leader"},
		{fmt.Errorf("group 1: %w", status.Error(codes.Unavailable, "no leader")), "TRYAGAIN group 1: no leader"},
		{partial{errors.New("lost")}, "UNKNOWN the write may or may not take effect; read before you write again: lost"},
		{fmt.Errorf("%w key", kv.ErrInvalid), "ERR invalid key"},
	} {
		g.mu.Lock()
		g.fail = step.err
		g.mu.Unlock()
		require.EqualError(t, c.Set(t.Context(), "a", 1, 0).Err(), step.want)
		if !strings.HasPrefix(step.want, "UNKNOWN") {
			require.EqualError(t, c.Get(t.Context(), "a").Err(), step.want)
			require.EqualError(t, c.Watch(t.Context(), func(*redis.Tx) error { return nil }, "a"), step.want)
		}
		require.Error(t, c.Do(t.Context(), "SCAN", 0).Err())
	}
}

func TestRefusedConnectionIsToldWhy(t *testing.T) {
	address := listen(t, Config{Backend: newGroups(t, 1), Secure: func(net.Conn) (net.Conn, error) { return nil, errors.New("no certificate") }})
	w := dialWire(t, address)
	w.send("PING\r\n")
	require.Equal(t, "-ERR refused: no certificate", w.line())
}

func TestTooManyClientsAreTold(t *testing.T) {
	g := newGroups(t, 1)
	cfg := Config{Backend: g, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	s := New(cfg)
	s.maxClients = 1
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	one := dialWire(t, l.Addr().String())
	one.send("PING\r\n")
	one.want("+PONG\r\n")
	two := dialWire(t, l.Addr().String())
	require.Equal(t, "-ERR max number of clients reached", two.line())
	one.send("QUIT\r\n")
	one.want("+OK\r\n")
	require.Eventually(t, func() bool { return s.clients.Load() == 0 }, time.Minute, time.Millisecond)
	three := dialWire(t, l.Addr().String())
	three.send("PING\r\n")
	three.want("+PONG\r\n")
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
}

// A client that does not read its replies is cut off, and takes little memory until then.
func TestClientThatDoesNotReadIsCutOff(t *testing.T) {
	g := newGroups(t, 1)
	s := New(Config{Backend: g, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	s.patience = 50 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	w := dialWire(t, l.Addr().String())
	w.send(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$%d\r\n%s\r\n", kv.MaxInlineBytes, strings.Repeat("x", kv.MaxInlineBytes)))
	w.want("+OK\r\n")
	w.send(strings.Repeat("GET a\r\n", 100)) // more than the sockets take
	require.Eventually(t, func() bool { return s.clients.Load() == 0 }, time.Minute, time.Millisecond)
	sub := dialWire(t, l.Addr().String())
	sub.send("SUBSCRIBE __keyevent@0__:set\r\n")
	sub.want("*3\r\n$9\r\nsubscribe\r\n$18\r\n__keyevent@0__:set\r\n:1\r\n")
	go func() { // until it is cut off
		for err := error(nil); err == nil; {
			_, err = fmt.Fprintf(sub.Conn, "*2\r\n$4\r\nPING\r\n$%d\r\n%s\r\n", kv.MaxInlineBytes, strings.Repeat("x", kv.MaxInlineBytes))
		}
	}()
	require.Eventually(t, func() bool { return s.clients.Load() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
}

// Connections that have shown no certificate or password take no place of a client, however
// many there are.
func TestHandshakesThatSayNothingTakeNoPlace(t *testing.T) {
	secure := func(raw net.Conn) (net.Conn, error) {
		var word [1]byte
		if _, err := io.ReadFull(raw, word[:]); err != nil || word[0] != '!' {
			return nil, fmt.Errorf("who are you? %w", err)
		}
		return raw, nil
	}
	s := New(Config{Backend: newGroups(t, 1), Secure: secure, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	s.maxClients = 2
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	for range strangers.Limit + 50 {
		dialWire(t, l.Addr().String())
	}
	require.Eventually(t, func() bool { return s.cfg.Strangers.Len() == strangers.Limit }, time.Minute, time.Millisecond)
	require.Zero(t, s.clients.Load())
	one := dialWire(t, l.Addr().String())
	one.send("!PING\r\n")
	one.want("+PONG\r\n")
	require.EqualValues(t, 1, s.clients.Load())
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
	require.Eventually(t, func() bool { return s.cfg.Strangers.Len() == 0 && s.clients.Load() == 0 }, time.Minute, time.Millisecond)
}

// Each subscriber is sent the changes of all groups: where there are many groups, there are fewer subscribers.
func TestSubscribersAreBoundedByGroups(t *testing.T) {
	cfg := Config{Backend: newGroups(t, 3), Log: slog.New(slog.DiscardHandler)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := New(cfg)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	s.followed = maxFollowed - 4
	c := dial(t, l.Addr().String())
	first := c.Subscribe(t.Context(), "__keyspace@0__:a")
	_, err = first.Receive(t.Context())
	require.NoError(t, err)
	second := c.Subscribe(t.Context(), "__keyspace@0__:a")
	_, err = second.Receive(t.Context())
	require.ErrorContains(t, err, "TRYAGAIN subscribers follow 65538 groups together, want at most 65536")
	require.NoError(t, errors.Join(first.Close(), second.Close(), s.Close(), <-served))
	require.Equal(t, maxFollowed-4, s.followed)
}
