// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/compare"
	"github.com/weftraft/weft/internal/front"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/marked"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
)

// The types of package rawnode that a service meets, under the names of this package.
type (
	// StateMachine is the replicated state of a service: see [rawnode.StateMachine].
	StateMachine = rawnode.StateMachine
	// Batch is what one call of StateMachine.Apply applies: see [rawnode.Batch].
	Batch = rawnode.Batch
	// View is an open view of a state: see [rawnode.Snapshot].
	View = rawnode.Snapshot
	// ViewMeta describes a view: see [rawnode.SnapshotMeta].
	ViewMeta = rawnode.SnapshotMeta
	// Result is the outcome of a command: see [rawnode.Result].
	Result = rawnode.Result
	// ReadResult says what a read may rest on: see [rawnode.ReadResult].
	ReadResult = rawnode.ReadResult
	// CallError is the error of a call: see [rawnode.CallError].
	CallError = rawnode.CallError
)

// Group is one replicated state machine at a node. Its methods may be called from several
// goroutines, at any member.
type Group struct {
	node     *Node
	id       uint64
	user     StateMachine
	host     *rawnode.Host    // nil at a gateway
	gateway  *rawnode.Gateway // nil at a node
	machine  *front.Machine   // of host
	calls    Calls            // of host or gateway, perhaps traced
	comparer *compare.Replica

	changes changes

	out     atomic.Bool     // this node is known to have been removed
	gone    context.Context // ends when out is set
	goneNow context.CancelFunc
	done    func() <-chan struct{} // makes the channel of Done, once
	opened  time.Time
	// electionTimeout is the least time after which followers take a silent leader for dead.
	electionTimeout time.Duration
	weighing        atomic.Bool // the word of another node that this one is lost
	// comparing: a command of comparisons is being proposed.
	comparing atomic.Bool

	turn  chan struct{} // has a token while a Close is under way
	after func() error  // called at the end of the first that succeeds; nil: nothing to do
	state front.Ending  // the end of after

	ending context.Context // ends when a Close begins
	end    context.CancelFunc
	mu     sync.Mutex
	uses   sync.WaitGroup // of the state machine, by snapshots; added to under mu
	// closing: a Close has begun.
	closing bool
}

// ID returns the group's id.
func (g *Group) ID() uint64 { return g.id }

// Host returns the host below, with everything that package rawnode offers, or nil at a gateway. It is the group's
// to stop.
func (g *Group) Host() *rawnode.Host { return g.host }

// SetLeaderWeight changes this node's weight as a leader of the group, until the group is closed, and is otherwise as
// [Options].LeaderWeight; 0 means the node's weight. With [Configure] the setting ReplicaConfig.LeaderWeight holds
// from the start. After Close the error is [ErrStopped].
func (g *Group) SetLeaderWeight(weight int) error {
	if g == nil {
		return invalid.Errorf("the group is nil: look at the error of Node.Group")
	}
	if g.gateway != nil {
		return noReplica(g.node.options)
	}
	err := g.host.SetLeaderWeight(weight)
	if errors.Is(err, rawnode.ErrInvalid) {
		return invalid.Errorf("%w", err)
	}
	return err
}

// Leader returns the id of the leader that this node knows, or 0.
func (g *Group) Leader() uint64 {
	if g.gateway != nil {
		return g.gateway.Status().Lead
	}
	return g.host.Status().Lead
}

// Err returns why the group has failed at this node, or nil. A group that failed has
// acknowledged nothing since, and is to be closed. At a node that was removed Err wraps [ErrRemoved].
func (g *Group) Err() error {
	if g.gateway != nil {
		return nil
	}
	if err := g.host.Err(); err != nil || !g.out.Load() {
		return err
	}
	return g.removedError()
}

// Done returns a channel that is closed when the group is closed or has failed, or when this node
// knows that it was removed; [Local] reads go on then, until the group is closed.
func (g *Group) Done() <-chan struct{} { return g.done() }

// ended returns a channel that is closed when the host has ended, or the node was removed.
func (g *Group) ended() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-g.host.Done():
		case <-g.gone.Done():
		}
	}()
	return done
}

// lookForRemoval has calls refused once the group goes on without this node.
func (g *Group) lookForRemoval() {
	if g.removed() {
		g.setOut()
	}
}

// setOut has calls refused, because the group goes on without this node.
func (g *Group) setOut() {
	g.out.Store(true)
	g.goneNow()
}

