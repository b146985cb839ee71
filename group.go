// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/compare"
	"github.com/weftraft/weft/internal/front"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/marked"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
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
	state ending        // the end of after

	ending context.Context // ends when a Close begins
	end    context.CancelFunc
	mu     sync.Mutex
	uses   sync.WaitGroup // of the state machine, by snapshots; added to under mu
	// closing: a Close has begun.
	closing bool
}

// Group opens a group at this node. Its state is that of the state machine, brought up to date
// from the log. At a gateway there is no state, and sm is nil. A group that has no log yet begins with [Options.Peers] as its voters, unless
// the node joins. The state machine is the caller's to close, after the group or the node.
//
// Group waits for the state machine's Load and for the log, however long these take, because a large
// state may rightly take minutes; a wait of 10 s is logged, and [Node.Close] does not wait for longer than its
// context.
func (n *Node) Group(id uint64, sm StateMachine, options ...GroupOption) (*Group, error) {
	gate := n != nil && n.options.Gateway
	switch {
	case n == nil || id == 0: // see groupWith
	case gate && !invalid.IsNil(sm):
		return nil, invalid.Errorf("group %d has a state machine, and a gateway has no state: pass nil", id)
	case !gate && invalid.IsNil(sm):
		return nil, invalid.Errorf("the state machine of group %d is nil", id)
	}
	if sessionsOf(options) != nil {
		return nil, invalid.Errorf("Sessions is an option of Replicate: a state that is passed to Node.Group has its own, such as state.Options.Sessions")
	}
	return n.groupWith(id, func() (StateMachine, func() error, error) { return sm, nil, nil }, options)
}

// groupWith is Group with a state that is opened when the group has its place. What closes the
// state, unless nil, is called once the group is closed.
func (n *Node) groupWith(id uint64, state func() (StateMachine, func() error, error), options []GroupOption) (*Group, error) {
	if n == nil {
		return nil, invalid.Errorf("the node is nil: look at the error of Open")
	}
	if id == 0 {
		return nil, invalid.Errorf("the group's id is 0, want 1 or more")
	}
	done, err := n.reserve(id)
	if err != nil {
		return nil, err
	}
	sm, after, err := state()
	var g *Group
	if err == nil {
		if g, err = n.openGroup(id, sm, options); err != nil && after != nil {
			err = errors.Join(err, after())
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.opening, id)
	close(done)
	if err == nil {
		g.after = after
		n.groups[id] = g
	}
	return g, err
}

// reserve takes the place of a group that is about to be opened.
func (n *Node) reserve(id uint64) (done chan struct{}, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return nil, fmt.Errorf("%w: node %d", ErrClosed, n.options.ID)
	}
	if n.groups[id] != nil || n.opening[id] != nil {
		return nil, fmt.Errorf("%w: group %d at node %d: use the Group that the first call returned, or close it first", ErrOpen, id, n.options.ID)
	}
	done = make(chan struct{})
	n.opening[id] = done
	return done, nil
}

