// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"flag"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// redisTools has the test run redis-cli and redis-benchmark, which must be installed.
var redisTools = flag.Bool("redis-tools", false, "run redis-cli and redis-benchmark: make test-redis")

// redisTool runs a tool of Redis at a node, which must succeed.
func redisTool(t *testing.T, address, stdin, name string, args ...string) string {
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	cmd := exec.Command(name, append([]string{"-h", host, "-p", port}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

// Redis's own tools work unchanged with a cluster, at each node.
func TestRedisTools(t *testing.T) {
	if !*redisTools {
		t.Skip("make test-redis")
	}
	for _, tool := range []string{"redis-cli", "redis-benchmark"} {
		_, err := exec.LookPath(tool)
		require.NoError(t, err, "install it with: apt-get install redis-tools")
	}
	s, addresses := newRespServers(t)
	s.leader()
	cli := func(at int, stdin string, args ...string) string {
		return redisTool(t, addresses[at], stdin, "redis-cli", args...)
	}
	session := cli(0, strings.Join([]string{
		"SET a 1", "INCR a", "EXPIRE a 100", "TTL a", "PERSIST a", "MULTI", "INCR a", "GET a", "EXEC", "MGET a none", "SET a x NX", "DEL a", "EXISTS a", "NONSENSE",
	}, "\n"))
	require.Equal(t, "OK\n2\n1\n100\n1\nOK\nQUEUED\nQUEUED\n3\n3\n3\n\n\n1\n0\nERR unknown command 'NONSENSE'\n\n", session)
	var load strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&load, "SET bulk:%d %d\r\n", i, i)
	}
	require.Contains(t, cli(1, load.String(), "--pipe"), "errors: 0, replies: 1000")
	require.Equal(t, 1000, strings.Count(cli(2, "", "--scan", "--pattern", "bulk:*"), "\n"))
	require.Contains(t, cli(0, "", "INFO"), "server_name:kvdemo")

	subscriber := exec.Command("redis-cli", "-p", strings.Split(addresses[2], ":")[1], "SUBSCRIBE", "__keyspace@0__:watched")
	pipe, err := subscriber.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, subscriber.Start())
	defer func() { _ = subscriber.Wait() }() // it was killed
	defer func() { _ = subscriber.Process.Kill() }()
	buf := make([]byte, 1<<10)
	seen := ""
	for wrote := false; !strings.Contains(seen, "message\n__keyspace@0__:watched\nset\n"); {
		n, err := pipe.Read(buf)
		require.NoError(t, err, seen)
		if seen += string(buf[:n]); !wrote && strings.Contains(seen, "subscribe") {
			require.Equal(t, "OK\n", cli(0, "", "SET", "watched", "1"))
			wrote = true
		}
	}
	for _, pipeline := range []string{"1", "16"} {
		for at := range addresses {
			out := redisTool(t, addresses[at], "", "redis-benchmark", "-t", "ping,set,get,incr,mset", "-n", "2000", "-c", "20", "-P", pipeline, "-r", "1000", "--csv")
			require.NotContains(t, strings.ToLower(out), "error")
			for _, test := range []string{"PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"} {
				require.Contains(t, out, `"`+test+`","`, out)
			}
		}
	}
	s.stop()
}
