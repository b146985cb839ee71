// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Serve makes the command lines of programs with the flags of "kvdemo serve".
type Serve struct {
	Program []string // a command line, to which flags are added
	Args    []string // more flags of each node
	// NodeArgs, if set, returns more flags of a node.
	NodeArgs func(id int) []string
}

// Command implements [Program].
func (s Serve) Command(c *Cluster, n *Node) []string {
	args := slices.Concat(s.Program, []string{
		"--id", strconv.Itoa(n.ID), "--cluster", strconv.FormatUint(c.Number, 10), "--peers", c.Peers(),
		"--client-listen", n.Client, "--data", n.Data, "--exit-with-stdin",
	})
	if n.Listen != n.Address {
		args = append(args, "--listen", n.Listen)
	}
	args = append(args, s.Args...)
	if s.NodeArgs != nil {
		args = append(args, s.NodeArgs(n.ID)...)
	}
	return args
}

// Etcd is a program of etcd, as released or on Weft, which is asked by the JSON that it serves
// beside gRPC.
type Etcd struct {
	Program string
	Args    []string // more flags of each member
	// Env, if set, returns variables of a member's environment.
	Env func(id int) []string
	// Peer, if set, is the URL at which the others find a member, in place of its host's.
	Peer func(id int) string
}

// Command implements [Program].
func (e Etcd) Command(c *Cluster, n *Node) []string {
	peer := func(n *Node) string {
		if e.Peer != nil {
			return e.Peer(n.ID)
		}
		return "http://" + n.Address
	}
	var members []string
	for _, m := range c.Nodes {
		members = append(members, fmt.Sprintf("n%d=%s", m.ID, peer(m)))
	}
	state := "new"
	if n.Joins {
		state = "existing"
	}
	args := []string{"env"}
	if e.Env != nil {
		args = append(args, e.Env(n.ID)...)
	}
	return append(append(args, e.Program,
		"--name", fmt.Sprintf("n%d", n.ID), "--data-dir", n.Data,
		"--listen-client-urls", "http://"+n.Client, "--advertise-client-urls", "http://"+n.Client,
		"--listen-peer-urls", "http://"+n.Listen, "--initial-advertise-peer-urls", peer(n),
		"--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", state,
		"--initial-cluster-token", strconv.FormatUint(c.Number, 16), "--log-outputs", "stderr"), e.Args...)
}

// Status implements [Program].
func (e Etcd) Status(ctx context.Context, n *Node) (Status, error) {
	var said struct {
		Header struct {
			Member uint64 `json:"member_id,string"`
		} `json:"header"`
		Leader uint64 `json:"leader,string"`
		Term   uint64 `json:"raftTerm,string"`
	}
	err := Ask(ctx, http.MethodPost, n, "/v3/maintenance/status", "{}", &said)
	return Status{said.Header.Member, said.Leader, said.Term}, err
}

// Transfer implements [Program].
func (e Etcd) Transfer(ctx context.Context, leader, to *Node) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, err := e.Status(ctx, to)
	if err != nil {
		return err
	}
	return Ask(ctx, http.MethodPost, leader, "/v3/maintenance/transfer-leadership", fmt.Sprintf(`{"targetID":"%d"}`, s.ID), nil)
}

// maxAnswer bounds an answer of a node, the largest of which has all rows of its state (weftbench tpccnode).
const maxAnswer = 1 << 28

// Ask asks a node by HTTP, and reads the answer, which is JSON, if it is wanted.
func Ask(ctx context.Context, method string, n *Node, path, question string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+n.Client+path, strings.NewReader(question))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("node %d: %s: %s: %s", n.ID, path, resp.Status, bytes.TrimSpace(body))
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("node %d: %s: %q: %w", n.ID, path, body, err)
	}
	return nil
}

// Answer is the other side of [Ask].
func Answer(w http.ResponseWriter, answer any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // who asked is gone
}
