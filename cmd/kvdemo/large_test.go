// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// killer reads, and has a leader killed on the way.
type killer struct {
	io.Reader
	left int
	kill func()
}

func (k *killer) Read(b []byte) (int, error) {
	if k.left -= len(b); k.left < 0 && k.kill != nil {
		k.kill()
		k.kill = nil
	}
	return k.Reader.Read(b)
}

// randomBytes returns bytes that do not compress.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(b) // never fails
	return b
}

// A large value arrives whole although the leader dies in the middle of it, and
// comes back from each node, also through a change of node.
func TestLargeValue(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	f := newFleet(t, 3, 3, "--tick", "20ms")
	value := randomBytes(20<<20 + 17)
	lead := f.leader()
	var endpoints []string
	for id := 1; id <= 3; id++ {
		endpoints = append(endpoints, f.sure[(lead+id-2)%3+1]) // the leader first
	}
	c, err := client.New(client.Config{Endpoints: endpoints, Timeout: limit})
	require.NoError(t, err)
	defer func() { _ = c.Close() }() // nothing is under way
	in := &killer{Reader: bytes.NewReader(value), left: 8 << 20, kill: func() { f.kill(lead) }}
	_, err = c.PutFrom(t.Context(), "large", in, int64(len(value)))
	require.NoError(t, err)
	require.Nil(t, in.kill)
	f.start(lead)
	file := filepath.Join(t.TempDir(), "large")
	for id := 1; id <= 3; id++ {
		eventually(t, "the value at a node", func() bool {
			r := kvdemo(t.Context(), "", "get", "large", "--file", file, "--endpoints", f.sure[id], "--timeout", "20s")
			return r.code == 0
		})
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, bytes.Equal(value, got), "node %d", id)
	}
	require.Contains(t, f.do("ls", "--digests"), fmt.Sprintf("%x", sha256.Sum256(value)))

	r := kvdemo(t.Context(), strings.Repeat("x", kv.MaxValueBytes+1), "put", "huge", "--endpoints", f.endpoints())
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "want at most 67108864")
	// The largest value there may be.
	most := string(randomBytes(kv.MaxValueBytes))
	r = kvdemo(t.Context(), most, "put", "most", "--endpoints", f.endpoints(), "--timeout", "60s")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, f.do("ls", "--digests"), fmt.Sprintf("%x", sha256.Sum256([]byte(most))))
	f.do("put", "large", "small now")
	require.Equal(t, "small now", f.do("get", "large"))
	f.stop()
}

// Keys are spread over groups, and it does not show.
func TestGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	args := []string{"--tick", "20ms", "--balance-interval", "100ms", "--groups"}
	f := newFleet(t, 3, 4, append(args, "4")...)
	var keys []string
	in := map[uint64]int{}
	for i := range 40 {
		key := fmt.Sprintf("key %02d", i)
		keys = append(keys, key)
		in[kv.GroupOf(key, 4)]++
		f.do("put", key, fmt.Sprint(i))
	}
	require.Len(t, in, 4, "every group has some")
	f.do("del", keys[7])
	keys = slices.Delete(keys, 7, 8)
	out := strings.TrimSpace(f.do("ls", "key"))
	var listed []string
	for _, line := range strings.Split(out, "\n")[1:] {
		listed = append(listed, line[:len("key 00")])
	}
	require.Equal(t, keys, listed)
	require.Equal(t, 5, strings.Count(f.do("ls", "--limit", "5", "--json"), "\n"))
	require.Equal(t, "39", f.do("get", "key 39"))
	// A line for each node and group, and again for what they say of coding.
	require.Equal(t, 2*(1+3*4)+1, strings.Count(f.do("status"), "\n"))
	f.do("transfer", "1") // of all groups; they do not stay there
	eventually(t, "leaders on all nodes", func() bool {
		leads := f.leads()
		return leads[1] > 0 && leads[2] > 0 && leads[3] > 0
	})

	// The number of groups belongs to the cluster and to the directory.
	f.kill(3)
	wrong := func(id int, extra ...string) string {
		defer func(right []string) { f.args = right }(f.args)
		f.args = append(slices.Clone(args), "3")
		f.start(id, extra...)
		require.Error(t, f.nodes[id].cmd.Wait())
		text, err := os.ReadFile(f.nodes[id].log)
		require.NoError(t, err)
		return string(text)
	}
	require.Contains(t, wrong(3), "was made with --groups 4, which cannot be changed to 3")
	f.start(3)
	f.nodes[4] = &ship{peer: freePort(t)}
	go func() { // it ends when the node is added for good
		kvdemo(t.Context(), "", "member", "add", "4", f.nodes[4].peer, "--endpoints", f.sure[1]+","+f.sure[2], "--timeout", limit.String())
	}()
	require.Contains(t, wrong(4, "--join"), "--groups: 3, but the cluster has 4 groups: start this node with --groups 4")
	f.start(4, "--join")
	eventually(t, "the new node to be a voter", func() bool { return f.members()[4] == "voter" })
	f.stop()
}

