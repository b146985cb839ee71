// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/process"
)

// Program is a program of which each node of a cluster runs one.
type Program interface {
	// Command returns the command line of a node.
	Command(c *Cluster, n *Node) []string
	// Status asks a node.
	Status(ctx context.Context, n *Node) (Status, error)
	// Transfer asks the node that leads to have another node lead.
	Transfer(ctx context.Context, leader, to *Node) error
}

// Status is what a node says of itself. Ids are the program's own.
type Status struct{ ID, Leader, Term uint64 }

// ClusterConfig says what to run.
type ClusterConfig struct {
	Name    string // of the cluster, for messages
	Program Program
	Nodes   int
	Spare   int    // hosts besides, for Replace
	Dir     string // for data and logs, made here
	// DataDir, if set, returns where a node keeps its data.
	DataDir func(id int) string
	// Network, if set, has all hosts, and stays the caller's; without it nodes are
	// connected as Kind, Delay and Dialer of Links say, by default directly.
	Network *Network
	Links   NetworkConfig
}

// Cluster is several nodes, as processes on this machine.
type Cluster struct {
	Name  string
	Dir   string
	Nodes []*Node
	// Number tells clusters apart.
	Number  uint64
	Network *Network
	owned   bool // Network is closed with the cluster
	program Program
	dataDir func(id int) string
	made    int // nodes, each on a host of its own
}

// Node is one member, through all the processes that it has had. Its methods may be called at the
// same time.
type Node struct {
	Host
	ID      int  // from 1 on
	Joins   bool // in the place of another node
	Data    string
	cluster *Cluster
	log     string

	mu   sync.Mutex
	proc *process.Process // the one there should be, or nil
	past process.Usage    // of processes that are gone, as far as it was read
}

// patience bounds the wait for a step that a healthy cluster takes by itself.
const patience = 60 * time.Second

// startAttempts is how often ports are chosen, as another program may take one.
const startAttempts = 3

// StartCluster starts all nodes, and waits until all answer.
func StartCluster(ctx context.Context, cfg ClusterConfig) (*Cluster, error) {
	number := 1 + rand.Uint64N(1<<48) // of all attempts, because data directories remember it
	var errs error
	for range startAttempts {
		c, err := newCluster(cfg, number)
		if err != nil {
			return nil, err
		}
		if err = c.startAll(ctx); err == nil {
			return c, nil
		}
		errs = errors.Join(errs, err, c.Close())
		if cfg.Network != nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	return nil, errs
}

func (c *Cluster) startAll(ctx context.Context) error {
	for _, n := range c.Nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return c.Wait(ctx, "all nodes to answer", func(ctx context.Context) error {
		_, err := c.ask(ctx)
		return err
	})
}

func newCluster(cfg ClusterConfig, number uint64) (_ *Cluster, err error) {
	c := &Cluster{Name: cfg.Name, Dir: cfg.Dir, Number: number, Network: cfg.Network, program: cfg.Program, dataDir: cfg.DataDir}
	if c.Network == nil {
		c.owned, cfg.Links.Hosts = true, cfg.Nodes+cfg.Spare
		if cfg.Links.Kind == "" {
			cfg.Links.Kind = direct
		}
		if c.Network, err = NewNetwork(cfg.Links); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for range cfg.Nodes {
		c.Nodes = append(c.Nodes, c.newNode())
	}
	return c, nil
}

// newNode makes a node on the next host.
func (c *Cluster) newNode() *Node {
	c.made++
	path := filepath.Join(c.Dir, fmt.Sprintf("node-%d", c.made))
	n := &Node{Host: c.Network.Hosts[c.made-1], ID: c.made, Data: path, log: path + ".log", cluster: c}
	if c.dataDir != nil {
		n.Data = c.dataDir(n.ID)
	}
	return n
}

// Replace puts a new node, on the next spare host and not started, in the place of another node; a host must be left. The process
// of the other is the caller's from now on: it may end by itself.
func (c *Cluster) Replace(old *Node) *Node {
	n := c.newNode()
	n.Joins, c.Nodes[slices.Index(c.Nodes, old)] = true, n
	return n
}

// Log returns the path of the file with the output of a node's processes.
func (n *Node) Log() string { return n.log }

// Start starts a process for a node that has none.
func (n *Node) Start() error {
	p, err := process.Start(n.Command(n.cluster.program.Command(n.cluster, n)...), n.log)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proc = p
	return nil
}

// Process returns the node's process, or nil.
func (n *Node) Process() *process.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc
}

// take returns the node's process, which is no longer the node's.
func (n *Node) take() *process.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.proc
	if p != nil {
		if u, err := p.Usage(); err == nil {
			n.past = n.past.Add(u)
		}
	}
	n.proc = nil
	return p
}

