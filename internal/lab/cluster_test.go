// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parrot is a program of a cluster: the test binary, which listens, and ends with its standard
// input. What nodes say is the test's.
type parrot struct {
	mu   sync.Mutex
	said map[int]Status
}

func (p *parrot) Command(_ *Cluster, n *Node) []string {
	self, _ := os.Executable() // which runs
	return []string{"env", "LAB_TEST_PROGRAM=node", self, n.Client}
}

func (p *parrot) Status(_ context.Context, n *Node) (Status, error) {
	c, err := net.Dial("tcp", n.Client)
	if err != nil {
		return Status{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said[n.ID], c.Close()
}

func (p *parrot) Transfer(_ context.Context, _, to *Node) error {
	p.lead(p.said[to.ID].ID)
	return nil
}

// lead has all nodes follow a leader.
func (p *parrot) lead(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range 3 {
		p.said[i+1] = Status{ID: uint64(10 * (i + 1)), Leader: id, Term: id}
	}
}

// node is the test binary as a node.
func node(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			if c, err := l.Accept(); err == nil {
				_ = c.Close() // that the node answers is all
			}
		}
	}()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println("told", in.Text())
	}
}

func TestClusterIsStartedKilledAndStopped(t *testing.T) {
	p := &parrot{said: map[int]Status{}}
	p.lead(20)
	c, err := StartCluster(t.Context(), ClusterConfig{Name: "parrots", Program: p, Nodes: 3, Spare: 1, Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	leader, term, err := c.Lead(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, leader.ID)
	require.EqualValues(t, 20, term)
	require.NoError(t, c.HandTo(t.Context(), c.Nodes[2]))
	leader, _, err = c.Lead(t.Context())
	require.NoError(t, err)
	require.Equal(t, c.Nodes[2], leader)
	require.NoError(t, leader.Tell("hello"))
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(leader.Log())
		return err == nil && strings.Contains(string(log), "told hello")
	}, time.Minute, time.Millisecond)

	require.NoError(t, leader.Kill())
	require.NoError(t, leader.Kill(), "again is no error")
	require.False(t, leader.Up())
	require.ErrorIs(t, leader.Pause(), errDown)
	require.ErrorIs(t, leader.Tell("x"), errDown)
	_, _, err = c.look(t.Context())
	require.ErrorIs(t, err, errNoLeader, "the leader is down")
	p.lead(10)
	leader, _, err = c.Lead(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, leader.ID)
	require.NoError(t, c.Nodes[2].Start())
	require.NoError(t, c.WaitFor(t.Context(), time.Minute, "the node", func(ctx context.Context) error { _, err := c.ask(ctx); return err }))

	require.NoError(t, c.Nodes[0].Process().Kill(), "nobody tells the cluster")
	require.ErrorContains(t, c.Trouble(), "parrots, node 1: process")
	err = c.Wait(t.Context(), "nothing", func(context.Context) error { return errNoLeader })
	require.ErrorContains(t, err, "waiting for nothing: parrots, node 1: process")
	require.NoError(t, c.Nodes[0].Kill())
	require.NoError(t, c.Nodes[0].Start())
	require.NoError(t, c.WaitFor(t.Context(), time.Minute, "the node", func(ctx context.Context) error { _, err := c.ask(ctx); return err }))

	old := c.Nodes[1]
	fresh := c.Replace(old)
	require.Equal(t, []int{1, 4, 3}, []int{c.Nodes[0].ID, c.Nodes[1].ID, c.Nodes[2].ID})
	require.NoError(t, old.Process().Kill(), "which is no trouble of the cluster's")
	require.NoError(t, c.Trouble())
	require.NoError(t, fresh.Start())
	require.NoError(t, c.WaitFor(t.Context(), time.Minute, "the node", func(ctx context.Context) error { _, err := c.ask(ctx); return err }))
	require.NoError(t, c.Stop())
}

func TestCommandLines(t *testing.T) {
	c := &Cluster{Number: 0xabc}
	for i := range 2 {
		h := Host{Listen: fmt.Sprintf("l%d", i+1), Address: fmt.Sprintf("a%d", i+1), Client: fmt.Sprintf("c%d", i+1)}
		c.Nodes = append(c.Nodes, &Node{Host: h, ID: i + 1, Data: "d"})
	}
	serve := Serve{Program: []string{"kvdemo", "serve"}, Args: []string{"--x"}, NodeArgs: func(id int) []string { return []string{fmt.Sprint("--y=", id)} }}
	require.Equal(t, "kvdemo serve --id 2 --cluster 2748 --peers 1=a1,2=a2 --client-listen c2 --data d --exit-with-stdin --listen l2 --x --y=2",
		strings.Join(serve.Command(c, c.Nodes[1]), " "))
	etcd := Etcd{Program: "etcd", Args: []string{"--z"}, Env: func(int) []string { return []string{"A=1"} }}
	require.Equal(t, "env A=1 etcd --name n1 --data-dir d --listen-client-urls http://c1 --advertise-client-urls http://c1 --listen-peer-urls http://l1 "+
		"--initial-advertise-peer-urls http://a1 --initial-cluster n1=http://a1,n2=http://a2 --initial-cluster-state new --initial-cluster-token abc --log-outputs stderr --z",
		strings.Join(etcd.Command(c, c.Nodes[0]), " "))
	c.Nodes[0].Joins = true
	require.Contains(t, strings.Join(etcd.Command(c, c.Nodes[0]), " "), "--initial-cluster-state existing")
}

func TestEtcdIsAskedInJSON(t *testing.T) {
	var target string
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v3/maintenance/status", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"header":{"cluster_id":"1","member_id":"18446744073709551615","raft_term":"3"},"version":"3.7.3","leader":"7","raftTerm":"3"}`)
	})
	mux.HandleFunc("POST /v3/maintenance/transfer-leadership", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ TargetID string }
		if json.NewDecoder(r.Body).Decode(&body) == nil {
			target = body.TargetID
		}
		http.Error(w, "etcdserver: not leader", http.StatusPreconditionFailed)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	n := &Node{Host: Host{Client: strings.TrimPrefix(s.URL, "http://")}}
	said, err := Etcd{}.Status(t.Context(), n)
	require.NoError(t, err)
	require.Equal(t, Status{ID: 1<<64 - 1, Leader: 7, Term: 3}, said)
	require.ErrorContains(t, Etcd{}.Transfer(t.Context(), n, n), "412 Precondition Failed: etcdserver: not leader")
	require.Equal(t, "18446744073709551615", target)
}
