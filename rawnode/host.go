// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/internal/quiet"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/leases/clock"
	"github.com/weftraft/weft/storage"
)

// Host runs the replica of one group at one node. Its methods may be called from several
// goroutines.
type Host struct {
	cfg   Config
	start time.Time

	inbox   *inbox
	driver  driver
	appends *stage[logJob]
	applies *stage[applyJob]
	out     *snapshotsOut
	in      *snapshotsIn
	fetched *fetchesIn
	served  *fetchesOut

	releaseLog func() // called when all goroutines have ended

	// tryAppend, unless nil, is Append of a log that returns ErrBusy instead of waiting.
	tryAppend func(storage.Write, func(error)) error
	// logRests, unless nil, reports after a write whether the log's goroutine is free for other
	// work.
	logRests func() bool

	calls callTable // used only within a turn
	// spareCalls belongs to this host alone: a channel must not move between bubbles of
	// testing/synctest.
	spareCalls sync.Pool
	local      *replica.LocalReads // nil without leases
	lines      quiet.Log[logKind]
	ticks      uint64 // counted by the loop
	stalled    error  // as of the last tick; of the loop
	clock      clockWatch
	hangs      hangs

	queries    atomic.Int64 // of gateways, at the state machine
	size       atomic.Int64 // of the last snapshot that was sent or restored, or of the state at the start; 0: unknown
	goroutines atomic.Int64
	context    context.Context // ends when the host stops or fails
	cancel     context.CancelFunc
	finished   chan struct{} // closed when all goroutines have ended
	stopOnce   sync.Once
	cutOnce    sync.Once
	cutShort   chan struct{} // closed when Stop no longer waits for work that was cut short
	stopping   atomic.Bool
	polling    atomic.Bool // the state is not durable up to the applied index, and no question about it is queued
	stopLoop   chan struct{}

	mu   sync.Mutex
	err  error  // the reason of the failure, or nil
	last Status // as of the last question, or at the end of the loop
	over bool   // the loop has ended
}

// readyLog is a log with a method to append that does not wait, so that the loop itself can write.
type readyLog interface {
	TryAppend(w storage.Write, done func(error)) error
}

// restingLog is a log that tells whether its goroutine may do other work.
type restingLog interface{ Rests() bool }

var (
	_ readyLog   = (*storage.Group)(nil)
	_ restingLog = (*storage.Group)(nil)
)

// New starts a host from the contents of its log and its state machine. With an empty log, a host
// with Replica.Peers begins a group, and a host without Peers waits until a group adds the node. New
// lasts as long as the state machine's Load and the log do, and has no bound: a large state may rightly
// take minutes, and there is no host yet that could answer meanwhile.
func New(cfg Config) (*Host, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	cfg.Replica.Coding = hostCoding(&cfg)
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
	if sm, ok := cfg.StateMachine.(interface{ SnapshotBytes() int64 }); ok {
		h.size.Store(sm.SnapshotBytes())
	}
	h.context, h.cancel = context.WithCancel(context.Background())
	h.appends = newStage(h.spawn, h.writeLog)
	if log, ok := cfg.Replica.Log.(readyLog); ok {
		h.tryAppend = log.TryAppend
	}
	if log, ok := cfg.Replica.Log.(restingLog); ok {
		h.logRests = log.Rests
	}
	h.applies = newStage(h.spawn, h.advanceState(applied))
	h.out, h.in = newSnapshotsOut(h), newSnapshotsIn(h)
	h.fetched, h.served = newFetchesIn(h), newFetchesOut(h)
	h.last = Status(r.Status())
	h.driver.replica = r
	if cfg.CatchUp != nil {
		r.CatchUpWithin(cfg.CatchUp.shared(), replica.CatchUpFree, func(f func(*replica.Replica)) { h.inbox.post(f) })
	}
	h.local = replica.NewLocalReads(cfg.Replica.settings(), applied)
	h.goroutines.Add(1) // the loop counts already: what messages want done before it begins may be over before, too
	if err := cfg.Transport.Join(cfg.Replica.Group, h); err != nil {
		h.cancel()
		release()
		watch.stop()
		return nil, fmt.Errorf("node %d, group %d: join the transport: %w", cfg.Replica.ID, cfg.Replica.Group, err)
	}
	go h.counted(h.run)
	return h, nil
}