// Kill ends a node's process, if there is one, with SIGKILL.
func (n *Node) Kill() error {
	if p := n.take(); p != nil {
		return p.Kill()
	}
	return nil
}

// errDown is returned by methods that need a process where a node has none.
var errDown = errors.New("the node has no process")

// with does something to a node's process.
func with(p *process.Process, do func(*process.Process) error) error {
	if p == nil {
		return errDown
	}
	return do(p)
}

// Pause has a node's process stand still until Resume.
func (n *Node) Pause() error { return with(n.Process(), (*process.Process).Pause) }

// Resume lets a node's process go on.
func (n *Node) Resume() error { return with(n.Process(), (*process.Process).Resume) }

// Tell writes a line to the standard input of a node's process.
func (n *Node) Tell(line string) error {
	return with(n.Process(), func(p *process.Process) error { return p.Tell(line) })
}

// Terminate ends a node's process with SIGTERM, within a grace period.
func (n *Node) Terminate(grace time.Duration) error {
	return with(n.take(), func(p *process.Process) error { return p.Terminate(grace) })
}

// Up reports whether the node has a process that runs.
func (n *Node) Up() bool {
	p := n.Process()
	return p != nil && p.Running()
}

// Usage returns what the node's processes have used.
func (n *Node) Usage() (process.Usage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return n.past, nil
	}
	u, err := n.proc.Usage()
	return n.past.Add(u), err
}

// Clients returns the nodes' addresses for clients.
func (c *Cluster) Clients() (all []string) {
	for _, n := range c.Nodes {
		all = append(all, n.Client)
	}
	return all
}

// Peers lists the nodes and their addresses as flags of kvdemo do: id=host:port,...
func (c *Cluster) Peers() string {
	var all []string
	for _, n := range c.Nodes {
		all = append(all, fmt.Sprintf("%d=%s", n.ID, n.Address))
	}
	return strings.Join(all, ",")
}

// Trouble returns an error if a process has ended that nobody ended.
func (c *Cluster) Trouble() error {
	for _, n := range c.Nodes {
		if p := n.Process(); p != nil && !p.Running() {
			return fmt.Errorf("%s, node %d: %w", c.Name, n.ID, p.Unexpected())
		}
	}
	return nil
}

// Wait calls done until it returns no error, a process ends by itself, or a minute is over.
func (c *Cluster) Wait(ctx context.Context, what string, done func(context.Context) error) error {
	return c.WaitFor(ctx, patience, what, done)
}

// WaitFor is Wait with another patience.
func (c *Cluster) WaitFor(ctx context.Context, patience time.Duration, what string, done func(context.Context) error) error {
	for deadline := time.Now().Add(patience); ; {
		err := done(ctx)
		if err == nil {
			return nil
		}
		if dead := c.Trouble(); dead != nil {
			return fmt.Errorf("waiting for %s: %w", what, dead)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: waited %v for %s; logs are in %s: %w", c.Name, patience, what, c.Dir, err)
		}
		if err := Sleep(ctx, 30*time.Millisecond); err != nil {
			return err
		}
	}
}

var errNoLeader = errors.New("the nodes do not follow one leader")

// Lead waits until all nodes that have a process follow one of them, and returns that node and its
// term.
func (c *Cluster) Lead(ctx context.Context) (leader *Node, term uint64, err error) {
	err = c.Wait(ctx, "a leader that all nodes follow", func(ctx context.Context) (err error) {
		leader, term, err = c.look(ctx)
		return err
	})
	return leader, term, err
}