// Propose replicates a command and returns its result, once it is applied at this node. Any
// member can be asked. A command has at most 8 MiB, or what [Configure] sets as MaxCommandBytes, and must not be
// changed afterwards. Without a leader or a majority Propose waits until the deadline of ctx; if ctx has none,
// for 10 s, or what [Configure] sets as DefaultTimeout.
//
// An error is a [CallError]: with [ErrRefused] the command has no effect, with
// [ErrUnknown] it may have been applied or may still be, once. A node that was removed, or
// given up by [Recover], refuses with [ErrRemoved] as soon as the node hears of that.
func (g *Group) Propose(ctx context.Context, command []byte) (Result, error) {
	err := g.usable(ctx)
	if err == nil && g.gateway == nil {
		err = g.member(ctx)
	}
	if err != nil {
		return Result{}, refused("propose", err)
	}
	if marked.Is(command) {
		return Result{}, refused("propose", invalid.Errorf("the command begins with %q, which marks commands of package weft: begin it with another byte", marked.Mark))
	}
	return g.calls.Propose(ctx, command)
}

// TransferLeader makes a voter the leader, and returns when this node sees that.
func (g *Group) TransferLeader(ctx context.Context, to uint64) error {
	if err := g.member(ctx); err != nil {
		return refused("transfer leader", err)
	}
	if to == raft.None {
		return refused("transfer leader", invalid.Errorf("the node is 0, want a voter"))
	}
	return g.host.TransferLeader(ctx, to)
}

// SetResponders says which nodes answer reads of which keys by roster leases, for spans that
// ascend and are disjoint, and with a mode, at most one, switches the tuner, which chooses
// more of them by where keys are read. Only the leader takes it: another node's error wraps
// leases.ErrNotLeader, and [CallError].Leader is the node to ask. Leases are set with
// [Configure]; without, the error wraps raft.ErrNoLeases.
func (g *Group) SetResponders(ctx context.Context, wanted []leases.Want, tuner ...leases.TunerMode) error {
	if err := g.replicated(ctx); err != nil {
		return refused("set responders", err)
	}
	return g.host.SetResponders(ctx, wanted, tuner...)
}

// Close ends the group at this node: it refuses new calls, lets those under way end (at a gateway it cuts
// them short), hands leadership over, and stops. The group may then be opened again. For ctx, [ErrNotEnded] and a second
// call see [Node.Close].
func (g *Group) Close(ctx context.Context) error {
	if err := g.usable(ctx); err != nil {
		return err
	}
	if err := front.TakeTurn(ctx, g.turn); err != nil {
		return fmt.Errorf("close group %d: %w", g.id, err)
	}
	defer func() { <-g.turn }()
	if g.gateway != nil {
		g.gateway.Stop()
		g.closed()
		return nil
	}
	err := errors.Join(g.awaitUses(ctx), g.host.Stop(ctx))
	if g.after != nil && !errors.Is(err, ErrNotEnded) {
		err = errors.Join(err, g.state.Await(ctx, "the state, of which a checkpoint is written", g.after))
	}
	if errors.Is(err, ErrNotEnded) {
		return fmt.Errorf("close group %d: %w", g.id, err)
	}
	g.after = nil
	g.closed()
	if err != nil {
		return fmt.Errorf("close group %d: %w", g.id, err)
	}
	return nil
}

// closed gives the group's place free.
func (g *Group) closed() {
	g.node.mu.Lock()
	defer g.node.mu.Unlock()
	if g.node.groups[g.id] == g {
		delete(g.node.groups, g.id)
	}
}

// Read returns when the state machine of this node has applied everything that was
// acknowledged, anywhere, before the call: a read of the state machine that follows is
// linearizable. Options ask for less, or for another way to the same.
//
// An error is a [CallError] that wraps [ErrRefused]; for ctx see [Group.Propose]. A node that was
// removed gives [Local] reads alone, and refuses all others with [ErrRemoved].
func (g *Group) Read(ctx context.Context, options ...ReadOption) (ReadResult, error) {
	if err := g.replicated(ctx); err != nil {
		return ReadResult{}, refused("read", err)
	}
	o, err := readOptions(options)
	if err != nil {
		return ReadResult{}, refused("read", err)
	}
	if _, local := o.Policy.(rawnode.Local); !local {
		if err := g.member(ctx); err != nil {
			return ReadResult{}, refused("read", err)
		}
	}
	return g.calls.ReadWith(ctx, o)
}

// readOptions returns what options ask for.
func readOptions(options []ReadOption) (o rawnode.ReadOptions, err error) {
	for i, option := range options {
		if option == nil {
			return o, invalid.Errorf("option %d of %d is nil", i+1, len(options))
		}
		option(&o)
	}
	return o, nil
}

