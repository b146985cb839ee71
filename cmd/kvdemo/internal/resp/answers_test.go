// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// redisServer has the test compare answers with those of a redis-server, which must be
// installed.
var redisServer = flag.Bool("redis-server", false, "compare with redis-server: make test-redis")

// answer is a command and what a client shows of its reply.
type answer struct{ command, want string }

// ask sends a command, whose arguments have spaces between them, and returns what a client
// shows of the reply.
func ask(t *testing.T, c *redis.Client, command string) string {
	t.Helper()
	args := []any{}
	for _, a := range strings.Split(command, " ") {
		args = append(args, a)
	}
	conn := c.Conn() // the same connection for all
	reply, err := conn.Do(t.Context(), args...).Result()
	require.NoError(t, conn.Close())
	if err != nil && !errors.Is(err, redis.Nil) {
		return err.Error()
	}
	return fmt.Sprint(reply)
}

const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// answers are commands on hashes, sorted sets and strings with their answers, in this order.
// Redis gives the same answers.
var answers = []answer{
	{"HSET h f 1 g 2", "2"}, {"HSET h f 3 i 4", "1"}, {"HGET h f", "3"}, {"HGET h none", "<nil>"}, {"HGET none f", "<nil>"},
	{"HGETALL h", "[f 3 g 2 i 4]"}, {"HGETALL none", "[]"}, {"HMGET h g none f", "[2 <nil> 3]"}, {"HMGET none f", "[<nil>]"},
	{"HKEYS h", "[f g i]"}, {"HVALS h", "[3 2 4]"}, {"HLEN h", "3"}, {"HLEN none", "0"}, {"HEXISTS h f", "1"}, {"HEXISTS h none", "0"},
	{"HSTRLEN h f", "1"}, {"HSTRLEN h none", "0"}, {"HSETNX h f 9", "0"}, {"HSETNX h n 9", "1"}, {"HGET h n", "9"},
	{"HDEL h f f none", "1"}, {"HDEL none f", "0"}, {"HMSET h f 1 f 2", "OK"}, {"HGET h f", "2"}, {"HSET h  x", "1"}, {"HGET h ", "x"},
	{"HSET h f", "ERR wrong number of arguments for 'hset' command"}, {"HMSET h f", "ERR wrong number of arguments for 'hmset' command"},
	{"HSET h f 1 g", "ERR wrong number of arguments for 'hset' command"}, {"HMSET h f 1 g", "ERR wrong number of arguments for 'hmset' command"},
	{"HGET h", "ERR wrong number of arguments for 'hget' command"}, {"HDEL h", "ERR wrong number of arguments for 'hdel' command"},

	{"ZADD z 1 a 2 b", "2"}, {"ZADD z 1 a 3 b", "0"}, {"ZADD z CH 1 a 4 b 5 c", "2"}, {"ZSCORE z b", "4"}, {"ZSCORE z none", "<nil>"}, {"ZSCORE none a", "<nil>"},
	{"ZADD z NX 9 a 9 d", "1"}, {"ZSCORE z a", "1"}, {"ZADD z XX 2 a 2 e", "0"}, {"ZSCORE z a", "2"}, {"ZSCORE z e", "<nil>"},
	{"ZADD z GT CH 1 a 5 b", "1"}, {"ZADD z LT CH 1 a 9 b", "1"}, {"ZADD z XX GT CH 3 a 3 new", "1"}, {"ZADD none XX 1 a", "0"}, {"EXISTS none", "0"},
	{"ZCARD z", "4"}, {"ZCARD none", "0"}, {"ZREM z d d none", "1"}, {"ZREM none a", "0"},
	{"ZRANGEBYSCORE z -inf +inf WITHSCORES", "[a 3 b 5 c 5]"}, {"ZRANGEBYSCORE z (3 inf", "[b c]"}, {"ZRANGEBYSCORE z 3 (5", "[a]"}, {"ZRANGEBYSCORE z 6 1", "[]"},
	{"ZRANGEBYSCORE z (5 (5", "[]"}, {"ZRANGEBYSCORE z 5 5", "[b c]"}, {"ZRANGEBYSCORE z 5 (5", "[]"},
	{"ZRANGEBYSCORE z 0 9 LIMIT 1 1", "[b]"}, {"ZRANGEBYSCORE z 0 9 LIMIT 1 -1", "[b c]"}, {"ZRANGEBYSCORE z 0 9 LIMIT 5 1", "[]"}, {"ZRANGEBYSCORE z 0 9 LIMIT -1 5", "[]"},
	{"ZRANGEBYSCORE z 0 9 LIMIT 0 0", "[]"}, {"ZRANGEBYSCORE z 0 9 limit 0 2 withscores", "[a 3 b 5]"}, {"ZRANGEBYSCORE none 0 9", "[]"},
	{"ZADD s 0.1 a -1.5 b inf c -inf d 1e20 e 123456789012345680 f -0.5e-7 g 3 h", "8"},
	{"ZRANGEBYSCORE s -inf inf WITHSCORES", "[d -inf b -1.5 g -4.9999999999999998e-08 a 0.10000000000000001 h 3 f 1.2345678901234568e+17 e 1e+20 c inf]"},
	{"ZADD z x a", "ERR value is not a valid float"}, {"ZADD z nan a", "ERR value is not a valid float"}, {"ZADD z 1", "ERR wrong number of arguments for 'zadd' command"},
	{"ZADD z 1 a 2", "ERR syntax error"}, {"ZADD z NX XX 1 a", "ERR XX and NX options at the same time are not compatible"},
	{"ZADD z GT LT 1 a", "ERR GT, LT, and/or NX options at the same time are not compatible"}, {"ZADD z NX GT 1 a", "ERR GT, LT, and/or NX options at the same time are not compatible"},
	{"ZRANGEBYSCORE z x 1", "ERR min or max is not a float"}, {"ZRANGEBYSCORE z 0 1 LIMIT 1", "ERR syntax error"}, {"ZRANGEBYSCORE z 0 1 LIMIT x 1", "ERR value is not an integer or out of range"},
	{"ZRANGEBYSCORE z 0 1 BAD", "ERR syntax error"},

	{"SET t v", "OK"}, {"TYPE t", "string"}, {"TYPE h", "hash"}, {"TYPE z", "zset"}, {"TYPE none", "none"}, {"DBSIZE", "4"},
	{"HSET t f 1", wrongType}, {"HGET t f", wrongType}, {"HGETALL z", wrongType}, {"HLEN t", wrongType}, {"HDEL z f", wrongType}, {"HMSET z f 1", wrongType},
	{"ZADD h 1 a", wrongType}, {"ZSCORE t a", wrongType}, {"ZCARD h", wrongType}, {"ZREM t a", wrongType}, {"ZRANGEBYSCORE h 0 1", wrongType},
	{"GET h", wrongType}, {"GET z", wrongType}, {"INCR h", wrongType}, {"STRLEN z", wrongType}, {"GETSET h v", wrongType}, {"GETDEL z", wrongType}, {"SET h v GET", wrongType},
	{"MGET t h z none", "[v <nil> <nil> <nil>]"}, {"EXISTS h z t", "3"}, {"SETNX h v", "0"}, {"SET z v NX", "<nil>"},
	{"EXPIRE h 100", "1"}, {"HSET h k 1", "1"}, {"TTL h", "100"}, {"EXPIRE z 100", "1"}, {"ZADD z 7 q", "1"}, {"TTL z", "100"}, {"PERSIST z", "1"}, {"TTL z", "-1"},
	{"HDEL h f g i n k ", "6"}, {"EXISTS h", "0"}, {"HSET h f 1", "1"}, {"TTL h", "-1"}, {"SET h v", "OK"}, {"GET h", "v"}, {"DEL h", "1"},
	{"ZREM z a b c q", "4"}, {"EXISTS z", "0"}, {"ZADD z 1 a", "1"}, {"SET z v", "OK"}, {"GET z", "v"}, {"DEL z s", "2"}, {"ZADD z 5 b", "1"},
	{"ZRANGEBYSCORE z 0 9", "[b]"}, {"DEL z", "1"}, {"ZCARD z", "0"}, {"DBSIZE", "1"}, {"GETDEL t", "v"}, {"DBSIZE", "0"},

	{"SET e v", "OK"}, {"EXPIRE e 100 XX", "0"}, {"EXPIRE e 100 GT", "0"}, {"EXPIRE e 100 NX", "1"}, {"EXPIRE e 200 NX", "0"}, {"TTL e", "100"}, {"EXPIRE e 50 GT", "0"},
	{"EXPIRE e 200 GT", "1"}, {"TTL e", "200"}, {"EXPIRE e 300 LT", "0"}, {"EXPIRE e 150 XX LT", "1"}, {"TTL e", "150"}, {"PERSIST e", "1"}, {"EXPIRE e 90 LT", "1"}, {"EXPIRE e 80 XX", "1"}, {"TTL e", "80"},
	{"EXPIRE e 5 NX XX", "ERR NX and XX, GT or LT options at the same time are not compatible"}, {"EXPIRE e 5 GT LT", "ERR GT and LT options at the same time are not compatible"},
	{"EXPIRE e 5 BAD", "ERR Unsupported option BAD"}, {"EXPIRE none 5 NX", "0"}, {"EXPIRE e -1 NX", "0"}, {"EXPIRE e -1 GT", "0"}, {"EXISTS e", "1"}, {"EXPIRE e -1 LT", "1"}, {"EXISTS e", "0"},
}

