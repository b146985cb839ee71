// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// gates are gateways of a cluster, as processes.
type gates struct {
	t         *testing.T
	s         *servers
	args      [][]string
	endpoints []string
	redis     []string // addresses
	http      []string
	cmds      []*exec.Cmd
}

func startGates(s *servers, count int) *gates {
	g := &gates{t: s.t, s: s, cmds: make([]*exec.Cmd, count)}
	peers := s.args[0][6]
	for i := range count {
		g.endpoints, g.redis, g.http = append(g.endpoints, freePort(s.t)), append(g.redis, freePort(s.t)), append(g.http, freePort(s.t))
		g.args = append(g.args, []string{
			"gateway", "--id", fmt.Sprint(101 + i), "--cluster", "9", "--peers", peers, "--listen", freePort(s.t), "--client-listen", g.endpoints[i], "--resp", g.redis[i], "--http-listen", g.http[i], "--tick", "20ms",
		})
		g.start(i)
	}
	s.t.Cleanup(func() {
		for i := range g.cmds {
			if text, err := os.ReadFile(g.logPath(i)); s.t.Failed() && err == nil {
				s.t.Logf("log of gateway %d:\n%s", 101+i, text)
			}
		}
	})
	return g
}

func (g *gates) logPath(i int) string {
	return filepath.Join(g.s.data, fmt.Sprintf("gateway-%d.log", i+1))
}

func (g *gates) start(i int) { g.cmds[i] = startLogged(g.t, program(g.t, g.args[i]...), g.logPath(i)) }

func (g *gates) kill(i int) { kill(g.t, g.cmds[i]) }

func (g *gates) do(stdin string, args ...string) result {
	return kvdemo(g.t.Context(), stdin, append(args, "--endpoints", strings.Join(g.endpoints, ","), "--timeout", limit.String())...)
}

func TestGatewaysServeClientsAndLoseNothingThatWasAcknowledged(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := startServers(t, "--groups", "2")
	g := startGates(s, 2)
	r := g.do("", "put", "first", "one")
	require.Zero(t, r.code, r.err)
	r = g.do("", "get", "first")
	require.Equal(t, "one", strings.TrimSpace(r.out), r.err)

	large := strings.Repeat("0123456789abcdef", 3*kv.MaxInlineBytes/16)
	r = g.do(large, "put", "large", "-")
	require.Zero(t, r.code, r.err)
	r = g.do("", "get", "large")
	require.Equal(t, len(large), len(strings.TrimSuffix(r.out, "\n")), r.err)
	require.Equal(t, large, strings.TrimSuffix(r.out, "\n"))
	r = g.do("", "get", "nothing")
	require.Equal(t, exitNotFound, r.code, r.err)

	r = g.do("", "member", "list")
	require.NotZero(t, r.code)
	require.Contains(t, r.err, "is a gateway: ask a node")

	eventually(t, "status shows the homes", func() bool { return strings.Count(g.do("", "status").out, "gateway, home ") == 2*len(g.endpoints) }) // of both groups

	g.watchesAndSessions()
	g.isWatched()

	// Writers go on while the leader of group 1 and a gateway are killed, one after the other.
	var writers sync.WaitGroup
	var mu sync.Mutex
	acknowledged, ending := map[string]string{}, make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-ending:
					return
				default:
				}
				key, value := fmt.Sprintf("k-%d-%d", w, i), fmt.Sprint(i)
				if r := g.do("", "put", key, value); r.code == 0 {
					mu.Lock()
					acknowledged[key] = value
					mu.Unlock()
				}
			}
		})
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	more := func(what string) {
		n := count()
		eventually(t, what, func() bool { return count() >= n+20 })
	}
	more("writes through gateways")
	leader := s.leader()
	s.kill(leader)
	more("writes after the leader was killed")
	s.start(leader)
	g.kill(0)
	more("writes after a gateway was killed")
	g.start(0)
	more("writes after both are back")
	close(ending)
	writers.Wait()

	for key, value := range acknowledged {
		r := kvdemo(t.Context(), "", "get", key, "--endpoints", strings.Join(s.endpoints[:], ","), "--timeout", limit.String())
		require.Equal(t, value, strings.TrimSpace(r.out), "key %s: %s", key, r.err)
	}
	require.NoError(t, g.cmds[1].Process.Signal(os.Interrupt))
	done := make(chan error, 1)
	go func() { done <- g.cmds[1].Wait() }()
	select {
	case err := <-done:
		require.NoError(t, err, "a gateway that is told to stop ends with status 0")
	case <-time.After(limit):
		require.Fail(t, "the gateway does not end")
	}
}