// Replicated is a group whose state is a machine in memory: see [Replicate].
type Replicated[M state.Machine] struct {
	*Group
	memory *state.Memory[M]
}

// View calls f with the state, as of no earlier than the call: everything that was
// acknowledged before, anywhere, is there, unless options ask for less. f must neither change
// the state, keep a part of it, nor call the group. After an error, as of Read, f was not called.
// While the state machine is busy View waits, without end if ctx has none.
func (r *Replicated[M]) View(ctx context.Context, f func(M), options ...ReadOption) error {
	if r == nil {
		return refused("read", invalid.Errorf("the group is nil: look at the error of Replicate"))
	}
	if f == nil {
		return refused("read", invalid.Errorf("the function that is to see the state is nil"))
	}
	if _, err := r.Read(ctx, options...); err != nil {
		return err
	}
	return r.look(ctx, "read", f)
}

// look calls f with the state that is here.
func (r *Replicated[M]) look(ctx context.Context, op string, f func(M)) error {
	err := r.memory.ViewContext(ctx, f)
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = ErrTimeout
	}
	return refused(op, fmt.Errorf("%w: the state machine is busy, in Apply or with a checkpoint", err))
}

// changes wakes those that wait for a state to change.
type changes struct{ next atomic.Pointer[chan struct{}] }

// notify says that the state has changed.
func (c *changes) notify() {
	if waiting := c.next.Swap(nil); waiting != nil {
		close(*waiting)
	}
}

// channel returns a channel that is closed at the next change.
func (c *changes) channel() <-chan struct{} {
	for {
		if waiting := c.next.Load(); waiting != nil {
			return *waiting
		}
		fresh := make(chan struct{})
		if c.next.CompareAndSwap(nil, &fresh) {
			return fresh
		}
	}
}

// Wait returns as soon as until reports true of the state: now, as [Replicated.View] with the same
// options would see it, or after a later batch of commands. until is called at most once for each batch;
// it keeps to the rules of View. An intermediate state may be missed if commands come faster than until returns.
//
// The error is that of a read, or wraps [ErrRefused] and ctx's cause once ctx has ended, or says that the group was
// closed or has failed, or that this node was removed.
func (r *Replicated[M]) Wait(ctx context.Context, until func(M) bool, options ...ReadOption) error {
	if r == nil {
		return refused("wait", invalid.Errorf("the group is nil: look at the error of Replicate"))
	}
	if until == nil {
		return refused("wait", invalid.Errorf("the function that is to see the state is nil"))
	}
	if _, err := r.Read(ctx, options...); err != nil {
		return err
	}
	for {
		changed, done := r.changes.channel(), false
		if err := r.look(ctx, "wait", func(m M) { done = until(m) }); done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return refused("wait", fmt.Errorf("group %d: the state is not as wanted yet: %w", r.id, causeOf(ctx)))
		case <-r.Done():
			return refused("wait", cmp.Or(r.Err(), ErrStopped))
		}
	}
}

// Role is the part that a node plays in a group.
type Role string

// The roles.
const (
	Leader    Role = "leader"
	Follower  Role = "follower"
	Candidate Role = "candidate"
	Learner   Role = "learner"
	// Gateway: the process has no replica. Its State is CaughtUp when it has a home and a leader.
	Gateway Role = "gateway"
	// Outside: the node is no member, as far as it knows: not yet, or not any more.
	Outside Role = "outside"
)

// State is a group as one of its nodes sees it.
type State struct {
	// Leader is the leader that the node knows, or 0; Term is Raft's.
	Leader, Term uint64
	// Role is that of this node.
	Role Role
	// Members are the members, ascending.
	Members []Member
	// Home, at a gateway, is the member that sends the results and the answers, or is asked to; 0: none.
	Home uint64
	// Stalled is why this node takes no commands, as its disk is full or late, or nil.
	Stalled error
	// CaughtUp says that, at some moment under the present leader, this node had applied all
	// acknowledged commands. At a node only [Group.Watch] finds out.
	CaughtUp bool
	// Behind says, at the leader, how many entries each other member lacks, by id; nil at other
	// nodes. Silent are members that the leader has not heard from for an election timeout.
	Behind map[uint64]uint64
	Silent []uint64
	// Differs says which replicas differ, as far as was found by comparing them, or is nil. The error
	// wraps [ErrDiffers]: see [Comparable].
	Differs error
	// Removed says that this node was removed, and is not taken again.
	Removed bool
	// Ended marks the last state: the group is closed at this node, or has failed, and Err is the
	// reason of the failure.
	Ended bool
	Err   error
}

