// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/internal/lab"
)

// TestMain lets the test binary be weftbench itself: the host verb starts its
// own program as nodes of the minimal loop.
func TestMain(m *testing.M) {
	const asProgram = "WEFTBENCH_TEST_AS_PROGRAM"
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	if err := os.Setenv(asProgram, "1"); err != nil { // for the children
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(binDir) // what is left does no harm
	os.Exit(code)
}

var binDir = filepath.Join(os.TempDir(), fmt.Sprintf("weftbench-test-%d", os.Getpid()))

// built builds the nodes' program, once for all tests.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binDir, "kvdemo")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "../kvdemo").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// buildKvdemo returns the nodes' program for a test that runs beside others: its
// nodes mostly wait.
func buildKvdemo(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	path, err := built()
	require.NoError(t, err)
	return path
}

// weftbench runs a command line and returns what it printed.
func weftbench(t *testing.T, args ...string) (out, progress string, err error) {
	t.Helper()
	var o, p bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&o)
	root.SetErr(&p)
	err = root.ExecuteContext(t.Context())
	return o.String(), p.String(), err
}

// A short form of make torture.
func TestTorture(t *testing.T) {
	kvdemo := buildKvdemo(t)
	out, progress, err := weftbench(t, "torture", "--kvdemo", kvdemo, "--loops", "3", "--data", t.TempDir())
	require.NoError(t, err, progress)
	require.Regexp(t, `writes acknowledged +\d+, lost: 0`, out)
	require.Regexp(t, `replicas that differ +0 \(\d+ keys each\)`, out)
}

// Disks of real nodes are full, and have room again.
func TestFullDisk(t *testing.T) {
	kvdemo := buildKvdemo(t)
	out, progress, err := weftbench(t, "torture", "--kvdemo", kvdemo, "--full-disk", "--data", t.TempDir())
	require.NoError(t, err, progress)
	if !bytes.Contains([]byte(out), []byte("acknowledged")) {
		t.Skip(out)
	}
	require.Contains(t, progress, "no space left on device")
}

// All three sides run, and the report says what was measured.
func TestHost(t *testing.T) {
	kvdemo := buildKvdemo(t)
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	report, progress, err := weftbench(t, "host", "--kvdemo", kvdemo, "--data", t.TempDir(),
		"--clients", "2", "--sizes", "1024", "--rounds", "2", "--time", "200ms", "--kills", "1", "--rate", "50",
		"--disk-bytes", "1048576", "--tick", "20ms")
	require.NoError(t, err, progress)
	for _, want := range []string{
		`1 KB +2 +weft +\d+ .* \d\.\d\d to `, `1 KB +2 +loop +\d+ .* -\n`,
		`1 KB +64, open-loop 50/s +upstream `, `1 KB +16, reads +loop `,
		`(?m)^ +weft +\d+ +\d+\.\d\d +\d+`, `(?m)^ +loop +\d+ +\d+\.\d\d +\d+`, `upstream +\d\.\d\d +\d\.\d\d\n`,
	} {
		require.Regexp(t, want, report)
	}
}

