// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/ports"
	"github.com/weftraft/weft/internal/process"
)

// node is one member, through all the processes that it has had.
type node struct {
	id     uint64
	peer   string // address for its peers
	client string // address for clients
	http   string // of its reports for the page; empty: none
	args   []string
	log    string
	proc   *process.Process // the one there should be, or nil

	last *kvpb.StatusResponse // what it said last, nil before it said anything
	up   bool                 // it answered the last time
}

// cluster is the nodes of a demonstration.
type cluster struct {
	nodes []*node
	cl    *client.Client

	mu      sync.Mutex // guards proc, last and up of the nodes, and traffic
	traffic *traffic
}

// startAttempts is how often ports are chosen.
const startAttempts = 3

// startCluster starts all nodes. Should another program take one of the ports
// that were chosen, it chooses again.
func startCluster(ctx context.Context, cfg Config, dir string, p *progress) (*cluster, error) {
	// The same for all attempts: data directories remember it.
	id := uint64(os.Getpid())<<16 | rand.Uint64N(1<<16)
	var errs error
	for range startAttempts {
		c, err := newCluster(cfg, dir, id)
		if err != nil {
			return nil, err
		}
		err = c.startAll(ctx)
		if err == nil {
			p.event("%d nodes started, data in %s", len(c.nodes), dir)
			return c, nil
		}
		errs = errors.Join(errs, err, c.killAll())
		if ctx.Err() != nil || !strings.Contains(err.Error(), "address already in use") {
			return nil, errs
		}
	}
	return nil, errs
}

func newCluster(cfg Config, dir string, id uint64) (*cluster, error) {
	addresses, err := ports.Free(3 * cfg.Nodes)
	if err != nil {
		return nil, err
	}
	c := &cluster{traffic: newTraffic(cfg.Nodes)}
	var peers, endpoints []string
	for i := range cfg.Nodes {
		n := &node{id: uint64(i + 1), peer: addresses[3*i], client: addresses[3*i+1]}
		if cfg.Page != "" {
			n.http = addresses[3*i+2]
		}
		n.log = filepath.Join(dir, fmt.Sprintf("node-%d.log", n.id))
		peers = append(peers, fmt.Sprintf("%d=%s", n.id, n.peer))
		endpoints = append(endpoints, n.client)
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		n.args = append(append([]string{}, cfg.Serve...),
			"--id", strconv.FormatUint(n.id, 10),
			"--cluster", strconv.FormatUint(id, 10),
			"--peers", strings.Join(peers, ","),
			"--client-listen", n.client,
			"--data", filepath.Join(dir, fmt.Sprintf("node-%d", n.id)),
			"--exit-with-stdin")
		if n.http != "" {
			n.args = append(n.args, "--orders", "--http-listen", n.http)
		}
		n.args = append(n.args, cfg.Args...)
	}
	c.cl, err = client.New(client.Config{Endpoints: endpoints})
	return c, err
}

func (c *cluster) startAll(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := c.start(n); err != nil {
			return err
		}
	}
	return c.wait(ctx, "all nodes to answer", func() bool {
		return len(c.upNodes()) == len(c.nodes)
	})
}

// start starts a process for a node that has none.
func (c *cluster) start(n *node) error {
	proc, err := process.Start(n.args, n.log)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n.proc = proc
	return nil
}

// kill takes a node's process away without a warning.
func (c *cluster) kill(n *node) error {
	c.mu.Lock()
	proc := n.proc
	n.proc, n.up = nil, false
	c.mu.Unlock()
	if proc == nil {
		return nil
	}
	return proc.Kill()
}

// killAll ends every process there may be.
func (c *cluster) killAll() error {
	errs := []error{c.cl.Close()}
	for _, n := range c.nodes {
		errs = append(errs, c.kill(n))
	}
	return errors.Join(errs...)
}

// stopAll asks every process that there is to end and waits for them.
func (c *cluster) stopAll() error {
	errs := make([]error, len(c.nodes))
	var wg sync.WaitGroup
	for i, n := range c.nodes {
		if n.proc != nil {
			wg.Go(func() { errs[i] = n.proc.Stop(patience) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// poll asks all nodes for their status and notes it.
func (c *cluster) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	all := c.cl.Status(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range all {
		n := c.nodes[i]
		n.up = s.Err == nil && n.proc != nil
		if s.Err == nil {
			n.last = s.Status
			c.traffic.note(s.Status)
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
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// errFull says that the nodes have used up the room on the disk.
var errFull = errors.New("the disk is full")

// trouble returns an error if a process has ended that was not killed, or if a
// node said that it waits for room on the disk: for more than there is.
func (c *cluster) trouble() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		switch {
		case n.proc != nil && !n.proc.Running():
			return fmt.Errorf("node %d: %w", n.id, n.proc.Unexpected())
		case n.up && n.last.GetStalled() != "":
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
