// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/rawnode"
)

// groups are the states of a node alone, which applies what it is given at once.
type groups struct {
	mu       sync.Mutex
	stores   []*kv.Store
	fail     error
	commands int // transactions
	barriers int
}

func newGroups(t *testing.T, count int) *groups {
	db, err := kv.Open("state", kv.Identity{Cluster: 1, Node: 1}, kv.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	g := &groups{}
	for id := range count {
		s, err := db.Group(uint64(id + 1))
		require.NoError(t, err)
		g.stores = append(g.stores, s)
		_, err = g.apply(uint64(id+1), kv.Command{Op: kv.OpSystem, Key: kv.LevelKey, Value: []byte("2")})
		require.NoError(t, err)
	}
	return g
}

func (g *groups) apply(group uint64, c kv.Command) (kv.Result, error) {
	if err := c.Check(); err != nil {
		return kv.Result{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stores[group-1]
	values, err := s.Apply(rawnode.Batch{Index: s.Applied() + 1, Commands: [][]byte{c.Encode()}})
	if err != nil {
		return kv.Result{}, err
	}
	r, ok := values[0].(kv.Result)
	if !ok {
		return r, errors.New("not a result")
	}
	return r, r.Err
}

func (g *groups) Groups() int              { return len(g.stores) }
func (g *groups) State(group uint64) State { return Local{g.stores[group-1]} }
func (g *groups) Info() [][2]string        { return [][2]string{{"node", "1\r\nx"}} }
func (g *groups) failure() error           { g.mu.Lock(); defer g.mu.Unlock(); return g.fail }
func (g *groups) Barrier(context.Context, ...uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.barriers++
	return g.fail
}

func (g *groups) Transact(_ context.Context, group uint64, x *kv.Txn) (kv.Result, error) {
	if err := g.failure(); err != nil {
		return kv.Result{}, err
	}
	g.mu.Lock()
	g.commands++
	g.mu.Unlock()
	return g.apply(group, kv.Command{Op: kv.OpTxn, Txn: x})
}

// List is for one group.
func (g *groups) List(_ context.Context, q kv.Query) (kv.Page, error) {
	if err := g.failure(); err != nil {
		return kv.Page{}, err
	}
	return g.stores[0].List(q)
}

// Count is for one group.
func (g *groups) Count(ctx context.Context) (int64, error) {
	if err := g.failure(); err != nil {
		return 0, err
	}
	return g.stores[0].Count(ctx)
}

// listen starts a server and returns its address.
func listen(t *testing.T, cfg Config) string { return listenAt(t, cfg, time.Now) }

// stopped is a clock that stands still: what is left of a time to live does not depend on how busy the machine is.
func stopped() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

// listenAt is listen with a clock.
func listenAt(t *testing.T, cfg Config, now func() time.Time) string {
	cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := New(cfg)
	s.now = now
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
		require.Eventually(t, func() bool { return s.budget.used.Load() == 0 }, time.Minute, time.Millisecond)
	})
	return l.Addr().String()
}

// dial returns a client of a public library, which knows nothing of kvdemo.
func dial(t *testing.T, address string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, MaxRetries: -1, DialTimeout: time.Minute, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// wire is a connection on which each byte is the test's.
type wire struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dialWire(t *testing.T, address string) *wire {
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	t.Cleanup(func() { _ = conn.Close() })
	return &wire{t, conn, bufio.NewReader(conn)}
}

func (w *wire) send(text string) {
	_, err := io.WriteString(w.Conn, text)
	require.NoError(w.t, err)
}

// want reads a reply that must be this.
func (w *wire) want(reply string) {
	w.t.Helper()
	got := make([]byte, len(reply))
	n, err := io.ReadFull(w.r, got)
	require.Equal(w.t, reply, string(got[:n]), "%v", err)
}

// line reads one line.
func (w *wire) line() string {
	w.t.Helper()
	s, err := w.r.ReadString('\n')
	require.NoError(w.t, err)
	return strings.TrimSpace(s)
}

// Replies of commands, in this order, as redis-cli would show them.
func TestReplies(t *testing.T) {
	address := listenAt(t, Config{Backend: newGroups(t, 1)}, stopped())
	c := dial(t, address)
	for _, step := range []answer{
		{"PING", "PONG"}, {"PING hi", "hi"}, {"ECHO hi", "hi"}, {"SELECT 0", "OK"}, {"SELECT 1", "ERR there is one database, 0"},
		{"GET a", "<nil>"}, {"SET a 1", "OK"}, {"GET a", "1"}, {"SET a 2 NX", "<nil>"}, {"SET a 2 XX", "OK"}, {"SET none 2 XX", "<nil>"},
		{"SET a 3 GET", "2"}, {"SET b 1 NX GET", "<nil>"}, {"SET b 2 NX GET", "1"}, {"GET b", "1"}, {"GETSET b 9", "1"}, {"GETDEL b", "9"}, {"GETDEL b", "<nil>"},
		{"SETNX b 1", "1"}, {"SETNX b 2", "0"}, {"STRLEN a", "1"}, {"TYPE a", "string"}, {"TYPE none", "none"},
		{"EXISTS a a none b", "3"}, {"DEL a none b", "2"}, {"UNLINK a", "0"},
		{"MSET a 1 b 2", "OK"}, {"MGET a none b", "[1 <nil> 2]"}, {"MSET a", "ERR wrong number of arguments for 'mset' command"},
		{"INCR a", "2"}, {"INCRBY a 40", "42"}, {"DECR a", "41"}, {"DECRBY a 1", "40"}, {"INCR new", "1"},
		{"SET a x", "OK"}, {"INCR a", "ERR value is not an integer or out of range"}, {"INCRBY a y", "ERR value is not an integer or out of range"},
		{"SET a 9223372036854775807", "OK"}, {"INCR a", "ERR increment or decrement would overflow"},
		{"TTL none", "-2"}, {"TTL a", "-1"}, {"EXPIRE a 1000", "1"}, {"TTL a", "1000"}, {"EXPIRE none 5", "0"}, {"SET a 1 KEEPTTL", "OK"}, {"TTL a", "1000"},
		{"INCR a", "2"}, {"TTL a", "1000"}, {"PERSIST a", "1"}, {"PERSIST a", "0"}, {"PTTL a", "-1"}, {"SET a 1 EX 1000", "OK"}, {"TTL a", "1000"},
		{"SET a 1", "OK"}, {"TTL a", "-1"}, {"SETEX a 1000 v", "OK"}, {"TTL a", "1000"}, {"PSETEX a 1000000 v", "OK"}, {"TTL a", "1000"},
		{"EXPIREAT a 1", "1"}, {"GET a", "<nil>"}, {"SET a 1", "OK"}, {"EXPIRE a -1", "1"}, {"EXISTS a", "0"},
		{"SET a 1 PX 0", "ERR invalid expire time"}, {"SET a 1 EX x", "ERR value is not an integer or out of range"}, {"SET a 1 EX 99999999999999", "ERR invalid expire time"},
		{"SET a 1 NX XX", "ERR syntax error"}, {"SET a 1 EX 1 PX 1", "ERR syntax error"}, {"SET a 1 EX", "ERR syntax error"}, {"SET a 1 BAD", "ERR syntax error"},
		{"EXEC", "ERR EXEC without MULTI"}, {"DISCARD", "ERR DISCARD without MULTI"}, {"AUTH x", "ERR AUTH is not used: there are no passwords; with TLS a client is who its certificate says"},
		{"CONFIG GET appendonly", "[appendonly yes]"}, {"CONFIG GET nothing", "[]"}, {"CLIENT GETNAME", ""}, {"CLIENT SETNAME me", "OK"}, {"CLIENT KILL", "ERR CLIENT 'KILL': want ID, GETNAME, SETNAME, SETINFO, INFO or LIST"},
		{"COMMAND DOCS", "[]"}, {"COMMAND INFO get nothing", "[[get 2 [] 1 1 1] <nil>]"}, {"HELLO 4", "NOPROTO this server speaks versions 2 and 3 of the protocol"},
		{"LPUSH a 1", "ERR unknown command 'LPUSH'"}, {"GET", "ERR wrong number of arguments for 'get' command"}, {"GET a b", "ERR wrong number of arguments for 'get' command"},
		{"PUBLISH a b", "ERR not supported: messages come from changes of keys only"},
		{"UNSUBSCRIBE", "[unsubscribe <nil> 0]"}, {"SUBSCRIBE news", "ERR channel 'news': want __keyspace@0__:KEY or __keyevent@0__:EVENT, as messages come from changes of keys only"},
	} {
		require.Equal(t, step.want, ask(t, c, step.command), step.command)
	}
	info, err := c.Info(t.Context()).Result()
	require.NoError(t, err)
	require.Contains(t, info, "\r\nnode:1  x\r\n", "a value cannot begin a line")
}

func TestKeysAndValuesOutOfBoundsAreRefused(t *testing.T) {
	c := dial(t, listen(t, Config{Backend: newGroups(t, 1)}))
	long, big := strings.Repeat("k", kv.MaxKeyBytes+1), strings.Repeat("v", kv.MaxInlineBytes+1)
	for want, command := range map[string][]any{
		"key: it is empty, want 1 to 4096 bytes":              {"GET", ""},
		"key: 4097 bytes, want 1 to 4096":                     {"DEL", "a", long},
		"not UTF-8":                                           {"SET", "\xff", "v"},
		"a value of 1048577 bytes, want at most 1048576 here": {"SET", "a", big},
		"in one command, want at most 1056768":                {"MSET", "a", big[2:], "b", big[2:]},
		"keys, want at most 4096":                             append([]any{"DEL"}, slices.Repeat([]any{"a"}, kv.MaxTxnItems+1)...),
	} {
		_, err := c.Do(t.Context(), command...).Result()
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, c.Set(t.Context(), "a", big[1:], 0).Err())
	got, err := c.Get(t.Context(), "a").Result()
	require.NoError(t, err)
	require.Len(t, got, kv.MaxInlineBytes)
	keys := []string{"a", "a", "a", "a", "a"}
	require.ErrorContains(t, c.MGet(t.Context(), keys...).Err(), "ask for fewer at a time")
}

// Bytes that are no command end the connection with a word of why, and never the
// server.
func TestGarbageEndsItsConnectionOnly(t *testing.T) {
	address := listen(t, Config{Backend: newGroups(t, 1)})
	for text, want := range map[string]string{
		"*1000000000000\r\n":                     "more than 8192 arguments",
		"*9999\r\n":                              "more than 8192 arguments",
		"*1\r\n$9223372036854775807\r\n":         "more than 4194304 bytes in an argument",
		"*1\r\n$4194304\r\n":                     "a command of more than 4194304 bytes",
		"*-1\r\n":                                `'-' in a length`,
		"*0\r\n":                                 "invalid multibulk length",
		"*1\r\n$-1\r\n":                          `'-' in a length`,
		"*1\r\nGET\r\n":                          "expected '$', got 'G'",
		"*1\rx":                                  "invalid multibulk length",
		"*1\r\n$1\rx":                            "invalid bulk length",
		"*\r\n":                                  "in a length",
		"\x16\x03\x01\x00":                       "a client with TLS needs a node with TLS",
		strings.Repeat("x", maxInlineBytes+1):    "a line of more than 65536 bytes",
		"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n": "", // the parser's own error
		"SET a \"b\r\n":                          "unbalanced quotes",
	} {
		w := dialWire(t, address)
		w.send(text)
		all, err := io.ReadAll(w.r)
		require.NoError(t, err, "%.40q", text)
		require.Contains(t, string(all), want, "%.40q", text)
		require.Contains(t, string(all), "-ERR ", "%.40q", text)
	}
	w := dialWire(t, address)
	w.send("PING\r\nSET a \"b c\"\r\nGET a\r\n*1\r\n$4\r\nPI")
	w.want("+PONG\r\n+OK\r\n$3\r\nb c\r\n")
	w.send("NG\r\nQUIT\r\nPING\r\n")
	w.want("+PONG\r\n+OK\r\n")
	_, err := w.r.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// Commands that come at once share transactions and barriers, and their replies are as
// if each had come alone.
func TestPipelineSharesWork(t *testing.T) {
	g := newGroups(t, 1)
	w := dialWire(t, listen(t, Config{Backend: g}))
	w.send(strings.Repeat("INCR n\r\n", 50) + "GET n\r\nDEL n\r\nGET n\r\n" + strings.Repeat("GET n\r\n", 20) + "PING\r\n")
	for i := range 50 {
		require.Equal(t, fmt.Sprintf(":%d", i+1), w.line())
	}
	w.want("$2\r\n50\r\n:1\r\n" + strings.Repeat("$-1\r\n", 21) + "+PONG\r\n")
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Less(t, g.commands, 20, "transactions for 73 commands")
}

// Commands that come at once are each as large as alone: their values share no bound.
func TestPipelineOfLargeValues(t *testing.T) {
	c := dial(t, listen(t, Config{Backend: newGroups(t, 1)}))
	ctx := t.Context()
	value := func(b string) string { return strings.Repeat(b, kv.MaxInlineBytes) }
	require.NoError(t, c.Set(ctx, "a", value("a"), 0).Err())
	require.NoError(t, c.Set(ctx, "b", value("b"), 0).Err())
	p := c.Pipeline()
	var gets []*redis.StringCmd
	for i := range 20 {
		gets = append(gets, p.Get(ctx, []string{"a", "b"}[i%2]))
	}
	p.Incr(ctx, "n")
	for range 10 {
		gets = append(gets, p.Get(ctx, "a"))
	}
	old := p.GetSet(ctx, "a", "new")
	last := p.Get(ctx, "a")
	_, err := p.Exec(ctx)
	require.NoError(t, err)
	for i, get := range gets {
		want := value("a")
		if i < 20 && i%2 == 1 {
			want = value("b")
		}
		require.True(t, want == get.Val(), "get %d has %d bytes", i, len(get.Val()))
	}
	require.True(t, value("a") == old.Val())
	require.Equal(t, "new", last.Val())

	require.NoError(t, c.ZAdd(ctx, "z", redis.Z{Score: 7, Member: "m"}).Err())
	for _, key := range []string{"1", "2", "3", "4"} {
		require.NoError(t, c.Set(ctx, key, value(key), 0).Err())
	}
	score := p.ZScore(ctx, "z", "m")
	var olds []*redis.StringCmd
	for _, key := range []string{"1", "2", "3", "4"} {
		olds = append(olds, p.GetSet(ctx, key, "new"))
	}
	_, err = p.Exec(ctx)
	require.NoError(t, err, "a score takes from the same room")
	require.EqualValues(t, 7, score.Val())
	require.True(t, value("4") == olds[3].Val())
}

func TestKeysOfSeveralGroups(t *testing.T) {
	g := newGroups(t, 4)
	c := dial(t, listen(t, Config{Backend: g}))
	ctx := t.Context()
	var keys []string
	for i := range 8 {
		keys = append(keys, fmt.Sprint("k", i))
		require.NoError(t, c.Set(ctx, keys[i], i, 0).Err())
	}
	require.ErrorContains(t, c.MSet(ctx, "k0", 1, "k1", 1, "k2", 1, "k3", 1, "k4", 1).Err(), "what is done at once must be in one")
	got, err := c.MGet(ctx, keys...).Result()
	require.NoError(t, err)
	require.Equal(t, []any{"0", "1", "2", "3", "4", "5", "6", "7"}, got)
	n, err := c.Exists(ctx, keys...).Result()
	require.NoError(t, err)
	require.EqualValues(t, 8, n)
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			p.Incr(ctx, key)
		}
		return nil
	})
	require.ErrorContains(t, err, "what is done at once must be in one")
	n, err = c.Del(ctx, append(keys, "none")...).Result()
	require.NoError(t, err)
	require.EqualValues(t, 8, n)
}

