// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/internal/ports"
)

// TestMain lets the test binary be kvdemo itself, so that tests start real
// processes of it.
func TestMain(m *testing.M) {
	if os.Getenv("KVDEMO_TEST_AS_PROGRAM") == "" {
		// All children are the program, also those that the program starts in tests.
		_ = os.Setenv("KVDEMO_TEST_AS_PROGRAM", "1")
		os.Exit(m.Run())
	}
	main()
}

// result is what a command line came to.
type result struct {
	code     int
	out, err string
}

func kvdemo(ctx context.Context, stdin string, args ...string) result {
	var out, errOut bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

// freePort returns an address at which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	free, err := ports.Free(1)
	require.NoError(t, err)
	return free[0]
}

// Each mistake in a command line is named, with what was given and what would
// be right.
func TestBadCommandLines(t *testing.T) {
	good := []string{"serve", "--id", "1", "--peers", "1=h:1,2=h:2", "--data", "d"}
	with := func(args ...string) []string { return append(append([]string{}, good...), args...) }
	big := filepath.Join(t.TempDir(), "big")
	require.NoError(t, os.WriteFile(big, make([]byte, kv.MaxValueBytes+1), 0o644))
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"nonsense"}, exitUsage, []string{`unknown command "nonsense"`}},
		{[]string{"put"}, exitUsage, []string{"put: accepts between 1 and 2 arg(s), received 0"}},
		{[]string{"get", "a", "b"}, exitUsage, []string{"get: accepts 1 arg(s), received 2"}},
		{[]string{"status", "x"}, exitUsage, []string{"status"}},
		{[]string{"ls", "--limit", "-1"}, exitUsage, []string{`--limit: "-1", want 0 to 4294967295`}},
		{[]string{"get", "--nonsense", "a"}, exitUsage, []string{"--nonsense"}},
		{[]string{"get", "a", "--endpoints", "nowhere"}, exitUsage, []string{`--endpoints: address "nowhere": want host:port`}},
		{[]string{"get", "a", "--endpoints", "h:99999"}, exitUsage, []string{`port "99999", want 1 to 65535`}},
		{[]string{"get", "a", "--timeout", "0s"}, exitUsage, []string{"--timeout: 0s, want more than 0"}},
		{[]string{"get", ""}, exitUsage, []string{"key: it is empty, want 1 to 4096 bytes"}},
		{[]string{"put", "k", "v", "--file", "f"}, exitUsage, []string{"a value and --file f, want one of them"}},
		{[]string{"put", "k", "v", "--if-absent", "--if-value", "w"}, exitUsage, []string{"2 of them, want one at most"}},
		{[]string{"put", "k", "v", "--ttl", "1us"}, exitUsage, []string{"--ttl: 1µs, want 1ms or more"}},
		{[]string{"put", "k", "--file", big}, exitUsage, []string{"67108865 bytes, want at most 67108864"}},
		{[]string{"put", "k", "--file", "/nonexistent"}, exitFailure, []string{"--file: open /nonexistent"}},
		{
			[]string{"bench", "--clients", "0", "--size", "-1", "--reads", "101", "--keys", "0", "--duration", "0s"}, exitUsage,
			[]string{"--clients: 0, want 1 to 10000", "--size: -1, want 0 to 67108864", "--reads: 101, want 0 to 100", "--keys: 0", "--duration: 0s"},
		},
		{[]string{"demo", "--nodes", "1", "--loaders", "0"}, exitUsage, []string{"--nodes: 1, want 3 to 9", "--loaders: 0, want 1 to 256"}},
		{
			[]string{"demo", "--tick", "0s", "--coding", "x", "--egress", "3", "--election-ticks", "999999"}, exitUsage,
			[]string{"--tick: 0s", `--coding: "x", want auto`, "--egress: 3, want 0, or 1024 to", "--election-ticks: 999999, want more than --heartbeat-ticks (1), and 100000 at most"},
		},
		{[]string{"certs", "d", "--nodes", "1", "--days", "99999999"}, exitUsage, []string{"--days: 99999999, want 1 to 36525"}},
		{[]string{"demo", "--tick", "x"}, exitUsage, []string{`--tick: "x", want a duration such as`}},
		{[]string{"demo", "/nonexistent"}, exitFailure, []string{"/nonexistent", "name one that exists"}},
		{
			[]string{"serve", "--core", "x", "--tick", "0s", "--heartbeat-ticks", "0", "--election-ticks", "0", "--cluster", "0", "--log-format", "x", "--log-level", "x", "--retain-bytes", "0", "--flush-interval", "0s"}, exitUsage,
			[]string{
				"--id: 0, want 1 to 4611686018427387903", "--cluster: 0, want 1 or more", "--peers: none", "--data: none",
				`--core: "x", want weft or upstream`, "--tick: 0s, want 1ms to 10s", "--heartbeat-ticks: 0, want 1 or more",
				"--election-ticks: 0, want more than --heartbeat-ticks (0)", `--log-format: "x", want console or json`, `--log-level: "x"`,
				"--retain-bytes: 0, want 1 or more", "--flush-interval: 0s, want more than 0",
			},
		},
		{[]string{"serve", "--id", "4611686018427387904", "--peers", "4611686018427387904=127.0.0.1:1", "--data", "d"}, exitUsage, []string{
			"--id: 4611686018427387904, want 1 to 4611686018427387903, and one of --peers", "--peers: id 4611686018427387904 (127.0.0.1:1), want 1 to 4611686018427387903"}},
		{[]string{"gateway"}, exitUsage, []string{"--id: 0, want 1 to 4611686018427387903, and one that no node has", "--peers: none", "--listen: none"}},
		{
			[]string{"gateway", "--id", "1", "--peers", "1=h:1", "--listen", "h:2", "--advertise", "x", "--tls-key", "k"}, exitUsage,
			[]string{"--id: 1, want one that no node has: --peers has the node 1=h:1", `--advertise: address "x"`, "--tls-cert, --tls-key, --tls-ca: some are missing"},
		},
		{with("--groups", "0", "--balance-interval", "5ns", "--exit-after-hang", "-1s"), exitUsage, []string{"--groups: 0, want 1 to 1024", "--balance-interval: 5ns, want 0, or 1ms or more", "--exit-after-hang: -1s, want 0, or 1ms or more"}},
		{with("--leader-weight", "1001"), exitUsage, []string{"--leader-weight: 1001, want 0 to 1000"}},
		{[]string{"leader-weight", "1001"}, exitUsage, []string{"WEIGHT: 1001, want 0 to 1000"}},
		{with("--pprof"), exitUsage, []string{"--pprof: it is served at --http-listen"}},
		{with("--http-listen", "h:1"), exitUsage, []string{"--http-listen: h:1 is listened at for something else"}},
		{with("--http-listen", "h"), exitUsage, []string{`--http-listen: address "h"`}},
		{with("--http-peers", "1=h:9,x"), exitUsage, []string{`--http-peers: "x", want id=host:port`, "--http-peers: they are for the page at --http-listen"}},
		{with("--http-listen", "h:9", "--http-peers", "0=h"), exitUsage, []string{"--http-peers: id 0 (h), want 1 or more", `--http-peers: address "h": want host:port`}},
		{[]string{"demo", "--serve=nowhere"}, exitUsage, []string{`--serve: address "nowhere", want host:port, where port 0 is any free one`}},
		{with("--tls-cert", "c"), exitUsage, []string{"--tls-cert, --tls-key, --tls-ca: some are missing"}},
		{[]string{"member", "add", "x", "h:1"}, exitUsage, []string{`node id "x", want a number of 1 or more`}},
		{[]string{"member", "add", "4", "h"}, exitUsage, []string{`address "h": want host:port`}},
		{[]string{"member", "remove"}, exitUsage, []string{"remove: accepts 1 arg(s), received 0; want kvdemo member remove ID"}},
		{[]string{"member", "nonsense"}, exitUsage, []string{"nonsense"}},
		{[]string{"watch", "a", "--count", "-1"}, exitUsage, []string{`--count: "-1", want 0 to`}},
		{[]string{"transfer", "0"}, exitUsage, []string{`node id "0", want a number of 1 or more`}},
		{[]string{"get", "k", "--policy", "x"}, exitUsage, []string{`--policy: policy "x", want default, local, leader, quorum, stale or stale:ENTRIES/AGE`}},
		{[]string{"get", "k", "--policy", "stale:0/0s"}, exitUsage, []string{"allows nothing to be missing"}},
		{[]string{"get", "k", "--local", "--policy", "leader"}, exitUsage, []string{`policy "leader", and "stale" before, want one`}},
		{[]string{"bench", "--policy", "default,x"}, exitUsage, []string{`--policy "x", want default`}},
		{with("--leases", "--core", "upstream"), exitUsage, []string{"--leases: want --core weft, as upstream has no roster leases"}},
		{with("--leases", "--tick", "1s"), exitUsage, []string{"--leases: a leader's heartbeats are 1s apart (--tick, --heartbeat-ticks), want at most 326ms"}},
		{[]string{"demo", "--tick", "1s"}, exitUsage, []string{"want at most 326ms, or --leases=false"}},
		{with("--lease-notes"), exitUsage, []string{"--lease-notes: it is a part of roster leases, want --leases as well"}},
		{[]string{"certs", "d"}, exitUsage, []string{"--nodes, --clients, --admins: none, want"}},
		{[]string{"certs", "d", "--nodes", "0"}, exitUsage, []string{`--nodes: "0", want ids of 1 or more`}},
		{with("--id", "7"), exitUsage, []string{"--id: 7, want a member named in --peers (1, 2)"}},
		{with("--peers", "1=h:1,1=h:2,x"), exitUsage, []string{"node 1 is named twice (h:1, h:2)", `--peers: "x", want id=host:port`}},
		{with("--peers", "1=h:1,2=h:1"), exitUsage, []string{"h:1 is the address of nodes 1 and 2"}},
		{with("--peers", "1=h,0=h:2"), exitUsage, []string{`address "h": want host:port`, "id 0 (h:2), want 1 to"}},
		{with("--listen", ":"), exitUsage, []string{`--listen: address ":"`}},
		{with("--listen", "h:5", "--client-listen", "h:5"), exitUsage, []string{"--client-listen: h:5 is where peers are listened for"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			r := kvdemo(t.Context(), "", c.args...)
			require.Equal(t, c.code, r.code, r.err)
			for _, want := range c.want {
				require.Contains(t, r.err, want)
			}
			require.Empty(t, r.out)
		})
	}
}