func (n *Node) openGroup(id uint64, sm StateMachine, options []GroupOption) (*Group, error) {
	if n.options.Gateway {
		return n.openGateGroup(id, options)
	}
	log, err := n.engine.Group(id)
	if err != nil {
		return nil, fmt.Errorf("open the log of group %d: %w", id, err)
	}
	g := &Group{node: n, id: id, user: sm, turn: make(chan struct{}, 1), opened: time.Now(), electionTimeout: 10 * n.options.TickInterval}
	g.done = sync.OnceValue(g.ended)
	g.ending, g.end = context.WithCancel(context.Background())
	g.gone, g.goneNow = context.WithCancel(context.Background())
	if err := g.service().OutOfService(); err != nil {
		return nil, err
	}
	g.machine = g.newMachine()
	c := groupConfig{host: rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: n.options.ID, Group: id, Log: log, Budget: n.budget, Placement: n.placement},
		StateMachine: g.machine,
		Transport:    n.transport,
		CatchUp:      n.catchUp,
		TickInterval: n.options.TickInterval,
		Recorder:     n.options.recordGroup(id),
		Logger:       n.options.part("host"),
	}}
	if err := c.take(id, options); err != nil {
		return nil, fmt.Errorf("group %d: %w", id, err)
	}
	if c.host.Replica.Peers, err = c.firstMembers(n.options); err != nil {
		return nil, fmt.Errorf("group %d: %w", id, err)
	}
	c.hideOwnCommands()
	g.comparer.Every = c.compareEvery
	if ticks := c.host.Replica.ElectionTick; ticks > 0 {
		g.electionTimeout = time.Duration(ticks) * cmp.Or(c.host.TickInterval, n.options.TickInterval)
	}
	done := front.Timed(n.options.Logger, "opening the group, which loads the state and reads the log,", "node", n.options.ID, "group", id)
	g.host, err = rawnode.New(c.host)
	if done(); err != nil {
		g.end()
		return nil, fmt.Errorf("open the group: %w", err)
	}
	if g.calls, err = n.options.wrap(id, g.host); err != nil {
		g.end()
		return nil, errors.Join(err, g.host.Stop(n.context))
	}
	g.lookForRemoval()
	return g, nil
}

// ID returns the group's id.
func (g *Group) ID() uint64 { return g.id }

// Host returns the host below, with everything that package rawnode offers, or nil at a gateway. It is the group's
// to stop.
func (g *Group) Host() *rawnode.Host { return g.host }

// SetLeaderWeight changes this node's weight as a leader of the group, until the group is closed, and is otherwise as
// [Options].LeaderWeight; 0 means the node's weight. With [Configure] the setting ReplicaConfig.LeaderWeight holds
// from the start.
func (g *Group) SetLeaderWeight(weight int) error {
	if g == nil {
		return invalid.Errorf("the group is nil: look at the error of Node.Group")
	}
	if g.gateway != nil {
		return noReplica(g.node.options)
	}
	if err := g.host.SetLeaderWeight(weight); err != nil {
		return invalid.Errorf("%w", err)
	}
	return nil
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

func (g *Group) removedError() error {
	return fmt.Errorf("%w: node %d, group %d, which goes on without the node: ask a member; [Local] reads see what this node had", ErrRemoved, g.node.options.ID, g.id)
}

// usable returns why nothing can be asked of the group.
func (g *Group) usable(ctx context.Context) error {
	if g == nil {
		return invalid.Errorf("the group is nil: look at the error of Node.Group")
	}
	return checkContext(ctx)
}

// replicated returns why nothing can be asked of a replica here.
func (g *Group) replicated(ctx context.Context) error {
	err := g.usable(ctx)
	if err == nil && g.gateway != nil {
		err = noReplica(g.node.options)
	}
	return err
}

// member returns why calls that a member answers are refused.
func (g *Group) member(ctx context.Context) error {
	if err := g.replicated(ctx); err != nil {
		return err
	}
	if g.out.Load() {
		return g.removedError()
	}
	return nil
}

// Propose replicates a command and returns its result, once it is applied at this node. Any
// member can be asked. The command must not be changed afterwards. Without a leader or a majority
// Propose waits until the deadline of ctx; if ctx has none, for 10 s, or what [Configure] sets as
// DefaultTimeout.
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

// Close ends the group at this node: it refuses new calls, lets those under way end, hands
// leadership over, and stops. The group may then be opened again. For ctx and
// [ErrNotEnded] see [Node.Close].
func (g *Group) Close(ctx context.Context) error {
	if err := g.usable(ctx); err != nil {
		return err
	}
	if err := takeTurn(ctx, g.turn); err != nil {
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
		err = errors.Join(err, g.state.await(ctx, "the state, of which a checkpoint is written", g.after))
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
// An error is a [CallError] that wraps [ErrRefused]. A node that was removed gives [Local]
// reads alone, and refuses all others with [ErrRemoved].
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