func TestMultiExec(t *testing.T) {
	address := listen(t, Config{Backend: newGroups(t, 1)})
	w := dialWire(t, address)
	w.send("MULTI\r\nSET a 1\r\nINCR a\r\nGET a\r\nSET t x\r\nINCR t\r\nMGET a none\r\n")
	w.want("+OK\r\n" + strings.Repeat("+QUEUED\r\n", 6))
	w.send("EXEC\r\n")
	w.want("*6\r\n+OK\r\n:2\r\n$1\r\n2\r\n+OK\r\n-ERR value is not an integer or out of range\r\n*2\r\n$1\r\n2\r\n$-1\r\n")
	w.send("MULTI\r\nSET a 5\r\n*1\r\n$8\r\nNONSENSE\r\nEXEC\r\nGET a\r\n")
	w.want("+OK\r\n+QUEUED\r\n-ERR unknown command 'NONSENSE'\r\n-EXECABORT Transaction discarded because of previous errors.\r\n$1\r\n2\r\n")
	w.send("MULTI\r\nSET a 5\r\nDISCARD\r\nGET a\r\nMULTI\r\nEXEC\r\n")
	w.want("+OK\r\n+QUEUED\r\n+OK\r\n$1\r\n2\r\n+OK\r\n*0\r\n")
	w.send("MULTI\r\nWATCH a\r\nEXEC\r\n")
	w.want("+OK\r\n-ERR WATCH cannot be used between MULTI and EXEC\r\n-EXECABORT Transaction discarded because of previous errors.\r\n")

	other := dialWire(t, address)
	w.send("WATCH a none\r\n")
	w.want("+OK\r\n")
	other.send("SET a 7\r\n")
	other.want("+OK\r\n")
	w.send("MULTI\r\nSET a 8\r\nEXEC\r\nGET a\r\n")
	w.want("+OK\r\n+QUEUED\r\n*-1\r\n$1\r\n7\r\n")
	w.send("WATCH a none\r\nMULTI\r\nSET a 8\r\nEXEC\r\nGET a\r\n")
	w.want("+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n$1\r\n8\r\n")
	w.send("WATCH a none\r\n")
	w.want("+OK\r\n")
	other.send("SET none 1\r\nDEL none\r\n")
	other.want("+OK\r\n:1\r\n")
	w.send("MULTI\r\nSET a 8\r\nEXEC\r\n")
	w.want("+OK\r\n+QUEUED\r\n*-1\r\n") // it was changed and changed back
	w.send("WATCH a\r\n")
	w.want("+OK\r\n")
	other.send("SET a 9\r\n")
	other.want("+OK\r\n")
	w.send("UNWATCH\r\nMULTI\r\nSET a 10\r\nEXEC\r\n")
	w.want("+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n")
}