// isWatched asks a gateway for its metrics, and whether it is well.
func (g *gates) isWatched() {
	eventually(g.t, "a gateway to be ready", func() bool {
		status, _ := httpGet(g.t, "http://"+g.http[0]+"/readyz")
		return status == http.StatusOK
	})
	status, text := httpGet(g.t, "http://"+g.http[0]+"/livez")
	require.Equal(g.t, http.StatusOK, status, text)
	status, text = httpGet(g.t, "http://"+g.http[0]+"/page/node?group=1")
	require.Equal(g.t, http.StatusOK, status, text)
	require.Regexp(g.t, `"id":101,"cluster":9,.*"role":"gateway","leader":[123],`, text)
	status, _ = httpGet(g.t, "http://"+g.http[0]+"/page/state?group=1")
	require.Equal(g.t, http.StatusNotFound, status, "the page is a node's")
	_, text = httpGet(g.t, "http://"+g.http[0]+"/metrics")
	for _, series := range []string{`weft_gateway_home{group="2"} [123]`, `weft_gateway_proposals_total{group="1"} [1-9]`, `weft_propose_applied_seconds_count{group="1"} [1-9]`,
		`weft_read_seconds_count{group="1",policy="local",served=".*"} [1-9]`, `weft_link_connected{class="control",peer="[123]"} 1`, `weft_clients_refusals_total{reason=.*} 0`} {
		require.Regexp(g.t, series, text)
	}
}

// httpGet returns the status and the body of an answer; 0 if there is none.
func httpGet(t *testing.T, url string) (int, string) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { require.NoError(t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// watchesAndSessions sends a gateway transactions, writes of a session that are repeated, and a watch.
func (g *gates) watchesAndSessions() {
	conn, err := grpc.NewClient(g.endpoints[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(g.t, err)
	defer func() { _ = conn.Close() }() // nothing is under way
	api, ctx := kvpb.NewKVClient(conn), g.t.Context()

	watch, err := api.Watch(ctx, &kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Prefix{Prefix: "w/"}})
	require.NoError(g.t, err)
	for range 2 { // a position of each group: from now on all is seen
		_, err := watch.Recv()
		require.NoError(g.t, err)
	}
	session, err := api.OpenSession(ctx, &kvpb.OpenSessionRequest{Key: "w/s"})
	require.NoError(g.t, err)
	put := &kvpb.PutRequest{Key: "w/s", Value: []byte("of a session"), Session: &kvpb.Session{Id: session.GetId(), Sequence: 1}}
	_, err = api.Put(ctx, put)
	require.NoError(g.t, err)
	_, err = api.Put(ctx, &kvpb.PutRequest{Key: "w/s", Value: []byte("of nobody")})
	require.NoError(g.t, err)
	_, err = api.Put(ctx, put)
	require.NoError(g.t, err, "it was done before, and is not done again")
	_, err = api.Put(ctx, &kvpb.PutRequest{Key: "w/t", Value: []byte("35")})
	require.NoError(g.t, err)
	done, err := api.Txn(ctx, &kvpb.TxnRequest{
		Compares: []*kvpb.Compare{{Key: "w/t", Want: &kvpb.Compare_Value{Value: []byte("35")}}},
		Then:     []*kvpb.Action{{Kind: kvpb.Action_ADD, Key: "w/t", Delta: 7}},
	})
	require.NoError(g.t, err)
	require.True(g.t, done.GetSucceeded())
	require.Equal(g.t, int64(42), done.GetResults()[0].GetNumber())

	want := map[string][]string{"w/s": {"of a session", "of nobody"}, "w/t": {"35", "42"}}
	for seen := map[string][]string{}; len(seen["w/s"])+len(seen["w/t"]) < 4; {
		r, err := watch.Recv()
		require.NoError(g.t, err)
		for _, e := range r.GetEvents() {
			seen[e.GetKey()] = append(seen[e.GetKey()], string(e.GetValue()))
			require.Equal(g.t, want[e.GetKey()][:len(seen[e.GetKey()])], seen[e.GetKey()])
		}
	}
	status, err := api.Status(ctx, &kvpb.StatusRequest{})
	require.NoError(g.t, err)
	require.Equal(g.t, "gateway", status.GetRole())
	require.NotZero(g.t, status.GetLeader())
	require.Len(g.t, status.GetGroups(), 2)
	got, err := api.Get(ctx, &kvpb.GetRequest{Key: "w/s", Policy: &kvpb.ReadPolicy{Kind: kvpb.ReadPolicy_QUORUM}})
	require.NoError(g.t, err)
	require.Equal(g.t, "of nobody", string(got.GetValue()))
	require.Equal(g.t, "quorum", got.GetServed().GetBy(), "the policy is the client's")
	_, err = api.List(ctx, &kvpb.ListRequest{Policy: &kvpb.ReadPolicy{Kind: 99}})
	require.ErrorContains(g.t, err, "policy: 99, want 0 to")
}
