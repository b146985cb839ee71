// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// Core is a Raft state machine, made by rawnode.Weft or rawnode.Upstream.
type Core = replica.Core

const (
	logDir   = "log"
	stateDir = "state"
	// turnTime is the duration of a turn of a node.
	turnTime = 20 * time.Microsecond
)

// node is a machine with a disk and, while up is set, a process with a replica.
type node struct {
	c     *Cluster
	id    uint64
	peers []uint64
	disk  *world.Disk
	rng   *rand.Rand
	life  int // counts starts; events planned in one life do not happen in a later life
	up    bool

	engine  *storage.Engine
	log     *storage.Group
	r       *replica.Replica
	core    Core
	sm      rawnode.StateMachine
	applied uint64 // index of the state
	calls   map[replica.Call]*Call
	role    raft.StateType

	drive   *world.Drive
	cpu     world.CPU
	writing bool // a round of the log is planned
}

// after plans an event, which does not happen if the process ends before.
func (n *node) after(d time.Duration, happen func()) {
	life := n.life
	n.c.agenda.After(d, func() {
		if n.up && n.life == life {
			happen()
		}
	})
}

// start starts the process from its disk.
func (n *node) start() {
	n.life++
	n.c.tell(n.id, "start %d", n.life)
	n.calls, n.cpu, n.writing, n.role = map[replica.Call]*Call{}, world.CPU{After: n.after}, false, raft.StateFollower
	if err := n.open(); err != nil {
		n.c.fail("node %d does not start: %v", n.id, err)
		return
	}
	n.up = true
	n.after(time.Duration(n.rng.Int64N(int64(n.c.opts.TickInterval))), n.tick)
	n.drive.Kick()
}

// open opens log and state, and makes the replica.
func (n *node) open() (err error) {
	files := n.disk.Files()
	n.engine, err = storage.Open(logDir, storage.Options{Identity: storage.Identity{Cluster: 1, Node: n.id}, FS: files, Manual: true})
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if n.log, err = n.engine.Group(theGroup); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if n.sm, err = n.c.opts.StateMachine(Member{Node: n.id, Start: n.life, Dir: Dir{files, stateDir}}); err != nil {
		return fmt.Errorf("open the state: %w", err)
	}
	if n.sm == nil {
		return errors.New("open the state: ClusterOptions.StateMachine has returned neither a state machine nor an error")
	}
	cfg, err := n.config()
	if err != nil {
		return err
	}
	w, err := replica.PrepareLog(cfg)
	if err == nil && w != nil {
		if err = n.log.Append(*w, nil); err == nil {
			err = n.writeAll()
		}
	}
	if err == nil {
		n.r, err = replica.New(cfg)
	}
	n.drive = world.NewDrive(n.r, n, world.DriveOptions{Group: theGroup, ID: n.id, Life: uint64(n.life), Patience: streamTicks * n.c.opts.TickInterval, Fetches: func(uint64) bool { return true }})
	return err
}

func (n *node) config() (cfg replica.Config, err error) {
	rc := rawnode.ReplicaConfig{Core: n.c.opts.Core}
	if n.c.opts.Adjust != nil {
		n.c.opts.Adjust(n.id, &rc)
	}
	newCore := rc.Core
	if newCore == nil {
		newCore = replica.Weft
	}
	rc.Core = func(c raft.Config) (Core, error) {
		core, err := newCore(c)
		n.core = core
		return core, err
	}
	rc.ID, rc.Group, rc.Log, rc.Peers, rc.Boot, rc.Rand = n.id, theGroup, n.log, n.peers, uint64(n.life), n.rng
	cfg.Settings = replica.Settings(rc)
	cfg.Tick = n.c.opts.TickInterval
	if s, ok := n.sm.(interface{ Settings() []rawnode.Setting }); ok {
		cfg.Equal = s.Settings()
	}
	if cfg.Applied, cfg.HostState, err = n.sm.Load(); err != nil {
		return cfg, fmt.Errorf("load the state: %w", err)
	}
	n.applied = cfg.Applied
	return cfg, nil
}

// writeAll makes the log's engine write all queued writes.
func (n *node) writeAll() error {
	for {
		if more, err := n.engine.Step(); err != nil || !more {
			return err
		}
	}
}

// crash ends the process.
func (n *node) crash(power bool) {
	n.c.tell(n.id, "down, power %v", power)
	left := world.None
	if power {
		left = world.All
	}
	if err := n.disk.Crash(left); err != nil {
		n.c.fail("node %d: crash the disk: %v", n.id, err)
	}
	n.leave()
	for _, id := range slices.Sorted(maps.Keys(n.calls)) {
		n.calls[id].finish(nil, 0, &rawnode.CallError{Op: "call", Verdict: rawnode.ErrUnknown, Cause: rawnode.ErrStopped, Waiting: "the node, which went down"})
	}
	n.calls = nil
	for _, other := range n.c.nodes {
		if other != n && other.up { // its connections break
			other.after(n.c.net.Link(n.id, other.id).Traits().Least, func() { other.drive.Unreachable(n.id) })
		}
	}
}

// leave closes the state machine of the process. Close writes to a file system that no later start
// uses.
func (n *node) leave() {
	if i, ok := n.sm.(rawnode.Interruptible); ok && n.up {
		i.Interrupt(rawnode.ErrStopped)
	}
	if closer, ok := n.sm.(io.Closer); ok {
		_ = closer.Close() // the process is gone, so an error has no meaning
	}
	n.up, n.sm = false, nil
}

// tick is the process's clock.
func (n *node) tick() {
	n.after(n.c.opts.TickInterval, n.tick)
	n.post(func(r *replica.Replica) { r.Tick(n.c.Now()) })
	n.durable()
	n.drive.Expire()
}

