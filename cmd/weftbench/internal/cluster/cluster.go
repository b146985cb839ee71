// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the nodes of a key-value store as processes on this
// machine, kills and restarts them, and measures what they use.
package cluster

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

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/lab"
	"github.com/weftraft/weft/internal/ports"
	"github.com/weftraft/weft/internal/process"
)

// MaxCallBytes bounds a message between a client and a node.
const MaxCallBytes = 5 << 20

// patience is how long a step may take that needs nothing but time.
const patience = 60 * time.Second

// Config says what to run.
type Config struct {
	Name  string   // of the cluster, for messages and its directory
	Serve []string // command line of a node, to which --id and so on are added
	Args  []string // more flags for each node
	Nodes int
	Dir   string // directory for its data, made here
	// DataDir, if set, returns where a node keeps its data.
	DataDir func(id int) string
	// Delay, if set, puts links between the nodes on which bytes take so long in one
	// direction, and which can be cut. Nodes must know the flag --listen.
	Delay func(from, to int) time.Duration
	// NodeArgs, if set, returns more flags for a node.
	NodeArgs func(id int) []string
}

// Node is one member, through all the processes that it has had.
type Node struct {
	ID      int
	Address string // for clients
	Data    string
	args    []string
	log     string
	proc    *process.Process
	past    process.Usage // of processes that are gone, as far as it was read
	conn    *grpc.ClientConn
}

// Cluster is several nodes. Its methods are for one goroutine.
type Cluster struct {
	Name  string
	Nodes []*Node
	// Links are those between the nodes; nil without Config.Delay.
	Links *lab.Links
}

// Start starts all nodes and waits until they have a leader.
func Start(ctx context.Context, cfg Config) (_ *Cluster, err error) {
	addresses, err := ports.Free(2 * cfg.Nodes)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, err
	}
	c := &Cluster{Name: cfg.Name}
	if cfg.Delay != nil {
		if c.Links, err = lab.New(addresses[:cfg.Nodes], cfg.Delay); err != nil {
			return nil, err
		}
	}
	var peers []string
	for i := range cfg.Nodes {
		at := addresses[i]
		if c.Links != nil {
			at = c.Links.Address(i + 1)
		}
		peers = append(peers, fmt.Sprintf("%d=%s", i+1, at))
	}
	number := strconv.FormatUint(1+rand.Uint64N(1<<48), 10)
	for i := range cfg.Nodes {
		n := &Node{ID: i + 1, Address: addresses[cfg.Nodes+i], Data: filepath.Join(cfg.Dir, fmt.Sprintf("node-%d", i+1))}
		if cfg.DataDir != nil {
			n.Data = cfg.DataDir(n.ID)
		}
		n.log = filepath.Join(cfg.Dir, fmt.Sprintf("node-%d.log", n.ID))
		n.args = append(append([]string{}, cfg.Serve...), "--id", strconv.Itoa(n.ID), "--cluster", number,
			"--peers", strings.Join(peers, ","), "--client-listen", n.Address, "--data", n.Data, "--exit-with-stdin")
		if c.Links != nil {
			n.args = append(n.args, "--listen", addresses[i])
		}
		n.args = append(n.args, cfg.Args...)
		if cfg.NodeArgs != nil {
			n.args = append(n.args, cfg.NodeArgs(n.ID)...)
		}
		if n.conn, err = Dial(n.Address); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.Nodes = append(c.Nodes, n)
	}
	for _, n := range c.Nodes {
		if err := n.Start(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if _, err := c.WaitLeader(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Dial returns a connection for one client, which connects when it is used.
func Dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxCallBytes), grpc.MaxCallSendMsgSize(MaxCallBytes)),
		grpc.WithDisableRetry())
}

// Start starts a process for a node that has none.
func (n *Node) Start() (err error) {
	n.proc, err = process.Start(n.args, n.log)
	return err
}

// Kill ends a node's process with SIGKILL.
func (n *Node) Kill() error {
	if n.proc == nil {
		return nil
	}
	if u, err := n.proc.Usage(); err == nil {
		n.past = n.past.Add(u)
	}
	p := n.proc
	n.proc = nil
	return p.Kill()
}

// Pause has a node's process stand still until Resume.
func (n *Node) Pause() error { return n.proc.Pause() }

// Resume lets a node's process go on.
func (n *Node) Resume() error { return n.proc.Resume() }

// Terminate ends a node's process with SIGTERM, within a grace period.
func (n *Node) Terminate(grace time.Duration) error {
	p := n.proc
	n.proc = nil
	return p.Terminate(grace)
}

// Up reports whether the node has a process that runs.
func (n *Node) Up() bool { return n.proc != nil && n.proc.Running() }

// KV returns a client of this node.
func (n *Node) KV() kvpb.KVClient { return kvpb.NewKVClient(n.conn) }

// Admin returns an operator's client of this node.
func (n *Node) Admin() kvpb.AdminClient { return kvpb.NewAdminClient(n.conn) }

// Addresses returns the nodes' addresses for clients.
func (c *Cluster) Addresses() (all []string) {
	for _, n := range c.Nodes {
		all = append(all, n.Address)
	}
	return all
}