// A time to live of a command between MULTI and EXEC counts from EXEC, when the command is
// done, however long the client waits before.
func TestTimesToLiveInATransactionCountFromExec(t *testing.T) {
	g := newGroups(t, 1)
	s := New(Config{Backend: g, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	var hours atomic.Int64
	s.now = func() time.Time { return time.Now().Add(time.Duration(hours.Load()) * time.Hour) }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	w := dialWire(t, l.Addr().String())
	w.send("SET a 1\r\nMULTI\r\nEXPIRE a 60\r\nSETEX b 60 v\r\nSET c v EX 60\r\nPEXPIREAT a 1\r\nSET a 1\r\nPEXPIRE a 60000 NX\r\n")
	w.want("+OK\r\n+OK\r\n" + strings.Repeat("+QUEUED\r\n", 6))
	hours.Store(5)
	w.send("EXEC\r\n")
	w.want("*6\r\n:1\r\n+OK\r\n+OK\r\n:1\r\n+OK\r\n:1\r\n")
	for _, key := range []string{"a", "b", "c"} {
		deadline, err := g.stores[0].Deadline(key)
		require.NoError(t, err)
		require.WithinDuration(t, s.now().Add(time.Minute), time.UnixMilli(deadline), time.Minute, key)
	}
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
}

// go-redis's own loop over WATCH counts right with many clients at once.
func TestOptimisticTransactionsCount(t *testing.T) {
	c := dial(t, listen(t, Config{Backend: newGroups(t, 1)}))
	ctx := t.Context()
	var all sync.WaitGroup
	const workers, rounds = 8, 10
	for range workers {
		all.Go(func() {
			for done := 0; done < rounds; {
				err := c.Watch(ctx, func(tx *redis.Tx) error {
					n, err := tx.Get(ctx, "n").Int()
					if err != nil && !errors.Is(err, redis.Nil) {
						return err
					}
					_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "n", n+1, 0).Err() })
					return err
				}, "n")
				if err == nil {
					done++
				} else if !errors.Is(err, redis.TxFailedErr) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	n, err := c.Get(ctx, "n").Int()
	require.NoError(t, err)
	require.Equal(t, workers*rounds, n)
}

func TestScan(t *testing.T) {
	c := dial(t, listen(t, Config{Backend: newGroups(t, 1)}))
	ctx := t.Context()
	var want []string
	for i := range 100 {
		key := fmt.Sprintf("user:%02d", i)
		want = append(want, key)
		require.NoError(t, c.Set(ctx, key, i, 0).Err())
	}
	require.NoError(t, c.Set(ctx, "other", "x", 0).Err())
	scan := func(pattern string, count int64) (keys []string) {
		it := c.Scan(ctx, 0, pattern, count).Iterator()
		for it.Next(ctx) {
			keys = append(keys, it.Val())
		}
		require.NoError(t, it.Err())
		return keys
	}
	require.Equal(t, want, scan("user:*", 7))
	require.Equal(t, []string{"user:05", "user:15", "user:25"}, scan("user:[0-2]5", 0))
	require.Equal(t, []string{"other"}, scan("o?her", 1000))
	require.Len(t, scan("", 0), 101)
	keys, next, err := c.ScanType(ctx, 0, "", 1000, "hash").Result()
	require.NoError(t, err)
	require.Empty(t, keys)
	require.Zero(t, next)
	for want, args := range map[string][]any{
		"invalid cursor":          {"SCAN", "x"},
		"cursor 999 is not known": {"SCAN", 999},
		"syntax error":            {"SCAN", 0, "COUNT"},
		"not an integer":          {"SCAN", 0, "COUNT", 0},
		"a [ without its end":     {"SCAN", 0, "MATCH", "[a"},
	} {
		require.ErrorContains(t, c.Do(ctx, args...).Err(), want)
	}
	var cs cursors
	first := cs.put("a")
	for range maxCursors {
		cs.put("b")
	}
	_, ok := cs.get(first)
	require.False(t, ok, "the oldest is forgotten")
	require.Len(t, cs.at, maxCursors)
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, prefix string
		yes, no         []string
	}{
		{"a*", "a", []string{"a", "ab", "a\nb"}, []string{"b", "ba"}},
		{`a\*b`, "a*b", []string{"a*b"}, []string{"axb"}},
		{"a.c", "a.c", []string{"a.c"}, []string{"abc"}},
		{"[^a-c]x", "", []string{"dx"}, []string{"ax", "x"}},
		{"[a^&]x", "", []string{"^x", "&x"}, []string{"bx"}},
		{"h?llo", "h", []string{"hello", "hüllo"}, []string{"hllo"}},
	} {
		prefix, match, err := glob(c.pattern)
		require.NoError(t, err, c.pattern)
		require.Equal(t, c.prefix, prefix)
		for _, s := range c.yes {
			require.True(t, match.MatchString(s), "%s %q", c.pattern, s)
		}
		for _, s := range c.no {
			require.False(t, match.MatchString(s), "%s %q", c.pattern, s)
		}
	}
}
