// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	processes "github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/ports"
	"github.com/weftraft/weft/storage"
)

// node is one member of the cluster, over all its processes.
type node struct {
	*processes.Node
	id   uint64
	http string // of its reports for the page; empty: none
}

// cluster is the nodes of a demonstration.
type cluster struct {
	*processes.Cluster
	nodes []*node

	mu      sync.Mutex             // guards what follows
	said    []*kvpb.StatusResponse // by node, the last time; nil: it did not answer
	traffic traffic
}

// startCluster starts all nodes, and waits until one leads.
func startCluster(ctx context.Context, cfg Config, dir string, p *progress) (_ *cluster, err error) {
	pages := make([]string, cfg.Nodes)
	serve := lab.Serve{Program: cfg.Serve, Args: cfg.Args}
	if cfg.Page != "" {
		if pages, err = ports.Free(cfg.Nodes); err != nil {
			return nil, err
		}
		serve.NodeArgs = func(id int) []string { return []string{"--orders", "--http-listen", pages[id-1]} }
	}
	p.status("starting %d nodes", cfg.Nodes)
	c := &cluster{traffic: newTraffic(cfg.Nodes)}
	if c.Cluster, err = processes.Start(ctx, processes.Config{Name: "demonstration", Serve: serve, Nodes: cfg.Nodes, Dir: dir}); err != nil {
		return nil, err
	}
	for i, n := range c.Nodes {
		c.nodes = append(c.nodes, &node{n, uint64(n.ID), pages[i]})
	}
	p.event("%d nodes started, data in %s", len(c.nodes), dir)
	return c, nil
}

// poll asks all nodes for their status and notes the answers.
func (c *cluster) poll(ctx context.Context) { c.note(c.Status(ctx)) }

func (c *cluster) note(said []*kvpb.StatusResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = said
	for _, s := range said {
		c.traffic.note(s)
	}
}

// last returns what each node said the last time, nil for those that did not answer.
func (c *cluster) last() []*kvpb.StatusResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said
}

// up returns how many nodes answered the last time.
func (c *cluster) up() (n int) {
	for _, s := range c.last() {
		if s != nil {
			n++
		}
	}
	return n
}

// leader returns the node that leads as of the last poll, or nil.
func (c *cluster) leader() (leader *node) {
	term := uint64(0)
	for i, s := range c.last() {
		if s.GetRole() == "leader" && s.GetTerm() > term {
			leader, term = c.nodes[i], s.GetTerm()
		}
	}
	return leader
}

// waitApplied waits until every replica has applied index. As long as any of
// them moves on there is hope.
func (c *cluster) waitApplied(ctx context.Context, index uint64, p *progress) error {
	for before := uint64(0); ; {
		var now, least uint64
		err := c.wait(ctx, fmt.Sprintf("all replicas to apply index %d", index), func() bool {
			now, least = c.applied()
			p.status("catching up: the last replica is at %d of %d", least, index)
			return least >= index || now > before+1000
		})
		if err != nil || least >= index {
			return err
		}
		before = now
	}
}

// applied returns the sum and the least of what the replicas have applied.
func (c *cluster) applied() (sum, least uint64) {
	least = ^uint64(0)
	for _, s := range c.last() {
		sum += s.GetApplied()
		least = min(least, s.GetApplied())
	}
	return sum, least
}

// wait polls until the condition holds, a process ends that should not, a disk is full, or
// patience ends.
func (c *cluster) wait(ctx context.Context, what string, done func() bool) error {
	if err := c.trouble(); err != nil {
		return err
	}
	err := c.WaitFor(ctx, patience, what, func(said []*kvpb.StatusResponse) bool {
		c.note(said)
		return c.full() != nil || done()
	})
	return cmp.Or(c.full(), err)
}

// errFull says that the nodes have used up the room on the disk.
var errFull = errors.New("the disk is full")

// trouble returns an error if a process has ended without being killed, or if a node
// waits for room on a full disk.
func (c *cluster) trouble() error { return cmp.Or(c.Trouble(), c.full()) }

// full returns an error if a node that answered waits for room. A disk that is late will write some time.
func (c *cluster) full() error {
	for i, s := range c.last() {
		if s.GetStalled() != "" && !strings.Contains(s.GetStalled(), storage.ErrLate.Error()) {
			return fmt.Errorf("%w: node %d says: %s; %s", errFull, i+1, s.GetStalled(), makeRoom)
		}
	}
	return nil
}