// Peers and clients show certificates. Who has none, or a wrong one, is refused
// and told so in time.
func TestCertificates(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir, other := filepath.Join(t.TempDir(), "tls"), filepath.Join(t.TempDir(), "other")
	for _, d := range []string{dir, other} {
		r := kvdemo(t.Context(), "", "certs", d, "--cluster", "9", "--nodes", "1,2,3", "--clients", "ann", "--admins", "ops")
		require.Zero(t, r.code, r.err)
		require.Contains(t, r.out, "5 certificates in "+d)
	}
	flags := func(dir, who string) []string {
		return []string{
			"--tls-cert", filepath.Join(dir, who+".pem"), "--tls-key", filepath.Join(dir, who+"-key.pem"), "--tls-ca", filepath.Join(dir, "ca.pem"),
		}
	}
	f := newFleet(t, 0, 3, "--tick", "20ms")
	for id := 1; id <= 3; id++ {
		f.nodes[id] = &ship{peer: freePort(t)}
	}
	f.start(1, flags(dir, "node-1")...)
	f.start(2, flags(dir, "node-2")...)
	f.start(3, flags(other, "node-3")...) // of another authority: its peers do not believe it
	do := func(flags []string, args ...string) result {
		args = append(args, "--endpoints", f.sure[1]+","+f.sure[2], "--timeout", "2s")
		return kvdemo(t.Context(), "", append(args, flags...)...)
	}
	ann := flags(dir, "client-ann")
	eventually(t, "a write", func() bool { return do(ann, "put", "k", "v").code == 0 })
	require.Equal(t, "v", do(ann, "get", "k").out)
	for _, c := range []struct {
		flags []string
		want  string
		code  int
	}{
		{nil, "node 1 wants a certificate: give --tls-cert, --tls-key and --tls-ca", exitFailure},
		{flags(other, "client-ann"), "the node's certificate: x509: certificate signed by unknown authority", exitUnreachable},
		{flags(dir, "node-1"), "your certificate is for node 1 of cluster 9, a client needs one of its own", exitFailure},
	} {
		begin := time.Now()
		r := kvdemo(t.Context(), "", append([]string{"get", "k", "--endpoints", f.sure[1], "--timeout", "10m"}, c.flags...)...)
		require.Equal(t, c.code, r.code, r.err)
		require.Contains(t, r.err, c.want)
		require.Less(t, time.Since(begin), limit, "at once")
	}
	r := do(ann, "transfer", "1")
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "your certificate is for client ann of cluster 9, this call needs an administrator's: kvdemo certs --admins")
	for _, verb := range [][]string{{"name", "1"}, {"unname"}, {"retire"}, {"resume"}} {
		require.Contains(t, do(ann, append([]string{"roster"}, verb...)...).err, "this call needs an administrator's")
	}
	eventually(t, "an administrator's call", func() bool { return do(flags(dir, "admin-ops"), "transfer", "1").code == 0 })
	r = do(append([]string{"--tls-ca", "x"}, ann[:2]...), "get", "k")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "some are missing, want all three or none")
	r = do(flags(dir, "client-bob"), "get", "k")
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "client-bob.pem")
	logOf := func(id int) string {
		text, err := os.ReadFile(f.nodes[id].log)
		require.NoError(t, err)
		return string(text)
	}
	eventually(t, "the nodes to say what is wrong", func() bool {
		return strings.Contains(logOf(1)+logOf(2), "not signed by an authority in the CA file") || strings.Contains(logOf(3), "certificate")
	})
	// With its own it is one of them.
	f.kill(3)
	f.start(3, flags(dir, "node-3")...)
	eventually(t, "the third node to serve", func() bool {
		return kvdemo(t.Context(), "", append([]string{"get", "k", "--endpoints", f.sure[3], "--timeout", "5s"}, ann...)...).out == "v"
	})
	// A node with the certificate of another does not start.
	f.kill(2)
	f.start(2, flags(dir, "node-1")...)
	require.Error(t, f.nodes[2].cmd.Wait())
	require.Contains(t, logOf(2), "node 1 of cluster 9")
	for _, id := range []int{1, 3} {
		f.kill(id)
	}
}