// post gives the replica an input; a turn follows.
func (n *node) post(do func(*replica.Replica)) { n.drive.Post(0, do) }

// Now implements world.Surroundings, as the methods below do.
func (n *node) Now() time.Duration { return n.c.Now() }

// Work gives the processor a task.
func (n *node) Work(t world.Task) { n.cpu.Add(t) }

// Later plans an event of the process.
func (n *node) Later(d time.Duration, happen func()) { n.after(d, happen) }

// TurnBegins returns the duration of a turn.
func (n *node) TurnBegins() time.Duration { return turnTime }

// Flushed ends the run if the replica is out of service.
func (n *node) Flushed(err error) (goOn bool) {
	if err != nil {
		n.c.fail("node %d is out of service: %v", n.id, err)
	}
	return err == nil
}

// TurnEnds tells of a new role.
func (n *node) TurnEnds() {
	if role := n.core.State().Role; role != n.role {
		n.role = role
		n.c.tell(n.id, "is %v in term %d", role, n.core.State().Term)
	}
}

// Append queues a write; a round of the log follows, which takes time.
func (n *node) Append(a *replica.Append) {
	err := n.log.Append(a.Write, func(err error) {
		if err != nil {
			n.c.fail("node %d: write the log: %v", n.id, err)
			return
		}
		n.post(func(r *replica.Replica) { r.AppendDone(*a) })
	})
	if err != nil {
		n.c.fail("node %d: append to the log: %v", n.id, err)
		return
	}
	n.round()
}

// round plans a write of all appends queued by the end of SyncTime.
func (n *node) round() {
	if n.writing {
		return
	}
	n.writing = true
	life := n.life
	n.disk.Do(n.c.opts.SyncTime, func() {
		if !n.up || n.life != life {
			return
		}
		n.writing = false
		if err := n.writeAll(); err != nil {
			n.c.fail("node %d: write the log: %v", n.id, err)
		}
	})
}

// Compact lets the log drop entries.
func (n *node) Compact(c *replica.Compact) {
	err := n.log.SetSnapshot(c.Snapshot, nil)
	if err == nil || errors.Is(err, raft.ErrSnapOutOfDate) {
		err = n.log.Compact(c.Index)
	}
	if err != nil && !errors.Is(err, raft.ErrCompacted) {
		n.c.fail("node %d: compact the log to %d: %v", n.id, c.Index, err)
	}
	n.c.tell(n.id, "log begins behind %d", c.Index)
	n.round()
}

// Ended ends a call.
func (n *node) Ended(d replica.Done) {
	k := n.calls[d.Call]
	if k == nil {
		n.c.fail("node %d ends call %d, which is not under way", n.id, d.Call)
		return
	}
	delete(n.calls, d.Call)
	n.c.tell(n.id, "%s ends: index %d, error %v", k.what, d.Index, d.Err)
	k.finish(d.Result, d.Index, d.Err)
}

// Step gives the state machine its next step.
func (n *node) Step() {
	s := n.drive.Take()
	n.cpu.Add(func() (time.Duration, func()) {
		return turnTime, func() {
			if s.Restore != nil {
				n.restore(s.Restore)
				return
			}
			n.apply(*s.Apply)
			n.drive.Stepped()
		}
	})
}

// apply applies a step unless the state has reached the step's index already.
func (n *node) apply(a replica.Apply) {
	var results []any
	if a.Batch.Index > n.applied {
		b := rawnode.Batch(a.Batch)
		var err error
		if results, err = n.sm.Apply(b); err != nil {
			n.c.fail("node %d: apply up to index %d: %v", n.id, b.Index, err)
			return
		}
		if err := n.c.history.took(n.id, n.applied, b, results); err != nil {
			n.c.fail("%v", err)
			return
		}
		n.applied = b.Index
	}
	n.post(func(r *replica.Replica) { r.ApplyDone(a, results) })
	n.durable()
}

// durable reports the durable index to the replica.
func (n *node) durable() {
	index, err := n.sm.Durable()
	if err != nil {
		n.c.fail("node %d: Durable: %v", n.id, err)
		return
	}
	n.post(func(r *replica.Replica) { r.Durable(index) })
}

// Send hands messages to the network.
func (n *node) Send(messages []wire.Message) {
	for _, m := range messages {
		n.send(m)
	}
}

// send hands an encoded message to the network.
func (n *node) send(m wire.Message) {
	b, err := m.MarshalBinary()
	if err != nil {
		n.c.fail("node %d: encode a message: %v", n.id, err)
		return
	}
	_, chunk := m.Body.(wire.Chunk) // pieces are not lost, and keep their order
	l := n.c.net.Link(n.id, m.To)
	lost := func() { n.after(n.c.opts.Link.Delay, func() { n.drive.Unreachable(m.To) }) }
	if l == nil || m.To > uint64(len(n.c.nodes)) {
		lost()
		return
	}
	to, from, group := n.c.nodes[m.To-1], n.id, m.Group
	l.Send(world.Frame{Bytes: len(b), Sure: chunk, Lost: lost, Arrive: func(bool) {
		if !to.up {
			return // the sender was told when the node went down
		}
		var got wire.Message
		if err := got.UnmarshalBinary(b); err != nil || got.From != from || got.Group != group {
			n.c.fail("decode a message of node %d: %v", from, err)
			return
		}
		to.receive(got)
	}})
}

// receive takes a message from the network.
func (n *node) receive(m wire.Message) {
	n.post(func(*replica.Replica) {
		if err := n.drive.Deliver(m); err != nil {
			n.c.fail("node %d refuses a message of node %d: %v", n.id, m.From, err)
		}
	})
}
