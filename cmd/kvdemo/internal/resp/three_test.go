// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// dialThree returns a client that speaks version 3 of the protocol.
func dialThree(t *testing.T, address string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: address, Protocol: 3, MaxRetries: -1, DialTimeout: time.Minute, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// inThree has the replies of version 3 that differ from those of version 2: maps, numbers
// with a fraction, pairs, and nothing.
var inThree = []answer{
	{"HSET h f 1 g 2", "2"}, {"HGETALL h", "map[f:1 g:2]"}, {"HGETALL none", "map[]"}, {"HGET h none", "<nil>"}, {"HMGET h f none", "[1 <nil>]"},
	{"HKEYS h", "[f g]"}, {"HVALS h", "[1 2]"}, {"ZADD z 1.5 a inf b", "2"}, {"ZSCORE z a", "1.5"}, {"ZSCORE z b", "+Inf"}, {"ZSCORE z none", "<nil>"},
	{"ZRANGEBYSCORE z 0 9", "[a]"}, {"ZRANGEBYSCORE z 0 9 WITHSCORES", "[[a 1.5]]"}, {"GET none", "<nil>"}, {"MGET none", "[<nil>]"},
	{"SET k v", "OK"}, {"SET k w NX", "<nil>"}, {"GET k", "v"}, {"EXISTS k", "1"}, {"CONFIG GET databases", "map[databases:1]"},
}

func TestVersionThree(t *testing.T) {
	address := listen(t, Config{Backend: newGroups(t, 1)})
	c := dialThree(t, address)
	for _, step := range append(inThree, answer{"COMMAND DOCS", "map[]"}, answer{"CONFIG GET nothing", "map[]"}) {
		require.Equal(t, step.want, ask(t, c, step.command), step.command)
	}
	w := dialWire(t, address)
	w.send("HELLO 3 SETNAME me\r\nZSCORE z a\r\nWATCH k\r\n")
	w.want("%7\r\n$6\r\nserver\r\n$6\r\nkvdemo\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:")
	w.line()
	w.want("$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n,1.5\r\n+OK\r\n")
	require.NoError(t, c.Set(t.Context(), "k", "x", 0).Err())
	w.send("MULTI\r\nHGETALL h\r\nEXEC\r\nMULTI\r\nHGETALL h\r\nEXEC\r\nHELLO\r\n")
	w.want("+OK\r\n+QUEUED\r\n_\r\n+OK\r\n+QUEUED\r\n*1\r\n%2\r\n$1\r\nf\r\n$1\r\n1\r\n$1\r\ng\r\n$1\r\n2\r\n%7\r\n")
	w = dialWire(t, address)
	w.send("HELLO 4\r\nHELLO 3 SETNAME\r\nHGETALL h\r\nHELLO 3\r\n")
	require.Contains(t, w.line(), "-NOPROTO this server speaks versions 2 and 3")
	require.Contains(t, w.line(), "-ERR HELLO: want 2 or 3")
	w.want("*4\r\n$1\r\nf\r\n")

	w = dialWire(t, address)
	w.send("HELLO 3\r\n")
	for w.line() != "*0" { // modules
		continue
	}
	w.send("SUBSCRIBE __keyspace@0__:k\r\nPING\r\nUNSUBSCRIBE\r\nPSUBSCRIBE __keyevent@0__:s*\r\n")
	w.want(">3\r\n$9\r\nsubscribe\r\n$16\r\n__keyspace@0__:k\r\n:1\r\n+PONG\r\n>3\r\n$11\r\nunsubscribe\r\n$16\r\n__keyspace@0__:k\r\n:0\r\n")
	w.want(">3\r\n$10\r\npsubscribe\r\n$17\r\n__keyevent@0__:s*\r\n:1\r\n")
	require.NoError(t, c.Set(t.Context(), "k", "y", 0).Err())
	w.want(">4\r\n$8\r\npmessage\r\n$17\r\n__keyevent@0__:s*\r\n$18\r\n__keyevent@0__:set\r\n$1\r\nk\r\n")

	sub := c.Subscribe(t.Context(), "__keyspace@0__:k")
	defer func() { _ = sub.Close() }()
	_, err := sub.Receive(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Set(t.Context(), "k", "z", 0).Err())
	m, err := sub.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.Equal(t, "set", m.Payload)
}

// The tables say of Redis what is true, in version 3, too.
func TestAnswersInVersionThreeAreThoseOfRedis(t *testing.T) {
	c := dialThree(t, startRedis(t).Options().Addr)
	for _, step := range inThree {
		if step.command != "CONFIG GET databases" {
			require.Equal(t, step.want, ask(t, c, step.command), step.command)
		}
	}
}
