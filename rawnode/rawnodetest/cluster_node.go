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

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
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
	fs    *vfs.MemFS
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

	inbox    []func(*replica.Replica)
	turning  bool // a turn is planned
	writing  bool // a round of the log is planned
	steps    []step
	applying bool // a step of the state machine is planned
	pollAt   time.Duration

	out    map[uint64]*outgoing // by stream
	in     map[uint64]*incoming // by sender
	stream uint64
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
	n.inbox, n.steps, n.turning, n.writing, n.applying, n.pollAt = nil, nil, false, false, false, 0
	n.calls, n.out, n.in = map[replica.Call]*Call{}, map[uint64]*outgoing{}, map[uint64]*incoming{}
	n.stream, n.role = uint64(n.life)<<32, raft.StateFollower
	if err := n.open(); err != nil {
		n.c.fail("node %d does not start: %v", n.id, err)
		return
	}
	n.up = true
	n.after(time.Duration(n.rng.Int64N(int64(n.c.opts.TickInterval))), n.tick)
	n.kick()
}

// open opens log and state, and makes the replica.
func (n *node) open() (err error) {
	n.engine, err = storage.Open(logDir, storage.Options{Identity: storage.Identity{Cluster: 1, Node: n.id}, FS: n.fs, Manual: true})
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if n.log, err = n.engine.Group(theGroup); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if n.sm, err = n.c.opts.StateMachine(Member{Node: n.id, Start: n.life, Dir: Dir{n.fs, stateDir}}); err != nil {
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
	left := crash(n.fs, power)
	n.leave()
	n.fs = left
	for _, id := range slices.Sorted(maps.Keys(n.calls)) {
		n.calls[id].finish(nil, 0, &rawnode.CallError{Op: "call", Verdict: rawnode.ErrUnknown, Cause: rawnode.ErrStopped, Waiting: "the node, which went down"})
	}
	n.calls = nil
	for _, other := range n.c.nodes {
		if other != n && other.up { // its connections break
			other.after(n.c.links[n.id][other.id].Delay, func() { other.unreachable(n.id) })
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
	n.expire()
}

// post gives the replica an input; a turn follows.
func (n *node) post(do func(*replica.Replica)) {
	n.inbox = append(n.inbox, do)
	n.kick()
}

func (n *node) kick() {
	if !n.turning {
		n.turning = true
		n.after(turnTime, n.turn)
	}
}

// turn is a turn of the loop: all waiting inputs, and then the work that the replica hands out.
func (n *node) turn() {
	n.turning = false
	items := n.inbox
	n.inbox = nil
	n.r.At(n.c.Now())
	for _, do := range items {
		do(n.r)
	}
	n.flush()
}

// flush ends a turn.
func (n *node) flush() {
	out := n.r.Flush(n.c.Now())
	if err := n.r.Err(); err != nil {
		n.c.fail("node %d is out of service: %v", n.id, err)
		return
	}
	for _, m := range out.Sends {
		n.send(m)
	}
	for _, a := range out.Appends {
		n.append(a)
	}
	if out.Compact != nil {
		n.compact(out.Compact)
	}
	for _, a := range out.Applies {
		n.steps = append(n.steps, step{apply: &a})
	}
	n.work()
	for _, s := range out.Snapshots {
		n.sendSnapshot(s)
	}
	for _, d := range out.Done {
		n.done(d)
	}
	if role := n.core.State().Role; role != n.role {
		n.role = role
		n.c.tell(n.id, "is %v in term %d", role, n.core.State().Term)
	}
	n.poll()
}

// poll plans a call of Poll at the replica's deadline.
func (n *node) poll() {
	at, ok := n.r.Deadline()
	if !ok || n.pollAt > n.c.Now() && n.pollAt <= at {
		return
	}
	n.pollAt = at
	n.after(max(at-n.c.Now(), turnTime), func() {
		if n.pollAt == at {
			n.pollAt = 0
			n.post(func(r *replica.Replica) { r.Poll(n.c.Now()) })
		}
	})
}

// append queues a write; a round of the log follows, which takes time.
func (n *node) append(a replica.Append) {
	err := n.log.Append(a.Write, func(err error) {
		if err != nil {
			n.c.fail("node %d: write the log: %v", n.id, err)
			return
		}
		n.post(func(r *replica.Replica) { r.AppendDone(a) })
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
	n.after(n.c.opts.SyncTime, func() {
		n.writing = false
		if err := n.writeAll(); err != nil {
			n.c.fail("node %d: write the log: %v", n.id, err)
		}
	})
}

// compact lets the log drop entries.
func (n *node) compact(c *replica.Compact) {
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

// done ends a call.
func (n *node) done(d replica.Done) {
	k := n.calls[d.Call]
	if k == nil {
		n.c.fail("node %d ends call %d, which is not under way", n.id, d.Call)
		return
	}
	delete(n.calls, d.Call)
	n.c.tell(n.id, "%s ends: index %d, error %v", k.what, d.Index, d.Err)
	k.finish(d.Result, d.Index, d.Err)
}

// step is work for the state machine: exactly one field is set.
type step struct {
	apply   *replica.Apply
	restore *incoming
}

// work gives the state machine its next step. The steps after a snapshot wait until the snapshot is
// whole or has failed.
func (n *node) work() {
	if n.applying || len(n.steps) == 0 {
		return
	}
	s := n.steps[0]
	if s.restore != nil && !s.restore.whole && s.restore.err == nil {
		return
	}
	n.steps = n.steps[1:]
	n.applying = true
	n.after(turnTime, func() {
		n.applying = false
		if s.restore != nil {
			n.restore(s.restore)
		} else {
			n.apply(*s.apply)
		}
		n.work()
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

func (n *node) unreachable(peer uint64) {
	for _, stream := range slices.Sorted(maps.Keys(n.out)) {
		if o := n.out[stream]; o.to == peer {
			n.endStream(o, errUnreachable)
		}
	}
	n.post(func(r *replica.Replica) { r.Unreachable(peer) })
}

// send hands an encoded message to the network.
func (n *node) send(m wire.Message) {
	b, err := m.MarshalBinary()
	if err != nil {
		n.c.fail("node %d: encode a message: %v", n.id, err)
		return
	}
	l := n.c.links[n.id][m.To]
	_, chunk := m.Body.(wire.Chunk)
	lost := l.Cut || !chunk && l.Loss > 0 && n.c.rng.Float64() < l.Loss
	delay := l.Delay
	if l.Jitter > 0 && !chunk { // pieces keep their order
		delay += time.Duration(n.c.rng.Int64N(int64(l.Jitter)))
	}
	if lost || m.To == 0 || m.To > uint64(len(n.c.nodes)) {
		n.after(delay, func() { n.unreachable(m.To) })
		return
	}
	to, from, group := n.c.nodes[m.To-1], n.id, m.Group
	n.c.agenda.After(delay, func() {
		if !to.up {
			return // the sender was told when the node went down
		}
		var got wire.Message
		if err := got.UnmarshalBinary(b); err != nil || got.From != from || got.Group != group {
			n.c.fail("decode a message of node %d: %v", from, err)
			return
		}
		to.receive(got)
	})
}

// receive takes a message from the network.
func (n *node) receive(m wire.Message) {
	switch b := m.Body.(type) {
	case wire.Chunk:
		n.chunk(m.From, b)
	case wire.ChunkStatus:
		n.streamStatus(m.From, b)
	default:
		n.post(func(r *replica.Replica) {
			if err := r.Receive(m); err != nil {
				n.c.fail("node %d refuses a message of node %d: %v", n.id, m.From, err)
			}
		})
	}
}
