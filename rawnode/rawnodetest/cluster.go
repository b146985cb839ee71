// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// T is the part of *testing.T or *testing.B that a [Cluster] needs.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Failed() bool
	Cleanup(func())
}

// Member names the node, and the directory, for which a state machine is opened.
type Member struct {
	Node uint64
	// Start counts the starts of the node, from 1.
	Start int
	// Dir is on the node's disk, and crashes with the node.
	Dir Dir
}

// ClusterOptions configures [NewCluster]. StateMachine must be set; all else has a useful
// zero value.
type ClusterOptions struct {
	// StateMachine opens a node's state, at each start of the node. The goroutine of the test calls
	// StateMachine and all methods of the state machine. A state machine that is an io.Closer is
	// closed when the node goes down. Required.
	StateMachine func(Member) (rawnode.StateMachine, error)
	// Seed decides all random draws: the same seed gives the same run.
	Seed uint64
	// Nodes is the number of nodes at the beginning, all of them voters, with ids from 1 on; 0
	// means 3; at most 9.
	Nodes int
	// Core is the library to drive: rawnode.Weft (if nil) or rawnode.Upstream. Runs of
	// rawnode.Upstream do not repeat, because that library draws from its own source of randomness.
	Core func(raft.Config) (Core, error)
	// Adjust, unless nil, may change the configuration of a node, except ID, Group, Log, Peers,
	// Boot and Rand.
	Adjust func(node uint64, c *rawnode.ReplicaConfig)
	// TickInterval is the length of a tick; 0 means 100 ms. An election begins after 10
	// to 20 ticks without a leader.
	TickInterval time.Duration
	// Link is the shape of the network at the beginning; see [Cluster.SetLink]. Delay 0 means 1 ms.
	Link Link
	// SyncTime is the time that the disk takes for a write to the log; 0 means 1 ms.
	SyncTime time.Duration
	// ChunkBytes is the size of the pieces of snapshots; 0 means 64 KiB.
	ChunkBytes int
	// Trace, unless nil, gets each line of the story at once.
	Trace io.Writer
}

// Link is the connection from a node to another node, in this direction.
type Link struct {
	Delay  time.Duration // of each message
	Jitter time.Duration // upper bound of the extra delay drawn for each message; so messages may change their order
	Loss   float64       // share of the messages that are lost, 0 to 1; pieces of snapshots are not lost
	Cut    bool          // all messages are lost
}

// Validate returns an error that names every mistake, or nil.
func (o ClusterOptions) Validate() error {
	var errs []error
	bad := func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("rawnodetest: ClusterOptions.%s is %v, want %s", field, value, want))
	}
	if o.StateMachine == nil {
		bad("StateMachine", "nil", "a function that opens a node's state")
	}
	if o.Nodes < 0 || o.Nodes > maxNodes {
		bad("Nodes", o.Nodes, fmt.Sprintf("0 to %d", maxNodes))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"TickInterval", o.TickInterval}, {"SyncTime", o.SyncTime}} {
		if d.value < 0 || d.value > time.Minute {
			bad(d.field, d.value, "0 to 1m")
		}
	}
	if o.ChunkBytes < 0 || o.ChunkBytes > 16<<20 {
		bad("ChunkBytes", o.ChunkBytes, fmt.Sprintf("0 to %d", 16<<20))
	}
	return errors.Join(append(errs, o.Link.validate())...)
}

func (l Link) validate() error {
	if l.Delay < 0 || l.Jitter < 0 || l.Loss < 0 || l.Loss > 1 {
		return fmt.Errorf("rawnodetest: Link is %+v, want Delay and Jitter of 0 or more, and Loss from 0 to 1", l)
	}
	return nil
}

// shape gives a link of the network this shape.
func (l Link) shape(link *world.Link) {
	t := world.Traits{Least: l.Delay, Loss: l.Loss}
	if l.Jitter > 0 {
		t.Most = l.Delay + l.Jitter
	}
	link.Shape(t, link.Draws)
	link.Block(l.Cut)
}

func (o *ClusterOptions) setDefaults() {
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.TickInterval == 0 {
		o.TickInterval = 100 * time.Millisecond
	}
	if o.SyncTime == 0 {
		o.SyncTime = time.Millisecond
	}
	if o.Link.Delay == 0 {
		o.Link.Delay = time.Millisecond
	}
	if o.ChunkBytes == 0 {
		o.ChunkBytes = 64 << 10
	}
}

const (
	maxNodes = 9
	theGroup = 1
	// mostEvents bounds the events of one moment: a run with more events is in an endless loop.
	mostEvents = 1_000_000
)