func TestAnswersOfHashesAndSortedSets(t *testing.T) {
	c := dial(t, listenAt(t, Config{Backend: newGroups(t, 1)}, stopped()))
	for _, step := range answers {
		require.Equal(t, step.want, ask(t, c, step.command), step.command)
	}
}

// startRedis starts a redis-server without data and returns a client of it.
func startRedis(t *testing.T) *redis.Client {
	t.Helper()
	if !*redisServer {
		t.Skip("make test-redis")
	}
	program, err := exec.LookPath("redis-server")
	require.NoError(t, err, "install it with: apt-get install redis-server")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	server := exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	})
	c := dial(t, "127.0.0.1:"+port)
	require.Eventually(t, func() bool { return c.Ping(t.Context()).Err() == nil }, time.Minute, 10*time.Millisecond)
	return c
}

// The table says of Redis what is true.
func TestAnswersAreThoseOfRedis(t *testing.T) {
	c := startRedis(t)
	for _, step := range answers {
		require.Equal(t, step.want, ask(t, c, step.command), step.command)
	}
}

// Commands drawn at random get the same answers from both, in both versions.
func TestDrawnCommandsAreAnsweredAsByRedis(t *testing.T) {
	theirs := startRedis(t)
	compareDrawn(t, theirs, dial(t, listen(t, Config{Backend: newGroups(t, 1)})))
	require.NoError(t, theirs.FlushAll(t.Context()).Err())
	compareDrawn(t, dialThree(t, theirs.Options().Addr), dialThree(t, listen(t, Config{Backend: newGroups(t, 1)})))
}

