// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the nodes of kvdemo, and of programs with the same service, as processes on
// this machine.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/internal/stuck"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

// patience bounds the wait for a step that a healthy cluster takes by itself.
const patience = 60 * time.Second

// Config says what to run.
type Config struct {
	lab.Serve        // the command line of a node
	Name      string // of the cluster, for messages and its directory
	Nodes     int
	Dir       string                           // directory for its data, made here
	DataDir   func(id int) string              // where a node keeps its data; nil: in Dir
	Links     func(from, to int) time.Duration // if set, links with such delays, which can be cut
	// Dialer is that of [lab.NetworkConfig], for Links; nil: lab.Hello.
	Dialer func(io.Reader) (int, error)
	Disks  bool // if set, disks can hang and be slow
	// Responders has all nodes, which have roster leases, be responders of all keys.
	Responders bool
}

// Node is one member of the cluster, over all its processes.
type Node struct {
	*lab.Node
	Disk stuck.Disk // with Config.Disks
	conn *grpc.ClientConn
}

// Cluster is several nodes.
type Cluster struct {
	*lab.Cluster
	Nodes   []*Node
	program io.Closer // what the nodes need beside their processes
}

// Start starts all nodes and waits until they have a leader.
func Start(ctx context.Context, cfg Config) (_ *Cluster, err error) {
	if cfg.Disks {
		more := cfg.NodeArgs
		cfg.NodeArgs = func(id int) (args []string) {
			if more != nil {
				args = more(id)
			}
			return append(args, "--stuck-disk", string(cfg.disk(id)))
		}
	}
	program := nodes.New(cfg.Serve)
	c := &Cluster{program: program}
	config := lab.ClusterConfig{Name: cfg.Name, Program: program, Nodes: cfg.Nodes, Dir: cfg.Dir, DataDir: cfg.DataDir}
	if cfg.Links != nil {
		config.Links = lab.NetworkConfig{Kind: lab.Relay, Delay: cfg.Links, Dialer: cfg.Dialer}
		if cfg.Dialer == nil {
			config.Links.Dialer = lab.Hello
		}
	}
	if c.Cluster, err = lab.StartCluster(ctx, config); err != nil {
		return nil, errors.Join(err, program.Close())
	}
	var ids []uint64
	for _, n := range c.Cluster.Nodes {
		conn, err := program.Conn(n)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.Nodes = append(c.Nodes, &Node{n, cfg.disk(n.ID), conn})
		ids = append(ids, uint64(n.ID))
	}
	if _, err = c.WaitLeader(ctx); err == nil && cfg.Responders {
		err = c.NameResponders(ctx, ids...)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (cfg Config) disk(id int) stuck.Disk {
	return stuck.Disk(filepath.Join(cfg.Dir, fmt.Sprintf("disk-%d", id)))
}

// KV returns a client of this node.
func (n *Node) KV() kvpb.KVClient { return kvpb.NewKVClient(n.conn) }

// Admin returns an operator's client of this node.
func (n *Node) Admin() kvpb.AdminClient { return kvpb.NewAdminClient(n.conn) }

// Status asks all nodes at once. The status of a node that does not answer is nil.
func (c *Cluster) Status(ctx context.Context) []*kvpb.StatusResponse {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	all := make([]*kvpb.StatusResponse, len(c.Nodes))
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		if n.Up() {
			wg.Go(func() {
				if s, err := n.KV().Status(ctx, &kvpb.StatusRequest{}); err == nil {
					all[i] = s
				}
			})
		}
	}
	wg.Wait()
	return all
}

// WaitLeader waits until every running process answers and follows the same leader,
// and returns that leader.
func (c *Cluster) WaitLeader(ctx context.Context) (*Node, error) {
	n, _, err := c.Lead(ctx)
	if err != nil {
		return nil, err
	}
	return c.Nodes[n.ID-1], nil
}

// Wait polls the nodes until the condition holds, a process ends by itself, or
// patience does.
func (c *Cluster) Wait(ctx context.Context, what string, done func([]*kvpb.StatusResponse) bool) error {
	return c.WaitFor(ctx, patience, what, done)
}

// WaitFor is Wait with another patience.
func (c *Cluster) WaitFor(ctx context.Context, patience time.Duration, what string, done func([]*kvpb.StatusResponse) bool) error {
	return c.Cluster.WaitFor(ctx, patience, what, func(ctx context.Context) error {
		if all := c.Status(ctx); !done(all) {
			return fmt.Errorf("the nodes say: %s", describe(all))
		}
		return nil
	})
}

// describe says in a line what nodes say of themselves.
func describe(all []*kvpb.StatusResponse) string {
	var parts []string
	for i, s := range all {
		text := "no answer"
		if s != nil {
			text = fmt.Sprintf("%s, term %d, applied %d of %d", s.GetRole(), s.GetTerm(), s.GetApplied(), s.GetCommit())
		}
		parts = append(parts, fmt.Sprintf("node %d %s", i+1, text))
	}
	return strings.Join(parts, "; ")
}

// NameResponders has nodes be responders of all keys, and waits until they answer reads by themselves.
func (c *Cluster) NameResponders(ctx context.Context, ids ...uint64) error {
	err := c.Cluster.Wait(ctx, "responders to be named", func(ctx context.Context) error {
		leader, err := c.WaitLeader(ctx)
		if err != nil {
			return err
		}
		call, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err = leader.Admin().NameResponders(call, &kvpb.NameRespondersRequest{Nodes: ids})
		return err
	})
	if err != nil {
		return err
	}
	return c.WaitStable(ctx, patience, ids...)
}

// WaitStable waits until nodes, or all if none are named, answer reads by themselves.
func (c *Cluster) WaitStable(ctx context.Context, patience time.Duration, ids ...uint64) error {
	return c.WaitFor(ctx, patience, "nodes to answer reads by themselves", func(all []*kvpb.StatusResponse) bool {
		for i, s := range all {
			g := s.GetGroups()
			if (len(ids) == 0 || slices.Contains(ids, uint64(i+1))) && (len(g) == 0 || !g[0].GetLeases().GetStable()) {
				return false
			}
		}
		return true
	})
}

// Close kills what is left and closes the connections.
func (c *Cluster) Close() error { return errors.Join(c.Cluster.Close(), c.program.Close()) }