// Cluster is a group of nodes in virtual time, in the goroutine of the test: the work that a host
// does with goroutines, sockets, files and clocks happens as events, in an order decided by the
// seed. Time passes in Run, Until, Wait and the methods that wait. A second of virtual time takes
// some milliseconds.
//
// The replica, the encoding of messages, the log engine on a disk in memory that can crash, and the
// state machine are the real parts of a host. During a run, the cluster compares the results that
// the state machines return for each command: if the results of two replicas differ, the test ends.
//
// When the test fails, the cluster logs the seed and the end of the story.
type Cluster struct {
	t       T
	opts    ClusterOptions
	agenda  world.Agenda
	net     *world.Network
	nodes   []*node // by id, from 1
	calls   uint64
	history history
	broken  error // the failure that ended the run

	story world.Story
}

// NewCluster makes and starts a cluster. A mistake in the options ends the test.
func NewCluster(t T, o ClusterOptions) *Cluster {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatalf("%v", err)
	}
	o.setDefaults()
	c := &Cluster{t: t, opts: o}
	c.story = world.NewStory(&c.agenda, o.Trace)
	c.net = world.NewNetwork(&c.agenda, world.NewDraws(o.Seed, 0), maxNodes, &world.Traits{})
	c.eachLink(func(_, _ uint64, l *world.Link) { o.Link.shape(l) })
	t.Cleanup(c.end)
	var peers []uint64
	for id := range uint64(o.Nodes) {
		peers = append(peers, id+1)
	}
	for _, id := range peers {
		c.add(id, peers)
	}
	for _, n := range c.nodes {
		n.start()
	}
	c.check()
	return c
}

// add makes a node with an empty disk.
func (c *Cluster) add(id uint64, peers []uint64) *node {
	n := &node{c: c, id: id, peers: peers, disk: world.NewDisk(&c.agenda, world.NewDraws(c.opts.Seed, 1<<33+id), logDir, stateDir), rng: rand.New(rand.NewPCG(c.opts.Seed, id))}
	for _, dir := range []string{logDir, stateDir} {
		if err := makeDir(n.disk.Files(), dir); err != nil {
			c.fail("make directory %s of node %d: %v", dir, id, err)
		}
	}
	c.nodes = append(c.nodes, n)
	return n
}

// end closes the nodes, and logs the story if the test has failed.
func (c *Cluster) end() {
	for _, n := range c.nodes {
		n.leave()
	}
	if c.t.Failed() {
		c.t.Logf("rawnodetest: seed %d, %v of virtual time, %d lines; the last of them:\n%s", c.opts.Seed, c.Now(), c.story.Lines, c.story.Recent())
	}
}

// tell adds a line to the story.
func (c *Cluster) tell(node uint64, format string, args ...any) {
	c.story.Tell(node, format, args...)
}

// fail ends the run; the next call of check ends the test.
func (c *Cluster) fail(format string, args ...any) {
	if c.broken == nil {
		c.broken = fmt.Errorf(format, args...)
		c.tell(0, "FAILED: %v", c.broken)
	}
}

// check ends the test if the run has failed.
func (c *Cluster) check() {
	c.t.Helper()
	if c.broken != nil {
		c.t.Fatalf("rawnodetest: at %v of seed %d: %v", c.Now(), c.opts.Seed, c.broken)
	}
}

// step lets the next event happen, unless the event is later than until. here counts the events
// since the time last advanced.
func (c *Cluster) step(until time.Duration, here *int) bool {
	before := c.Now()
	more := c.agenda.Step(until)
	if *here++; c.Now() > before {
		*here = 0
	}
	if *here > mostEvents {
		c.fail("%d events at one moment: they go round in circles", *here)
	}
	return more && c.broken == nil
}

// Now returns the virtual time that has passed.
func (c *Cluster) Now() time.Duration { return c.agenda.Now() }

// Story returns a hash of all lines of the story. Two runs with the same seed have the same Story.
func (c *Cluster) Story() uint64 { return c.story.Hash }

// Run lets time pass.
func (c *Cluster) Run(d time.Duration) {
	c.t.Helper()
	here := 0
	for end := c.Now() + d; c.step(end, &here); {
	}
	c.check()
}

// After calls f when d has passed, between two events: for faults during a wait of the test. f must
// not wait.
func (c *Cluster) After(d time.Duration, f func()) { c.agenda.After(d, f) }

// Until lets time pass until the condition so holds, and ends the test if the wait takes longer
// than limit. words describe the condition in the message.
func (c *Cluster) Until(limit time.Duration, words string, so func() bool) {
	c.t.Helper()
	here := 0
	for end := c.Now() + limit; !so(); {
		if !c.step(end, &here) && c.broken == nil && !so() {
			c.fail("after %v: still not %s", limit, words)
		}
		c.check()
	}
}