func compareDrawn(t *testing.T, theirs, ours *redis.Client) {
	rng := rand.New(rand.NewPCG(2026, 11))
	one := func(words ...string) string { return words[rng.IntN(len(words))] }
	some := func(f func() string) string {
		text := ""
		for range 1 + rng.IntN(3) {
			text += " " + f()
		}
		return text
	}
	field := func() string { return one("a", "b", "c", "d", "") }
	score := func() string { return one("1", "2", "-3.25", "inf", "-inf", "0.3", "1e9") }
	for n := range 4000 {
		command := one(
			"HSET k"+some(func() string { return field() + " " + score() }), "HSETNX k "+field()+" 1", "HGET k "+field(), "HGETALL k", "HMGET k"+some(field), "HDEL k"+some(field), "HLEN k", "HEXISTS k "+field(),
			"ZADD k"+one("", " NX", " XX", " GT", " LT", " CH", " XX GT CH")+some(func() string { return score() + " " + field() }), "ZREM k"+some(field), "ZSCORE k "+field(), "ZCARD k",
			"ZRANGEBYSCORE k "+one("", "(")+score()+" "+one("", "(")+score()+one("", " WITHSCORES")+one("", " LIMIT 1 2", " LIMIT 0 -1"),
			"SET k 1", "SET k 2 KEEPTTL", "INCR k", "GET k", "GETDEL k", "DEL k", "TYPE k", "EXISTS k", "STRLEN k", "DBSIZE",
			"EXPIRE k "+one("100", "200", "-1")+one("", " NX", " XX", " GT", " LT", " XX GT"), "PERSIST k", "TTL k",
		)
		command = strings.ReplaceAll(command, "k", one("x", "y"))
		require.Equal(t, ask(t, theirs, command), ask(t, ours, command), "command %d: %s", n, command)
	}
}

