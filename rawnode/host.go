// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/quiet"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/storage"
)

// Host runs the replica of one group at one node. Its methods may be called
// from several goroutines.
type Host struct {
	cfg   Config
	start time.Time

	inbox   *inbox
	driver  driver
	appends *stage[logJob]
	applies *stage[applyJob]
	out     *snapshotsOut
	in      *snapshotsIn

	releaseLog func() // when everything has ended

	// tryAppend, unless nil, is Append of a log that says ErrBusy rather than
	// waits.
	tryAppend func(storage.Write, func(error)) error
	// logRests, unless nil, is asked where a write is done: whether nobody needs
	// the log's goroutine.
	logRests func() bool

	// backlog, unless nil, says what waits in the transport; asked is when it was
	// asked, and is of who takes a turn.
	backlog func(uint64) (int, bool)
	asked   time.Duration

	calls callTable // of who takes a turn
	// spareCalls are of this host alone: the channels in them must not go from one
	// bubble of testing/synctest to another.
	spareCalls sync.Pool
	local      *replica.LocalReads // nil without leases
	lines      quiet.Log[logKind]
	ticks      uint64 // of the loop
	clock      clockWatch

	goroutines atomic.Int64
	context    context.Context // ends when the host stops or fails
	cancel     context.CancelFunc
	finished   chan struct{} // closed when everything has ended
	stopOnce   sync.Once
	cutOnce    sync.Once
	cutShort   chan struct{} // closed when nobody waits any more for what was cut short
	stopping   atomic.Bool
	polling    atomic.Bool // the state is not durable, and nobody is asking
	stopLoop   chan struct{}

	mu   sync.Mutex
	err  error  // why it failed
	last Status // as of the end of the loop
}

// readyLog is a log that can be written from the loop.
type readyLog interface {
	TryAppend(w storage.Write, done func(error)) error
}

// restingLog is a log whose goroutine can be used, if it says so.
type restingLog interface{ Rests() bool }

var (
	_ readyLog   = (*storage.Group)(nil)
	_ restingLog = (*storage.Group)(nil)
)

// New starts a host from what its log and its state machine hold. An empty log
// with Replica.Peers begins a group; one without waits to be added to a group.
func New(cfg Config) (*Host, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	cfg.Replica.Coding = sealsLate(cfg.Replica.Coding, cfg.Transport)
	start := time.Now()
	watch, err := watchClock(&cfg)
	if err != nil {
		return nil, fmt.Errorf("node %d, group %d: %w", cfg.Replica.ID, cfg.Replica.Group, err)
	}
	release, err := cfg.acquireLog()
	if err != nil {
		watch.stop()
		return nil, fmt.Errorf("node %d, group %d: %w", cfg.Replica.ID, cfg.Replica.Group, err)
	}
	r, applied, err := openReplica(&cfg)
	if err != nil {
		release()
		watch.stop()
		return nil, fmt.Errorf("node %d, group %d: %w", cfg.Replica.ID, cfg.Replica.Group, err)
	}
	h := &Host{
		cfg: cfg, start: start, releaseLog: release, clock: watch,
		inbox: newInbox(inboxLimits{
			messages: cfg.ReceiveBytes, calls: cfg.Replica.MaxCalls,
			callBytes: cfg.Replica.MaxQueueBytes, budget: cfg.Replica.Budget,
		}),
		finished: make(chan struct{}), stopLoop: make(chan struct{}), cutShort: make(chan struct{}),
	}
	h.context, h.cancel = context.WithCancel(context.Background())
	h.appends = newStage(h.spawn, h.writeLog)
	if log, ok := cfg.Replica.Log.(readyLog); ok {
		h.tryAppend = log.TryAppend
	}
	if t, ok := cfg.Transport.(backlogged); ok && cfg.Replica.Coding != nil {
		h.backlog = t.Backlog
	}
	if log, ok := cfg.Replica.Log.(restingLog); ok {
		h.logRests = log.Rests
	}
	h.applies = newStage(h.spawn, h.advanceState(applied))
	h.out, h.in = newSnapshotsOut(h), newSnapshotsIn(h)
	h.last = Status(r.Status())
	h.driver.replica = r
	h.local = replica.NewLocalReads(cfg.Replica.settings(), applied)
	if err := cfg.Transport.Join(cfg.Replica.Group, h); err != nil {
		h.cancel()
		release()
		watch.stop()
		return nil, fmt.Errorf("node %d, group %d: join the transport: %w", cfg.Replica.ID, cfg.Replica.Group, err)
	}
	h.spawn(h.run)
	return h, nil
}