// spawn starts a goroutine. The last goroutine to end finishes the host; so the caller is a goroutine started
// by spawn, or knows of such a goroutine, or of the loop, that has not ended.
func (h *Host) spawn(f func()) {
	h.goroutines.Add(1)
	go h.counted(f)
}

// counted runs what a goroutine does that counts.
func (h *Host) counted(f func()) {
	f()
	if h.goroutines.Add(-1) == 0 {
		h.releaseLog()
		h.clock.stop()
		close(h.finished)
	}
}

// openReplica makes the replica from the log and the state that survived the last run, and returns
// the index up to which the state machine has applied the log.
func openReplica(cfg *Config) (r *replica.Replica, applied uint64, err error) {
	if cfg.Replica.Boot == 0 {
		cfg.Replica.Boot = uint64(time.Now().UnixNano()) // streams of snapshots are numbered from there, too
	}
	rc := replica.Config{Settings: cfg.Replica.settings()}
	if sm, ok := cfg.StateMachine.(interface {
		AdmitChange(*pb.ConfState, *pb.ConfChangeV2) error
	}); ok {
		rc.Admit = sm.AdmitChange
	}
	if sm, ok := cfg.StateMachine.(interface{ AdmitFromGateway(command []byte) error }); ok {
		rc.AdmitFromGateway = sm.AdmitFromGateway
	}
	if sm, ok := cfg.StateMachine.(ResultEncoder); ok {
		rc.EncodeResult = sm.EncodeResult
	}
	rc.Tick, rc.Busy = cfg.TickInterval, process.Busy
	rc.MaxPartBytes, _ = largestPart(cfg.Transport)
	if t, ok := cfg.Transport.(backlogged); ok {
		rc.Backlog = t.Backlog
	}
	if clock.Check(leases.DefaultResolution) == nil {
		rc.Aging = clock.Boottime{}.Now
	}
	rc.Names = cfg.names()
	if rc.Applied, rc.HostState, err = cfg.StateMachine.Load(); err != nil {
		return nil, 0, fmt.Errorf("load the state machine: %w", err)
	}
	if sm, ok := cfg.StateMachine.(interface{ Settings() []Setting }); ok {
		rc.Equal = sm.Settings()
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
	// Value is the result returned by this node's state machine.
	Value any
	// Index is the log index of the command's entry.
	Index uint64
	// Times are the times of the call's phases.
	Times CommandTimes
}

// Propose replicates a command and returns the command's result after this node has applied the
// command. Any node of the group may be asked. The command must not be changed afterwards.
//
// An error is a [CallError]. If the error wraps [ErrUnknown], the command may have been applied or
// may still be applied; the host does not repeat the command.
func (h *Host) Propose(ctx context.Context, command []byte) (Result, error) {
	d, err := h.call(ctx, opPropose, func(c *hostCall) { c.command = command })
	return Result{Value: d.Result, Index: d.Index, Times: d.times}, err
}

// Read waits until this node's state machine has applied every command acknowledged at any node
// before Read was called: a read of the state machine afterwards is linearizable. index is the log
// index up to which Read waited.
func (h *Host) Read(ctx context.Context) (index uint64, err error) {
	return h.ReadAt(ctx, ReadIndex{})
}

// ReadAt is Read under a policy, which may allow an older state; a nil policy is [ReadIndex].
func (h *Host) ReadAt(ctx context.Context, policy ReadPolicy) (index uint64, err error) {
	res, err := h.ReadWith(ctx, ReadOptions{Policy: policy})
	return res.Index, err
}

// ProposeConfChange changes the member set and returns the new configuration after the change is in
// force at this node. The leader refuses a change to a node that is no member ([ErrNotMember]), and
// a change that might stop the group ([ErrUnsafeChange]): too few of the remaining voters answer
// the leader, which asks them because of the change and waits an election timeout at most, or a new
// voter is silent, or is a learner that has not caught up. A leader that is removed first hands over
// leadership.
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
	if !isNil(cc) {
		change = cc.AsV2()
	}
	d, err := h.call(ctx, op, func(c *hostCall) { c.change = change })
	if conf, ok := d.Result.(*pb.ConfState); ok {
		return proto.Clone(conf).(*pb.ConfState), err // the replica goes by its own
	}
	return nil, err
}