// node returns a node; an unknown number ends the test.
func (c *Cluster) node(id uint64) *node {
	c.t.Helper()
	if id == 0 || id > uint64(len(c.nodes)) {
		c.t.Fatalf("rawnodetest: node %d, want 1 to %d", id, len(c.nodes))
	}
	return c.nodes[id-1]
}

// Leader returns the node that leads at the highest term, by the running nodes' own view, or 0. A
// leader that is cut off may not know of its successor yet.
func (c *Cluster) Leader() (leader uint64) {
	term := uint64(0)
	for _, n := range c.nodes {
		if n.up {
			if st := n.core.State(); st.Role == raft.StateLeader && st.Term > term {
				leader, term = n.id, st.Term
			}
		}
	}
	return leader
}

// WaitLeader waits for a leader and returns its id.
func (c *Cluster) WaitLeader() uint64 {
	c.t.Helper()
	c.Until(1000*c.opts.TickInterval, "a leader", func() bool { return c.Leader() > 0 })
	return c.Leader()
}

// Up reports whether a node runs.
func (c *Cluster) Up(node uint64) bool { return c.node(node).up }

// Status returns a running node's view of itself and its group; for a node that is down, the zero
// Status.
func (c *Cluster) Status(node uint64) rawnode.Status {
	c.t.Helper()
	if n := c.node(node); n.up {
		return rawnode.Status(n.r.Status())
	}
	return rawnode.Status{}
}

// StateMachine returns the state machine that ClusterOptions.StateMachine returned at the last
// start of a node; nil if the node is down.
func (c *Cluster) StateMachine(node uint64) rawnode.StateMachine {
	c.t.Helper()
	return c.node(node).sm
}

// Crash ends a node at once. With power, the next start finds all bytes written to the disk, as
// after the end of a process; without power, only the synced bytes.
func (c *Cluster) Crash(node uint64, power bool) {
	c.t.Helper()
	n := c.node(node)
	if n.up {
		n.crash(power)
	}
	c.check()
}

// HangDisk lets the disk of a node's log end no write for a time, without an error.
func (c *Cluster) HangDisk(node uint64, lasting time.Duration) {
	c.t.Helper()
	c.tell(node, "disk hangs for %v", lasting)
	c.node(node).disk.Hang(lasting)
}

// SlowDisk makes writes to a node's log take so many times as long, for a time.
func (c *Cluster) SlowDisk(node uint64, times int, lasting time.Duration) {
	c.t.Helper()
	c.tell(node, "disk %d times slower for %v", times, lasting)
	c.node(node).disk.Slow(times, lasting)
}

// Start starts a node that is down, from its disk.
func (c *Cluster) Start(node uint64) {
	c.t.Helper()
	if n := c.node(node); !n.up {
		n.start()
	}
	c.check()
}

// Restart is Crash, and Start at once.
func (c *Cluster) Restart(node uint64, power bool) {
	c.t.Helper()
	c.Crash(node, power)
	c.Start(node)
}

// Add starts a further node, with an empty disk, and returns its id. The node is no member of the
// group yet: see [Cluster.ProposeConfChange].
func (c *Cluster) Add() uint64 {
	c.t.Helper()
	if len(c.nodes) == maxNodes {
		c.t.Fatalf("rawnodetest: there are %d nodes, the most", maxNodes)
	}
	n := c.add(uint64(len(c.nodes)+1), nil)
	n.start()
	c.check()
	return n.id
}

// SetLink changes the link from a node to another. Messages under way arrive as planned, unless the
// link is cut.
func (c *Cluster) SetLink(from, to uint64, l Link) {
	c.t.Helper()
	if err := l.validate(); err != nil {
		c.t.Fatalf("%v", err)
	}
	c.tell(0, "link %d to %d: %+v", c.node(from).id, c.node(to).id, l)
	l.shape(c.net.Link(from, to))
}

// Partition cuts the links between nodes of different sides, in both directions, and
// mends all others. A node on no side is alone.
func (c *Cluster) Partition(sides ...[]uint64) {
	c.t.Helper()
	var side [maxNodes + 1]int
	for i, nodes := range sides {
		for _, id := range nodes {
			side[c.node(id).id] = i + 1
		}
	}
	c.tell(0, "partition %v", sides)
	c.eachLink(func(from, to uint64, l *world.Link) {
		l.Block(from != to && (side[from] != side[to] || side[from] == 0))
	})
}

// Heal resets all links to ClusterOptions.Link.
func (c *Cluster) Heal() {
	c.tell(0, "heal")
	c.eachLink(func(_, _ uint64, l *world.Link) { c.opts.Link.shape(l) })
}

func (c *Cluster) eachLink(do func(from, to uint64, l *world.Link)) {
	for from := uint64(1); from <= maxNodes; from++ {
		for to := uint64(1); to <= maxNodes; to++ {
			do(from, to, c.net.Link(from, to))
		}
	}
}