func TestHelp(t *testing.T) {
	r := kvdemo(t.Context(), "", "--help")
	require.Zero(t, r.code)
	for _, verb := range []string{"serve", "demo", "put", "get", "del", "ls", "watch", "status", "health", "bench", "member", "roster", "transfer", "snapshot", "backup", "restore", "certs", "version", "completion"} {
		require.Contains(t, r.out, "\n  "+verb+" ")
		h := kvdemo(t.Context(), "", verb, "--help")
		require.Zero(t, h.code)
		require.Contains(t, h.out, "Usage:\n  kvdemo "+verb)
	}
}

// A node checks the owner and the wholeness of its data directory before the node
// takes part in a group.
func TestServeRefusesData(t *testing.T) {
	data := t.TempDir()
	serve := func(ctx context.Context, id, cluster int, extra ...string) result {
		peers := fmt.Sprintf("1=%s,2=%s", freePort(t), freePort(t))
		args := []string{"serve", "--peers", peers, "--id", fmt.Sprint(id), "--cluster", fmt.Sprint(cluster), "--client-listen", freePort(t), "--data", data}
		return kvdemo(ctx, "", append(args, extra...)...)
	}
	// A node that is to stop at once makes the directory.
	stopped := []string{"--exit-with-stdin"}
	r := serve(t.Context(), 1, 5, stopped...)
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.err, "serving")
	require.Contains(t, r.err, "stopping")

	r = serve(t.Context(), 2, 5, stopped...)
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "cluster 5, node 1")
	require.Contains(t, r.err, "cluster 5, node 2")
	r = serve(t.Context(), 1, 6, stopped...)
	require.Contains(t, r.err, "cluster 6, node 1")

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	r = serve(t.Context(), 1, 5, append(stopped, "--client-listen", taken.Addr().String())...)
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "--client-listen: listen tcp "+taken.Addr().String())
	require.Contains(t, r.err, "address already in use; stop what uses the address, or choose another")
	r = serve(t.Context(), 1, 5, append(stopped, "--listen", taken.Addr().String())...)
	require.Contains(t, r.err, "--listen: listen tcp "+taken.Addr().String())

	require.Zero(t, serve(t.Context(), 1, 5, stopped...).code, "nothing was harmed")
}