// TransferLeader makes a voter the leader, and returns when this node sees the new leader.
// [ErrNotMember] says that the node is no voter in this node's applied configuration.
func (h *Host) TransferLeader(ctx context.Context, to uint64) error {
	_, err := h.call(ctx, opTransfer, func(c *hostCall) { c.to = to })
	return err
}

// Densify(true) stops the group from appending coded entries until Densify(false), or the end of this
// host, in preparation for a downgrade: a member says so while it runs, and has to be told again after
// a start. Status().Coding.Dense reports whether the log of this node has no coded entry
// left.
func (h *Host) Densify(on bool) { h.inbox.post(func(r *replica.Replica) { r.Densify(on) }) }

// gone returns the cause of the error for a call on a host that has ended.
func (h *Host) gone() error {
	if err := h.Err(); err != nil {
		return err
	}
	return ErrStopped
}

// Err returns the reason of the host's failure, or nil. A failed host has acknowledged nothing
// since the failure, answers all calls with an error, and has to be stopped.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Done returns a channel that is closed when the host has stopped or failed.
func (h *Host) Done() <-chan struct{} { return h.context.Done() }

// HostStatus is the status of a replica and the counters of its host's stages.
type HostStatus struct {
	Status
	// Step is the stage that owns the replica: its items are all inputs (messages, calls, and ends
	// of work); Queued is the age of the oldest input of each turn, summed over turns; Refused are
	// calls.
	Step, Append, Apply StageStats
	// DroppedMessages counts the control messages for which there was no room.
	DroppedMessages uint64
	// Clock is the accuracy of the clock of roster leases; nil without leases, or with a clock of
	// the user's own.
	Clock *ClockStatus
	// Differs says which replicas of the group differ, as the state machine knows, or is nil: see
	// [StateMachine].
	Differs error
}

// Status returns the present status, or the last status of a host that has ended. If a turn of the
// host has not ended for a second, because the log's disk hangs in a read for example, Status returns
// the last known status, in which Stalled gives the reason and wraps [ErrNotEnded].
func (h *Host) Status() HostStatus {
	s := HostStatus{Append: h.appends.statistics(), Apply: h.applies.statistics(), Clock: h.clock.status()}
	s.Step, s.DroppedMessages = h.inbox.statistics()
	s.Status = h.present()
	if d, ok := h.cfg.StateMachine.(interface{ Differs() error }); ok {
		s.Differs = d.Differs()
	}
	return s
}

// present is ask with a bound.
func (h *Host) present() Status {
	if h.hangs.turn.lasts(h.now()) > cutGrace {
		return h.stuck() // without another wait
	}
	ctx, cancel := context.WithTimeout(context.Background(), cutGrace)
	defer cancel()
	s, err := h.ask(ctx)
	if err != nil {
		return h.stuck()
	}
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
			h.keep(s, false)
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

// keep notes the latest status. over says that it is the last.
func (h *Host) keep(s Status, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.last, h.over = s, over
	}
}

// Receive implements Receiver.
func (h *Host) Receive(m wire.Message) {
	if h.receiveAside(m) {
		return
	}
	h.inbox.receive(m)
	h.inbox.wake()
}

// ReceiveNext is Receive for one of several messages that came together. The caller calls Received
// after the last message.
func (h *Host) ReceiveNext(m wire.Message) {
	if !h.receiveAside(m) {
		h.inbox.receive(m)
	}
}

// receiveAside takes a message about a snapshot under way, which waits for no turn, and reports whether m is one.
func (h *Host) receiveAside(m wire.Message) bool {
	switch b := m.Body.(type) {
	case wire.Chunk:
		if !h.fetched.chunk(m.From, b) {
			h.in.receive(m.From, m.To, b)
		}
	case wire.ChunkStatus:
		h.out.ended(m.From, b)
		h.served.ended(m.From, b)
		h.fetched.status(m.From, b)
	case wire.Fetch:
		if b.Step == wire.FetchAsk {
			return false
		}
		h.served.take(m.From, b)
	default:
		return false
	}
	return true
}

// Received says that the last message has come. Unless the caller is busy, the caller's goroutine
// may take a turn: step the core, read the log, and queue the resulting work.
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
	h.inbox.unreachable(peer)
}