// Hashes and sorted sets are listed by their types, and their rows are no keys.
func TestScanKnowsTypes(t *testing.T) {
	c := dial(t, listen(t, Config{Backend: newGroups(t, 1)}))
	ctx := t.Context()
	for i := range 5 {
		require.NoError(t, c.HSet(ctx, fmt.Sprint("h", i), "f", "v").Err())
		require.NoError(t, c.Set(ctx, fmt.Sprint("t", i), "v", 0).Err())
		for m := range 20 {
			require.NoError(t, c.ZAdd(ctx, fmt.Sprint("z", i), redis.Z{Score: float64(m), Member: m}).Err())
		}
	}
	for of, want := range map[string]int{"string": 5, "hash": 5, "zset": 5, "list": 0, "": 15} {
		found, cursor := 0, uint64(0)
		for {
			keys, next, err := c.ScanType(ctx, cursor, "", 4, of).Result()
			require.NoError(t, err)
			if found += len(keys); next == 0 {
				break
			}
			cursor = next
		}
		require.Equal(t, want, found, of)
	}
	n, err := c.DBSize(ctx).Result()
	require.NoError(t, err)
	require.EqualValues(t, 15, n)
}

// Commands on hashes share transactions in a pipeline, and MULTI has them done at once.
func TestCollectionsInPipelinesAndTransactions(t *testing.T) {
	g := newGroups(t, 1)
	w := dialWire(t, listen(t, Config{Backend: g}))
	w.send(strings.Repeat("HSET h f 1\r\nZADD z 1 a\r\n", 20) + "HGETALL h\r\nZRANGEBYSCORE z 0 5\r\nGET h\r\nHLEN h\r\n")
	w.want(":1\r\n:1\r\n" + strings.Repeat(":0\r\n:0\r\n", 19) + "*2\r\n$1\r\nf\r\n$1\r\n1\r\n*1\r\n$1\r\na\r\n-" + wrongType + "\r\n:1\r\n")
	w.send("MULTI\r\nHSET h g 2\r\nZADD z 2 b 3 c\r\nZREM z a\r\nZRANGEBYSCORE z 0 5 LIMIT 1 1\r\nZSCORE z b\r\nDEL z\r\nZADD z 9 n\r\nZRANGEBYSCORE z 0 9\r\nHGET h g\r\nTYPE z\r\nEXEC\r\n")
	w.want("+OK\r\n" + strings.Repeat("+QUEUED\r\n", 10) + "*10\r\n:1\r\n:2\r\n:1\r\n*1\r\n$1\r\nc\r\n$1\r\n2\r\n:1\r\n:1\r\n*1\r\n$1\r\nn\r\n$1\r\n2\r\n+zset\r\n")
	w.send("MULTI\r\nZRANGEBYSCORE z 0 5 LIMIT 60000 1\r\nZRANGEBYSCORE z 0 5 LIMIT 60000 1\r\nZRANGEBYSCORE z 0 5 LIMIT 9223372036854775807 1\r\nDISCARD\r\n")
	w.want("+OK\r\n+QUEUED\r\n")
	for range 2 {
		require.Contains(t, w.line(), "-ERR the ranges of a transaction pass over more than 100000 members")
	}
	w.want("+OK\r\n")
	w.send("WATCH z\r\nMULTI\r\nZADD z 1 m\r\n")
	w.want("+OK\r\n+OK\r\n+QUEUED\r\n")
	other := dialWire(t, w.RemoteAddr().String())
	other.send("ZADD z 9.5 n\r\n")
	other.want(":0\r\n")
	w.send("EXEC\r\n")
	w.want("*-1\r\n")
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Less(t, g.commands, 12)
}

func TestCollectionsOutOfBoundsAreRefused(t *testing.T) {
	c := dial(t, listen(t, Config{Backend: newGroups(t, 1)}))
	ctx := t.Context()
	half, long := strings.Repeat("v", kv.MaxInlineBytes/2), strings.Repeat("m", kv.MaxMemberBytes+1)
	require.NoError(t, c.HSet(ctx, "h", "a", half).Err())
	require.ErrorContains(t, c.HSet(ctx, "h", "b", half).Err(), "a hash has at most 1048576 bytes")
	require.ErrorContains(t, c.HSet(ctx, "h", "a", half+half).Err(), "in one command, want at most 1048576: send several")
	require.ErrorContains(t, c.ZAdd(ctx, "z", redis.Z{Member: long}).Err(), "member of a sorted set: 4097 bytes, want at most 4096")
	require.ErrorContains(t, c.ZScore(ctx, "z", long).Err(), "want at most 4096")
	require.ErrorContains(t, c.Do(ctx, "ZADD", "z", "INCR", "1", "a").Err(), "not supported: ZADD with INCR")
}