// equal compares all but the numbers that move all the time.
func (s State) equal(o State) bool {
	return s.Leader == o.Leader && s.Term == o.Term && s.Role == o.Role && s.Home == o.Home && slices.Equal(s.Members, o.Members) &&
		(s.Stalled == nil) == (o.Stalled == nil) && (s.Differs == nil) == (o.Differs == nil) && s.CaughtUp == o.CaughtUp && slices.Equal(s.Silent, o.Silent) &&
		s.Removed == o.Removed && s.Ended == o.Ended
}

// Watch returns a channel with the present state, and with each later one that differs in more
// than Behind. The node looks once a tick. A reader that is slow misses states between, and
// always gets the latest. The channel is closed when ctx ends, and behind the last
// state of a group that is closed or has failed.
func (g *Group) Watch(ctx context.Context) (<-chan State, error) {
	if err := g.usable(ctx); err != nil {
		return nil, err
	}
	states := make(chan State, 1)
	w := &watch{g: g, states: states}
	go w.run(ctx)
	return states, nil
}

// State returns the present state. At a node CaughtUp is false, because only Watch finds out.
func (g *Group) State() State { return (&watch{g: g}).look() }

// watch is one call of Watch.
type watch struct {
	g      *Group
	states chan State

	mu       sync.Mutex
	leader   uint64 // since which the node
	caughtUp bool   // has had everything
	asking   bool
}

func (w *watch) run(ctx context.Context) {
	defer close(w.states)
	ticker := time.NewTicker(w.g.node.options.TickInterval)
	defer ticker.Stop()
	last, ended := State{}, w.g.over()
	for first := true; ; first = false {
		s := w.look()
		if first || !s.equal(last) {
			w.show(s)
			last = s
		}
		if s.Ended {
			return
		}
		w.catchUp(ctx, s.Leader)
		select {
		case <-ticker.C:
		case <-ended:
		case <-ctx.Done():
			return
		}
	}
}

// over returns a channel that is closed when the host, or the gateway, has ended.
func (g *Group) over() <-chan struct{} {
	if g.gateway != nil {
		return g.gateway.Done()
	}
	return g.host.Done()
}

// show makes s what the reader gets next.
func (w *watch) show(s State) {
	select {
	case <-w.states: // a state that the reader has missed
	default:
	}
	w.states <- s // only this goroutine sends, so there is room
}

// catchUp asks, by a read, whether the node has applied everything under the present leader.
func (w *watch) catchUp(ctx context.Context, leader uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if leader != w.leader {
		w.leader, w.caughtUp = leader, false
	}
	if leader == raft.None || w.caughtUp || w.asking || w.g.gateway != nil {
		return
	}
	w.asking = true
	go func() {
		_, err := w.g.host.Read(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asking = false
		w.caughtUp = w.caughtUp || err == nil && w.leader == leader
	}()
}

// look returns the present state.
func (w *watch) look() State {
	g := w.g
	if g.gateway != nil {
		return g.gateState()
	}
	h := g.host.Status()
	s := State{
		Leader: h.Lead, Term: h.Term, Role: roleOf(h.Status), Members: g.members(h.Members),
		Stalled: h.Stalled, Differs: h.Differs, Removed: g.removed(), Ended: g.isOver(), Err: g.host.Err(), // in this order: a failure is the reason of an end
	}
	w.mu.Lock()
	s.CaughtUp = w.caughtUp && w.leader == h.Lead && !s.Ended
	w.mu.Unlock()
	if h.Lead != h.ID {
		return s
	}
	s.Behind = map[uint64]uint64{}
	for id, p := range h.Progress {
		if id == h.ID {
			continue
		}
		s.Behind[id] = h.LastIndex - min(p.Match, h.LastIndex)
		if !p.RecentActive {
			s.Silent = append(s.Silent, id)
		}
	}
	slices.Sort(s.Silent)
	return s
}

// roleOf returns the role of a node.
func roleOf(s rawnode.Status) Role {
	switch {
	case members.Votes(s.Members, s.ID) && s.Role == raft.StateLeader:
		return Leader
	case members.Votes(s.Members, s.ID) && s.Role != raft.StateFollower:
		return Candidate
	case members.Votes(s.Members, s.ID):
		return Follower
	case members.Learns(s.Members, s.ID):
		return Learner
	}
	return Outside
}