// spawn starts a goroutine; the last one to end finishes the host. The caller is
// New or such a goroutine, or knows that one of them has not ended.
func (h *Host) spawn(f func()) {
	h.goroutines.Add(1)
	go func() {
		f()
		if h.goroutines.Add(-1) == 0 {
			h.releaseLog()
			h.clock.stop()
			close(h.finished)
		}
	}()
}

// openReplica makes the replica from what survived the last run, and returns up to which
// index the state machine has applied the log.
func openReplica(cfg *Config) (r *replica.Replica, applied uint64, err error) {
	rc := replica.Config{Settings: cfg.Replica.settings()}
	if rc.Applied, rc.HostState, err = cfg.StateMachine.Load(); err != nil {
		return nil, 0, fmt.Errorf("load the state machine: %w", err)
	}
	if rc.Boot == 0 {
		rc.Boot = uint64(time.Now().UnixNano())
	}
	w, err := replica.PrepareLog(rc)
	if err != nil {
		return nil, 0, err
	}
	if w != nil {
		durable := make(chan error, 1)
		if err := rc.Log.Append(*w, func(err error) { durable <- err }); err != nil {
			return nil, 0, fmt.Errorf("begin the log: %w", err)
		}
		if err := <-durable; err != nil {
			return nil, 0, fmt.Errorf("begin the log: %w", err)
		}
	}
	r, err = replica.New(rc)
	return r, rc.Applied, err
}

// Result is the outcome of a command that was applied.
type Result struct {
	// Value is the result of this node's state machine.
	Value any
	// Index is the log index of the command's entry.
	Index uint64
	// Times says how the time of the call passed.
	Times CommandTimes
}

// Propose replicates a command and returns its result, once it is applied at
// this node. Any node can be asked. The command must not be changed afterwards.
//
// An error is a [CallError]. If it wraps [ErrUnknown], the command may have been
// applied or may still be; nothing here will try it a second time.
func (h *Host) Propose(ctx context.Context, command []byte) (Result, error) {
	d, err := h.call(ctx, opPropose, func(c *hostCall) { c.command = command })
	return Result{Value: d.Result, Index: d.Index, Times: d.times}, err
}

// Read returns when this node's state machine has applied every command acknowledged,
// anywhere, before Read was called: a read of the state machine afterwards is linearizable.
// index is the log index that Read waited for.
func (h *Host) Read(ctx context.Context) (index uint64, err error) {
	return h.ReadAt(ctx, ReadIndex{})
}

// ReadAt is Read for reads that may be of an older state, as the policy says;
// nil is [ReadIndex].
func (h *Host) ReadAt(ctx context.Context, policy ReadPolicy) (index uint64, err error) {
	res, err := h.ReadWith(ctx, ReadOptions{Policy: policy})
	return res.Index, err
}

// ProposeConfChange changes the member set and returns the new configuration, once it is in
// force at this node. The leader refuses a change of a node that is no member
// ([ErrNotMember]), and a change after which the group might not go on ([ErrUnsafeChange]):
// with too few remaining voters heard from, or with a new voter that is silent, or is a
// learner and has not caught up. A removed leader hands over first.
func (h *Host) ProposeConfChange(ctx context.Context, cc pb.ConfChangeI) (*pb.ConfState, error) {
	return h.changeMembers(ctx, cc, opChange)
}

// ForceConfChange is ProposeConfChange without the refusal [ErrUnsafeChange]: the group may
// stop after the change, until the missing nodes are started.
func (h *Host) ForceConfChange(ctx context.Context, cc pb.ConfChangeI) (*pb.ConfState, error) {
	return h.changeMembers(ctx, cc, opForce)
}

