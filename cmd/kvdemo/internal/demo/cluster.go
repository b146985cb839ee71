// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/ports"
)

// node is one member of the cluster, over all its processes.
type node struct {
	*lab.Node
	id   uint64
	http string // of its reports for the page; empty: none

	last *kvpb.StatusResponse // what it said last, nil before it said anything
	up   bool                 // it answered the last time
}

// cluster is the nodes of a demonstration.
type cluster struct {
	*lab.Cluster
	nodes   []*node
	program *nodes.Program
	cl      *client.Client

	mu      sync.Mutex // guards last and up of the nodes, and traffic
	traffic traffic
}

// startCluster starts all nodes.
func startCluster(ctx context.Context, cfg Config, dir string, p *progress) (_ *cluster, err error) {
	pages := make([]string, cfg.Nodes)
	serve := lab.Serve{Program: cfg.Serve, Args: cfg.Args}
	if cfg.Page != "" {
		if pages, err = ports.Free(cfg.Nodes); err != nil {
			return nil, err
		}
		serve.NodeArgs = func(id int) []string { return []string{"--orders", "--http-listen", pages[id-1]} }
	}
	c := &cluster{traffic: newTraffic(cfg.Nodes), program: nodes.New(serve)}
	if c.Cluster, err = lab.StartCluster(ctx, lab.ClusterConfig{Name: "demonstration", Program: c.program, Nodes: cfg.Nodes, Dir: dir}); err != nil {
		return nil, errors.Join(err, c.program.Close())
	}
	for _, n := range c.Nodes {
		c.nodes = append(c.nodes, &node{Node: n, id: uint64(n.ID), http: pages[n.ID-1]})
	}
	if c.cl, err = client.New(client.Config{Endpoints: c.Clients()}); err != nil {
		return nil, errors.Join(err, c.Close(), c.program.Close())
	}
	p.event("%d nodes started, data in %s", len(c.nodes), dir)
	return c, nil
}

// kill takes a node's process away without a warning.
func (c *cluster) kill(n *node) error {
	c.mu.Lock()
	n.up = false
	c.mu.Unlock()
	return n.Kill()
}

// killAll ends every process there may be.
func (c *cluster) killAll() error {
	return errors.Join(c.cl.Close(), c.Close(), c.program.Close())
}

// poll asks all nodes for their status and notes the answers.
func (c *cluster) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	all := c.cl.Status(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range all {
		n := c.nodes[i]
		n.up = s.Err == nil && n.Process() != nil
		if s.Err == nil {
			n.last = s.Response
			c.traffic.note(s.Response)
		}
	}
}

// upNodes returns the nodes that answered last time.
func (c *cluster) upNodes() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var up []*node
	for _, n := range c.nodes {
		if n.up {
			up = append(up, n)
		}
	}
	return up
}

// leader returns the node that leads as of the last poll, or nil.
func (c *cluster) leader() *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var leader *node
	for _, n := range c.nodes {
		if n.up && n.last.GetRole() == "leader" && (leader == nil || n.last.GetTerm() > leader.last.GetTerm()) {
			leader = n
		}
	}
	return leader
}

// waitLeader waits until a node leads, and returns it.
func (c *cluster) waitLeader(ctx context.Context) (leader *node, err error) {
	err = c.wait(ctx, "a leader", func() bool {
		leader = c.leader()
		return leader != nil
	})
	return leader, err
}

// waitApplied waits until every replica has applied index. As long as any of
// them moves on there is hope.
func (c *cluster) waitApplied(ctx context.Context, index uint64, p *progress) error {
	for before := uint64(0); ; {
		var now uint64
		err := c.wait(ctx, fmt.Sprintf("all replicas to apply index %d", index), func() bool {
			var least uint64
			now, least = c.applied()
			p.status("catching up: the last replica is at %d of %d", least, index)
			return least >= index || now > before+1000
		})
		if err != nil {
			return err
		}
		if _, least := c.applied(); least >= index {
			return nil
		}
		before = now
	}
}

// applied returns the sum and the least of what the replicas have applied.
func (c *cluster) applied() (sum, least uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	least = ^uint64(0)
	for _, n := range c.nodes {
		var applied uint64
		if n.up {
			applied = n.last.GetApplied()
		}
		sum += applied
		least = min(least, applied)
	}
	return sum, least
}

// wait polls until the condition holds, a process ends that should not, or
// patience does.
func (c *cluster) wait(ctx context.Context, what string, done func() bool) error {
	deadline := time.Now().Add(patience)
	for {
		if err := c.trouble(); err != nil {
			return err
		}
		c.poll(ctx)
		if done() {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %v for %s: %s", patience, what, c.describe())
		}
		if err := lab.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// errFull says that the nodes have used up the room on the disk.
var errFull = errors.New("the disk is full")

// trouble returns an error if a process has ended without being killed, or if a node
// waits for room on a full disk.
func (c *cluster) trouble() error {
	if err := c.Trouble(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if n.up && n.last.GetStalled() != "" {
			return fmt.Errorf("%w: node %d says: %s; %s", errFull, n.id, n.last.GetStalled(), makeRoom)
		}
	}
	return nil
}

// describe says in a line what the nodes said last.
func (c *cluster) describe() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for _, n := range c.nodes {
		s := "no answer"
		if n.up {
			s = fmt.Sprintf("%s, term %d, applied %d", n.last.GetRole(), n.last.GetTerm(), n.last.GetApplied())
		}
		parts = append(parts, fmt.Sprintf("node %d %s", n.id, s))
	}
	return strings.Join(parts, "; ")
}