func TestBadCommandLines(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"host", "--kvdemo", "x", "--sides", "weft,other"}, []string{`--sides: "weft,other", want some of weft, coded, leases, upstream, loop`}},
		{[]string{"host", "--kvdemo", "x", "--sides", "weft,loop,weft"}, []string{`--sides: "weft,loop,weft", want weft once`}},
		{
			[]string{"host", "--kvdemo", "x", "--clients", "0", "--sizes", "0", "--rounds", "0", "--time", "0s", "--kills", "-1",
				"--rate", "-1", "--disk-bytes", "-1", "--disk-size", "0", "--tick", "0s", "--election-ticks", "1"},
			[]string{"--clients: 0", "--sizes: 0", "--rounds: 0", "--time: 0s", "--kills: -1",
				"--rate: -1", "--disk-bytes: -1", "--disk-size: 0", "--tick: 0s", "--election-ticks: 1, want 2 to 100000"},
		},
		{[]string{"torture", "--kvdemo", "x", "--loops", "0", "--nodes", "2"}, []string{"--loops: 0, want 1 to 1000000", "--nodes: 2, want 3 to 9"}},
		{[]string{"torture", "--kvdemo", "x", "--max-value", "65MiB"}, []string{"--max-value: 68157440, want 8 to 67108864"}},
		{[]string{"torture", "--kvdemo", "x", "--max-value", "1MiB,2MiB"}, []string{"--max-value: 1MiB,2MiB, want one size"}},
		{[]string{"torture", "--kvdemo", "/nonexistent", "--loops", "1"}, []string{"/nonexistent"}},
		{[]string{"torture", "--kvdemo", "x", "--data", "."}, []string{"--data: . is not empty"}},
		{
			[]string{"coding", "--kvdemo", "x", "--nodes", "2", "--egress", "7", "--sizes", "5MiB", "--clients", "0", "--rounds", "0", "--time", "1ms"},
			[]string{"--nodes: 2, want 3 to 9", "--egress: 7, want 1024 to", "--sizes: 5242880", "--clients: 0", "--rounds: 0", "--time: 1ms"},
		},
		{[]string{"redis", "--kvdemo", "x", "--nodes", "0", "--requests", "0", "--records", "0", "--clients", "20000", "--time", "1ms"}, []string{"--nodes: 0, want 1 to 9", "--requests: 0", "--records: 0", "--clients: 20000", "--time: 1ms, want 1s"}},
		{[]string{"adaptive", "--nodes", "12"}, []string{"--nodes: 12, want 3 to 11"}},
		{[]string{"host", "--kvdemo", "x", "--rounds", "8", "--out", "x.md"}, []string{"--out: 4 rounds, want 5 or more"}},
		{[]string{"coding", "--kvdemo", "x", "--rounds", "4", "--out", "x.md"}, []string{"--out: 4 rounds, want 5 or more"}},
		{[]string{"kills", "--kvdemo", "x", "--faults", "2", "--out", "x.md"}, []string{"--out: 2 rounds, want 5 or more"}},
		{[]string{"slow", "--kvdemo", "x", "--rounds", "4", "--out", "x.md"}, []string{"--out: 4 rounds, want 5 or more"}},
		{
			[]string{"slow", "--kvdemo", "x", "--faults", "dead,late", "--who", "all", "--link", "0s", "--for", "500ms"},
			[]string{`--faults: "late", want one of dead, hang`, `--who: "all", want one of leader`, "--link: 0s, want 100µs to 1s", "--for: 500ms, want 1.001s to"},
		},
		{[]string{"reads", "--real", "--real-rounds", "3", "--out", "x.md"}, []string{"--out: 3 rounds, want 5 or more"}},
		{[]string{"redis", "--kvdemo", "x", "--quick", "--out", "x.md"}, []string{"--out: 1 rounds, want 5 or more"}},
		{[]string{"ycsb", "--kvdemo", "x", "--quick", "--out", "x.md"}, []string{"--out: 1 rounds, want 5 or more"}},
		{[]string{"ycsb", "--kvdemo", "x", "--values", "0", "--delays", "2s", "--nodes", "0", "--clients", "0"}, []string{"--values: 0", "--delays: 2s", "--nodes: 0", "--clients: 0"}},
		{[]string{"loop", "--id", "1", "--peers", "2=h:1"}, []string{"--id: 1, want a member named in --peers"}},
		{[]string{"loop", "--id", "1", "--peers", "1=h:1,1=h:2"}, []string{"--peers: node 1 is named twice (h:1, h:2)"}},
	} {
		_, _, err := weftbench(t, c.args...)
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
	}
}

// The metrics that docs/operations.md names are those of a node.
func TestOperationsNamesMetrics(t *testing.T) {
	kvdemo := buildKvdemo(t)
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	names := regexp.MustCompile("`(weft_[a-z_]+)`").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(names), 15)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	c, err := cluster.Start(t.Context(), cluster.Config{
		Name: "one", Serve: lab.Serve{Program: []string{kvdemo, "serve"}, Args: []string{"--http-listen", address, "--leases"}}, Nodes: 1, Dir: t.TempDir(),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	resp, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }() // only read
	metrics, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for _, m := range names {
		require.Regexp(t, `(?m)^`+m[1]+`[ {]`, string(metrics))
	}
}