func (h *Host) changeMembers(ctx context.Context, cc pb.ConfChangeI, op callOp) (*pb.ConfState, error) {
	var change *pb.ConfChangeV2 // nil is refused with a reason
	if v1, ok := cc.(*pb.ConfChange); cc != nil && (!ok || v1 != nil) {
		change = cc.AsV2()
	}
	d, err := h.call(ctx, op, func(c *hostCall) { c.change = change })
	conf, _ := d.Result.(*pb.ConfState)
	return conf, err
}

// TransferLeader makes a voter the leader, and returns when this node sees the new leader.
// The voters are those in this node's applied configuration: [ErrNotMember].
func (h *Host) TransferLeader(ctx context.Context, to uint64) error {
	_, err := h.call(ctx, opTransfer, func(c *hostCall) { c.to = to })
	return err
}

// Densify has the group append nothing coded any more, while on: before a
// downgrade. Status().Coding.Dense tells when the log of this node has no coded entry left.
func (h *Host) Densify(on bool) { h.inbox.post(func(r *replica.Replica) { r.Densify(on) }) }

// gone is the cause for calls on a host that is no more.
func (h *Host) gone() error {
	if err := h.Err(); err != nil {
		return err
	}
	return ErrStopped
}

// Err returns why the host failed, or nil. A host that failed has acknowledged
// nothing since, answers all calls with an error, and is to be stopped.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Done returns a channel that is closed when the host has stopped or failed.
func (h *Host) Done() <-chan struct{} { return h.context.Done() }

// HostStatus is a replica's status and what its host's stages did.
type HostStatus struct {
	Status
	// Step is what owns the replica: its items are messages and everything else
	// that comes in; Queued is the age of the oldest, summed over
	// turns; Refused are calls.
	Step, Append, Apply StageStats
	// DroppedMessages is how many control messages found no room.
	DroppedMessages uint64
	// Clock is how well the clock of roster leases keeps time; nil without them, or
	// with a clock of the user's own.
	Clock *ClockStatus
}

// Status returns the present status, or the last one of a host that is gone.
func (h *Host) Status() HostStatus {
	s := HostStatus{Append: h.appends.statistics(), Apply: h.applies.statistics(), Clock: h.clock.status()}
	s.Step, s.DroppedMessages = h.inbox.statistics()
	s.Status, _ = h.ask(context.Background())
	return s
}

// ask returns the replica's status, or an error if ctx ends before the replica could
// be asked.
func (h *Host) ask(ctx context.Context) (Status, error) {
	got := make(chan Status, 1)
	if h.inbox.post(func(r *replica.Replica) {
		h.local.Settle(r)
		got <- Status(r.Status())
	}) {
		select {
		case s := <-got:
			return s, nil
		case <-ctx.Done():
			return Status{}, ctx.Err()
		case <-h.finished:
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, nil
}

// Receive implements Receiver.
func (h *Host) Receive(m wire.Message) {
	switch b := m.Body.(type) {
	case wire.Chunk:
		h.in.receive(m.From, m.To, b)
	case wire.ChunkStatus:
		h.out.ended(m.From, b)
	default:
		h.inbox.receive(m)
		h.inbox.wake()
	}
}

// ReceiveNext is Receive for one of several messages that came together. The caller calls
// Received behind the last.
func (h *Host) ReceiveNext(m wire.Message) {
	switch m.Body.(type) {
	case wire.Chunk, wire.ChunkStatus:
		h.Receive(m)
	default:
		h.inbox.receive(m)
	}
}

// Received says that the last message has come. Unless the caller is busy, its goroutine
// may be used to look at the messages: to step the core, to read the log, to queue what is
// to be done.
func (h *Host) Received(busy bool) {
	if busy {
		h.inbox.wake()
	} else {
		h.driver.offer(h)
	}
}

// Unreachable implements Receiver.
func (h *Host) Unreachable(peer uint64) {
	h.out.unreachable(peer)
	h.inbox.post(func(r *replica.Replica) { r.Unreachable(peer) })
}