// Status asks all nodes at once; those that do not answer are nil.
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

// WaitLeader waits until all processes there are answer and follow one leader,
// and returns it.
func (c *Cluster) WaitLeader(ctx context.Context) (leader *Node, err error) {
	err = c.Wait(ctx, "a leader that all nodes follow", func(all []*kvpb.StatusResponse) bool {
		leader = nil
		lead := uint64(0)
		for i, s := range all {
			switch {
			case s == nil && c.Nodes[i].proc == nil:
			case s == nil || s.GetLeader() == 0 || lead != 0 && lead != s.GetLeader():
				return false
			default:
				lead = s.GetLeader()
				if s.GetRole() == "leader" {
					leader = c.Nodes[i]
				}
			}
		}
		return leader != nil && uint64(leader.ID) == lead
	})
	return leader, err
}

// Wait polls the nodes until the condition holds, a process ends by itself, or
// patience does.
func (c *Cluster) Wait(ctx context.Context, what string, done func([]*kvpb.StatusResponse) bool) error {
	return c.WaitFor(ctx, patience, what, done)
}

// WaitFor is Wait with another patience.
func (c *Cluster) WaitFor(ctx context.Context, patience time.Duration, what string, done func([]*kvpb.StatusResponse) bool) error {
	deadline := time.Now().Add(patience)
	for {
		all := c.Status(ctx)
		if done(all) {
			return nil
		}
		for _, n := range c.Nodes {
			if n.proc != nil && !n.proc.Running() {
				return fmt.Errorf("%s, node %d: %w", c.Name, n.ID, n.proc.Unexpected())
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: waited %v for %s; the nodes say %v", c.Name, patience, what, all)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// HandTo has a node lead: it asks who leads to hand over, again and again.
func (c *Cluster) HandTo(ctx context.Context, to *Node) error {
	return c.Wait(ctx, fmt.Sprintf("node %d to lead", to.ID), func(all []*kvpb.StatusResponse) bool {
		if all[to.ID-1].GetRole() == "leader" {
			return true
		}
		for i, st := range all {
			if st.GetRole() == "leader" {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				_, _ = c.Nodes[i].Admin().Transfer(ctx, &kvpb.TransferRequest{To: uint64(to.ID)}) // tried again
				cancel()
			}
		}
		return false
	})
}

// NameResponders has nodes be responders of all keys, and waits until they answer reads by themselves.
func (c *Cluster) NameResponders(ctx context.Context, nodes ...uint64) error {
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := leader.Admin().NameResponders(call, &kvpb.NameRespondersRequest{Nodes: nodes}); err != nil {
		return fmt.Errorf("%s: name responders at node %d: %w", c.Name, leader.ID, err)
	}
	return c.Wait(ctx, fmt.Sprintf("nodes %v to answer reads by themselves", nodes), func(all []*kvpb.StatusResponse) bool {
		for _, id := range nodes {
			if g := all[id-1].GetGroups(); len(g) == 0 || !g[0].GetLeases().GetStable() {
				return false
			}
		}
		return true
	})
}

// Usage returns what the node's processes have used.
func (n *Node) Usage() (process.Usage, error) {
	if n.proc == nil {
		return n.past, nil
	}
	u, err := n.proc.Usage()
	return n.past.Add(u), err
}

// Usage adds up what all nodes have used.
func (c *Cluster) Usage() (sum process.Usage, err error) {
	for _, n := range c.Nodes {
		u, err := n.Usage()
		if err != nil {
			return sum, err
		}
		sum = sum.Add(u)
	}
	return sum, nil
}

// Settle waits until the nodes rest: what they put off is done then.
func (c *Cluster) Settle(ctx context.Context, limit time.Duration) error {
	const step, rest = 100 * time.Millisecond, 10 * time.Millisecond
	last, err := c.Usage()
	for calm, end := 0, time.Now().Add(limit); err == nil && calm < 2 && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(step):
		}
		var now process.Usage
		now, err = c.Usage()
		if calm++; now.CPU-last.CPU > rest {
			calm = 0
		}
		last = now
	}
	return err
}

// Stop asks all processes to end in good order, and waits for them.
func (c *Cluster) Stop() error {
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		if p := n.proc; p != nil {
			n.proc = nil
			wg.Go(func() { errs[i] = p.Stop(patience) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close kills what is left and closes the connections.
func (c *Cluster) Close() error {
	var errs []error
	for _, n := range c.Nodes {
		errs = append(errs, n.Kill(), n.conn.Close())
	}
	if c.Links != nil {
		errs = append(errs, c.Links.Close())
	}
	return errors.Join(errs...)
}

// StopAndCount stops all processes in good order, and returns the bytes that
// they have written to the disk up to their end.
func (c *Cluster) StopAndCount() (written uint64, err error) {
	var procs []*process.Process
	for _, n := range c.Nodes {
		if n.proc != nil {
			procs = append(procs, n.proc)
		}
	}
	if err := c.Stop(); err != nil {
		return 0, err
	}
	for _, p := range procs {
		bytes, err := writtenBytes(p.State())
		if err != nil {
			return 0, err
		}
		written += bytes
	}
	return written, nil
}
