// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/process"
)

// TestMain lets the test binary be a program on a host: it echoes what comes to
// the address that is its argument, or asks the program there.
func TestMain(m *testing.M) {
	switch os.Getenv("LAB_TEST_PROGRAM") {
	case "":
		os.Exit(m.Run())
	case "node":
		node(os.Args[1])
	case "echo":
		echo(os.Args[1])
	case "ask":
		took, err := ask(os.Args[1])
		if err != nil {
			panic(err)
		}
		fmt.Println(took)
	}
}

func echo(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() { _, _ = io.Copy(c, c); _ = c.Close() }() // the test sees what is missing
	}
}

// program returns the command line that runs this one on a host, as what it says.
func program(t *testing.T, h Host, what string, args ...string) []string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return h.Command(append([]string{"env", "LAB_TEST_PROGRAM=" + what, self}, args...)...)
}

func startEcho(t *testing.T, h Host, address string) {
	t.Helper()
	p, err := process.Start(program(t, h, "echo", address), filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Kill()) })
	if address == h.Client { // else this process cannot reach it
		require.Eventually(t, func() bool { _, err := ask(address); return err == nil }, time.Minute, time.Millisecond)
	}
}

const (
	testRate  = 20_000_000 // bits a second
	testBytes = 250_000    // of an answer
)

// ask sends bytes to a program that echoes, and returns how long it takes until
// all are back.
func ask(address string) (time.Duration, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	begin := time.Now()
	go func() { _, _ = c.Write(make([]byte, testBytes)) }() // what is missing is seen below
	_, err = io.ReadFull(c, make([]byte, testBytes))
	return time.Since(begin), err
}

// least is the time in which the testBytes pass a link, less what may leave at once.
const leastTime = time.Second * (testBytes - 2*frame - chunkBytes) * 8 / testRate

func TestRelayHoldsItsRate(t *testing.T) {
	n, err := NewNetwork(NetworkConfig{Hosts: 2, Rate: testRate, Kind: Relay})
	require.NoError(t, err)
	require.Equal(t, Relay, n.Kind)
	startEcho(t, n.Hosts[1], n.Hosts[1].Listen)
	var took time.Duration
	require.Eventually(t, func() (ok bool) {
		took, err = ask(n.Hosts[1].Address)
		return err == nil // the relay accepts before there is a host
	}, time.Minute, time.Millisecond)
	require.GreaterOrEqual(t, took, leastTime)
	sent, err := n.Hosts[1].Sent()
	require.NoError(t, err)
	require.EqualValues(t, testBytes, sent)
	require.NoError(t, n.Close())
	_, err = net.Dial("tcp", n.Hosts[1].Address)
	require.Error(t, err)
}

func TestConnectionsShareACard(t *testing.T) {
	now := time.Unix(1, 0)
	p := pacer{rate: 8_000_000} // a byte takes a microsecond
	require.Equal(t, now.Add(1000*time.Microsecond), p.leave(1000, now))
	require.Equal(t, now.Add(1500*time.Microsecond), p.leave(500, now), "behind what was first")
	later := now.Add(time.Second)
	require.Equal(t, later.Add(time.Microsecond), p.leave(1, later), "a pause is not made up for")
	require.Equal(t, now, (&pacer{}).leave(1<<30, now), "no bound")
}

func TestNamespacesHoldTheirRate(t *testing.T) {
	probe(t)
	n, err := NewNetwork(NetworkConfig{Hosts: 2, Rate: testRate})
	require.NoError(t, err)
	require.NoError(t, n.Why)
	require.Equal(t, Namespaces, n.Kind)
	t.Cleanup(func() { require.NoError(t, n.Close()) })

	startEcho(t, n.Hosts[0], n.Hosts[0].Client)
	require.Eventually(t, func() bool {
		took, err := ask(n.Hosts[0].Client)
		return err == nil && took < leastTime
	}, time.Minute, time.Millisecond, "this process reaches a host beside its card")

	startEcho(t, n.Hosts[1], n.Hosts[1].Listen)
	var out []byte
	require.Eventually(t, func() bool {
		line := program(t, n.Hosts[0], "ask", n.Hosts[1].Address)
		out, err = exec.Command(line[0], line[1:]...).Output()
		return err == nil
	}, time.Minute, time.Millisecond)
	took, err := time.ParseDuration(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	require.GreaterOrEqual(t, took, leastTime)
	sent, err := n.Hosts[1].Sent()
	require.NoError(t, err)
	require.Greater(t, sent, uint64(testBytes))
}

// probe skips a test where the machine has no namespaces or no shaping.
func probe(t *testing.T) {
	t.Helper()
	name := fmt.Sprintf("weftlab-%d-probe", os.Getpid())
	if err := run("ip netns add " + name); err != nil {
		t.Skip(err)
	}
	defer func() { require.NoError(t, run("ip netns del "+name)) }()
	if err := errors.Join(run("ip -n "+name+" link add peers type bridge"), run("ip -n "+name+" link add a type veth peer name b"), run("tc -n "+name+" qdisc add dev peers root "+bucket(testRate))); err != nil {
		t.Skip(err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for says, c := range map[string]NetworkConfig{
		"Hosts is 0, want 1 to 100":              {},
		"Rate is 5 bits a second":                {Hosts: 1, Rate: 5},
		`Kind is "wire", want`:                   {Hosts: 1, Kind: "wire"},
		`Kind is "direct", want relay for Delay`: {Hosts: 1, Kind: direct, Delay: func(int, int) time.Duration { return 0 }},
		`want 0 with Kind direct`:                {Hosts: 1, Kind: direct, Rate: 1e6},
	} {
		_, err := NewNetwork(c)
		require.ErrorContains(t, err, says)
	}
}
