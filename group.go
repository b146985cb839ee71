// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	"github.com/weftraft/weft/rawnode/session"
)

// Group is one replicated state machine at a node. Its methods may be called from several
// goroutines, at any member.
type Group struct {
	node     *Node
	id       uint64
	user     StateMachine
	host     *rawnode.Host
	calls    Calls // of host, perhaps traced
	comparer *compare.Replica

	changes changes

	out      atomic.Bool     // this node is known to have been removed
	gone     context.Context // ends when out is set
	goneNow  context.CancelFunc
	done     func() <-chan struct{} // makes the channel of Done, once
	opened   time.Time
	weighing atomic.Bool // the word of another node that this one is lost
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

// Comparable is an optional interface of a [StateMachine] whose replicas the group compares in the
// background: the commands and their results, and a sum of the state, at one index of the log at all
// members. [CompareEvery] says how often. The states of packages state and state/pebble, and so of
// [Replicate], are Comparable.
//
// Results of commands must then be the same at all replicas: numbers, texts, errors by their texts,
// and slices, arrays and structs of these are compared. A difference is logged as an error, is in
// [State].Differs at all nodes, and in the metric weft_group_differs. A replica whose state, not only a result, differs from
// that of the majority is put out of service: the group fails at that node with [ErrDiffers], and is
// not opened there again. The member is then replaced: see docs/service.md.
type Comparable interface {
	// Digest sets the present state aside, at little cost, and returns a function that sums it up:
	// equal states have equal sums at all replicas, and different states most likely different ones.
	// Digest is called between two calls of Apply, by the same goroutine; sum is called once, by
	// another goroutine, while Apply goes on, and returns soon after ctx has ended. Without a sum,
	// nil, results alone are compared.
	Digest() (sum func(ctx context.Context) (uint64, error), err error)
}

// GroupOption is a setting of one group.
type GroupOption func(*groupConfig)

// groupConfig is what options set.
type groupConfig struct {
	host         rawnode.Config
	first        []uint64
	named        bool // first was set
	joins        bool
	peek         bool            // for sessions alone: the host is not configured
	sessions     *session.Limits // of Replicate
	compareEvery time.Duration
	errs         []error
}

// FirstMembers names the voters that a new group begins with, the same at all of them, if
// that are not all of [Options.Peers]. It is not looked at once the group has a log.
func FirstMembers(ids ...uint64) GroupOption {
	return func(c *groupConfig) { c.first, c.named = slices.Clone(ids), true }
}

// Joining says that this node begins no group of this id, and waits to be added.
func Joining() GroupOption { return func(c *groupConfig) { c.joins = true } }

// CompareEvery sets how often the replicas of the group are compared, if the state machine is
// [Comparable]: 0 means 1 min, and less than 0 never. The leader's setting counts. Nothing is compared
// while there are no commands, and after a comparison for which the state was read for long, the leader
// waits 100 times as long.
func CompareEvery(interval time.Duration) GroupOption {
	return func(c *groupConfig) { c.compareEvery = interval }
}

// Configure lets f change any setting of the group's host, except for those that the node
// has set: the parts that groups share, and who the node is.
func Configure(f func(*rawnode.Config)) GroupOption {
	return func(c *groupConfig) {
		if f == nil {
			c.errs = append(c.errs, invalid.Errorf("Configure got nil, want a function"))
			return
		}
		if c.peek {
			return
		}
		was := c.host
		f(&c.host)
		is := &c.host
		for _, set := range []struct {
			name    string
			changed bool
		}{
			{"Replica.ID", is.Replica.ID != was.Replica.ID},
			{"Replica.Group", is.Replica.Group != was.Replica.Group},
			{"Replica.Peers", !slices.Equal(is.Replica.Peers, was.Replica.Peers)},
			{"Replica.Log", is.Replica.Log != was.Replica.Log},
			{"StateMachine", is.StateMachine != was.StateMachine},
			{"Transport", is.Transport != was.Transport},
		} {
			if set.changed {
				c.errs = append(c.errs, invalid.Errorf("Configure changed %s, which the node sets", set.name))
			}
		}
	}
}

// Group opens a group at this node. Its state is that of the state machine, brought up to date
// from the log. A group that has no log yet begins with [Options.Peers] as its voters, unless
// the node joins. The state machine is the caller's to close, after the group or the node.
//
// Group waits for the state machine's Load and for the log, however long these take, because a large
// state may rightly take minutes; a wait of 10 s is logged, and [Node.Close] does not wait for longer than its
// context.
func (n *Node) Group(id uint64, sm StateMachine, options ...GroupOption) (*Group, error) {
	if n != nil && id != 0 && invalid.IsNil(sm) {
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
	log, err := n.engine.Group(id)
	if err != nil {
		return nil, fmt.Errorf("open the log of group %d: %w", id, err)
	}
	g := &Group{node: n, id: id, user: sm, turn: make(chan struct{}, 1), opened: time.Now()}
	g.done = sync.OnceValue(g.ended)
	g.ending, g.end = context.WithCancel(context.Background())
	g.gone, g.goneNow = context.WithCancel(context.Background())
	if err := g.service().OutOfService(); err != nil {
		return nil, err
	}
	machine := g.newMachine()
	c := groupConfig{host: rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: n.options.ID, Group: id, Log: log, Budget: n.budget},
		StateMachine: machine,
		Transport:    n.transport,
		TickInterval: n.options.TickInterval,
		Recorder:     n.options.recordGroup(id),
		Logger:       n.options.Logger,
	}}
	for i, option := range options {
		if option == nil {
			return nil, invalid.Errorf("option %d of %d for group %d is nil", i+1, len(options), id)
		}
		option(&c)
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("group %d: %w", id, err)
	}
	if c.host.Replica.Peers, err = c.firstMembers(n.options); err != nil {
		return nil, fmt.Errorf("group %d: %w", id, err)
	}
	c.hideOwnCommands()
	g.comparer.Every = c.compareEvery
	done := timed(n.options.Logger, "opening the group, which loads the state and reads the log,", "node", n.options.ID, "group", id)
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

// newMachine puts a machine before the state machine of the group.
func (g *Group) newMachine() *front.Machine {
	o := &g.node.options
	sm, _ := g.user.(Comparable)
	g.comparer = compare.NewReplica(compare.Config{
		Node: o.ID, Group: g.id, State: sm, Logger: o.Logger, Use: g.use, Ended: func() bool { return g.ending.Err() != nil },
		Leads: g.votersOfLeader, Wake: func() { g.node.keeper.Nudge() }, PutOut: func(why error) error { return g.service().PutOut(ErrDiffers, why) },
	})
	return front.New(front.Config{
		User: g.user, Group: g.id, Book: g.node.book, Comparer: g.comparer, Changed: g.changes.notify, Ended: g.noteLoss, Logger: o.Logger,
	})
}

// service knows whether the group is out of service here.
func (g *Group) service() front.Group {
	return front.Group{Dir: g.node.options.Dir, Node: g.node.options.ID, ID: g.id}
}

// noteLoss takes the reason for which the host has ended. The host counts as ended when the note of a
// lost log is durable.
func (g *Group) noteLoss(reason error) {
	if !errors.Is(reason, ErrLogLost) {
		return
	}
	if err := g.service().PutOut(ErrLogLost, reason); err != nil {
		g.node.options.Logger.Error("that the log was lost is not noted: do not start this node again", "group", g.id, "node", g.node.options.ID, "error", err)
	}
}

// votersOfLeader returns the voters, if this node leads, or nil.
func (g *Group) votersOfLeader() []uint64 {
	s := g.host.Status()
	if s.Role != raft.StateLeader {
		return nil
	}
	return members.Voters(s.Members)
}

// hideOwnCommands keeps this package's commands, which write no key, from the user's Leases.Spans.
func (c *groupConfig) hideOwnCommands() {
	l := c.host.Replica.Leases
	if l == nil || l.Spans == nil {
		return
	}
	own := *l
	own.Spans = func(command []byte) []leases.Span {
		if marked.Is(command) {
			return []leases.Span{} // not nil, which is every key
		}
		return l.Spans(command)
	}
	c.host.Replica.Leases = &own
}

// firstMembers returns whom the group begins with if it has no log, or nobody.
func (c *groupConfig) firstMembers(o Options) ([]uint64, error) {
	switch {
	case c.joins && c.named:
		return nil, invalid.Errorf("FirstMembers %v and Joining contradict each other: a node that joins begins nothing", c.first)
	case c.joins || o.Join && !c.named:
		return nil, nil
	case !c.named && len(o.Peers) == 0:
		return []uint64{o.ID}, nil
	case !c.named:
		return slices.Sorted(maps.Keys(o.Peers)), nil
	case slices.ContainsFunc(c.first, func(id uint64) bool { return id == 0 || id > MaxID }):
		return nil, invalid.Errorf("FirstMembers are %v, want ids of 1 to %d", c.first, uint64(MaxID))
	case !slices.Contains(c.first, o.ID):
		return nil, invalid.Errorf("FirstMembers %v lack this node (%d): name the same first members at all of them, or open the group with Joining", c.first, o.ID)
	}
	return c.first, nil
}

// ID returns the group's id.
func (g *Group) ID() uint64 { return g.id }

// Host returns the host below, with everything that package rawnode offers. It is the group's
// to stop.
func (g *Group) Host() *rawnode.Host { return g.host }

// Leader returns the id of the leader that this node knows, or 0.
func (g *Group) Leader() uint64 { return g.host.Status().Lead }

// Err returns why the group has failed at this node, or nil. A group that failed has
// acknowledged nothing since, and is to be closed. At a node that was removed Err wraps [ErrRemoved].
func (g *Group) Err() error {
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

// member returns why a member's calls are refused.
func (g *Group) member(ctx context.Context) error {
	if err := g.usable(ctx); err != nil {
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
	if err := g.member(ctx); err != nil {
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
	if err := g.usable(ctx); err != nil {
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
	err := errors.Join(g.awaitUses(ctx), g.host.Stop(ctx))
	if g.after != nil && !errors.Is(err, ErrNotEnded) {
		err = errors.Join(err, g.state.await(ctx, "the state, of which a checkpoint is written", g.after))
	}
	if errors.Is(err, ErrNotEnded) {
		return fmt.Errorf("close group %d: %w", g.id, err)
	}
	g.after = nil
	g.node.mu.Lock()
	if g.node.groups[g.id] == g {
		delete(g.node.groups, g.id)
	}
	g.node.mu.Unlock()
	if err != nil {
		return fmt.Errorf("close group %d: %w", g.id, err)
	}
	return nil
}