// ask asks all nodes that have a process, at the same time.
func (c *Cluster) ask(ctx context.Context) (said []Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	said = make([]Status, len(c.Nodes))
	errs := make([]error, len(c.Nodes))
	var group sync.WaitGroup
	for i, n := range c.Nodes {
		if n.Process() != nil {
			group.Go(func() { said[i], errs[i] = c.program.Status(ctx, n) })
		}
	}
	group.Wait()
	return said, errors.Join(errs...)
}

// look finds the leader in what all nodes say now.
func (c *Cluster) look(ctx context.Context) (leader *Node, term uint64, err error) {
	said, err := c.ask(ctx)
	if err != nil {
		return nil, 0, err
	}
	lead := uint64(0)
	for i, s := range said {
		switch {
		case c.Nodes[i].Process() == nil:
			continue
		case s.Leader == 0 || lead != 0 && s.Leader != lead:
			return nil, 0, fmt.Errorf("%w: they say %v", errNoLeader, said)
		case s.Leader == s.ID:
			leader, term = c.Nodes[i], s.Term
		}
		lead = s.Leader
	}
	if leader == nil {
		return nil, 0, fmt.Errorf("%w: they say %v", errNoLeader, said)
	}
	return leader, term, nil
}

// HandTo has a node lead: it asks whichever leads to hand over, again and again.
func (c *Cluster) HandTo(ctx context.Context, to *Node) error {
	return c.Wait(ctx, fmt.Sprintf("node %d to lead", to.ID), func(ctx context.Context) error {
		leader, _, err := c.look(ctx)
		if err != nil || leader == to {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return errors.Join(fmt.Errorf("node %d leads", leader.ID), c.program.Transfer(ctx, leader, to))
	})
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

// Settle waits until the nodes rest, because what they put off is a part of what a load costs.
func (c *Cluster) Settle(ctx context.Context, limit time.Duration) error {
	const (
		step  = 100 * time.Millisecond
		steps = 3                    // of rest: etcd writes its data a tenth of a second late
		rest  = 4 * time.Millisecond // processor time of a node that rests in a step
	)
	last, err := c.Usage()
	for calm, end := 0, time.Now().Add(limit); err == nil && calm < steps && time.Now().Before(end); {
		if err := Sleep(ctx, step); err != nil {
			return err
		}
		var now process.Usage
		now, err = c.Usage()
		if calm++; now.CPU-last.CPU > rest*time.Duration(len(c.Nodes)) {
			calm = 0
		}
		last = now
	}
	return err
}

// Stop asks all processes to end in good order, and waits for them.
func (c *Cluster) Stop() error {
	_, err := c.stop()
	return err
}

// StopAndCount is Stop, and returns the bytes that the processes have written to the disk up to
// their end.
func (c *Cluster) StopAndCount() (written uint64, err error) {
	procs, err := c.stop()
	for _, p := range procs {
		bytes, failed := process.Written(p.State())
		written, err = written+bytes, errors.Join(err, failed)
	}
	return written, err
}

func (c *Cluster) stop() (procs []*process.Process, err error) {
	var group sync.WaitGroup
	errs := make([]error, len(c.Nodes))
	for i, n := range c.Nodes {
		if p := n.take(); p != nil {
			procs = append(procs, p)
			group.Go(func() { errs[i] = p.Stop(patience) })
		}
	}
	group.Wait()
	return procs, errors.Join(errs...)
}

// Terminate ends all processes with SIGTERM, each within a grace period, and takes the network down: for programs that
// do not end with their standard input.
func (c *Cluster) Terminate(grace time.Duration) (err error) {
	for _, n := range c.Nodes {
		err = errors.Join(err, n.Terminate(grace))
	}
	return errors.Join(err, c.Close())
}

// Close kills what is left.
func (c *Cluster) Close() error {
	var errs []error
	for _, n := range c.Nodes {
		errs = append(errs, n.Kill())
	}
	if c.owned {
		errs = append(errs, c.Network.Close())
	}
	return errors.Join(errs...)
}
