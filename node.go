// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/compare"
	"github.com/weftraft/weft/internal/copies"
	"github.com/weftraft/weft/internal/front"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// Node is one process of a cluster, with everything that its groups share. Its methods may be called from several goroutines.
type Node struct {
	options   Options // with defaults
	engine    *storage.Engine
	book      *book.Book
	keeper    *book.Keeper
	transport *transport.TCP
	budget    *rawnode.Budget
	catchUp   *rawnode.CatchUp // nil at a gateway
	placement *rawnode.Placement
	trials    *adaptive.Trials

	context    context.Context // ends when Close begins
	cancel     context.CancelFunc
	background sync.WaitGroup
	unobserved func() // called when the node has closed; may be nil

	mu      sync.Mutex
	groups  map[uint64]*Group        // the open ones
	opening map[uint64]chan struct{} // closed when a group is open, or is not
	closing bool

	turn   chan struct{} // has a token while a Close is under way
	closed bool          // of whoever has the token
	parts  front.Ending  // likewise: the end of the parts
}

// logDir is where the log is, in Options.Dir.
const logDir = "log"

// Open opens a node: log, transport, and what else its groups share. It does not wait for other nodes. It waits for the disk,
// however long that takes, because nothing can be done without the log; a wait of 10 s is logged. The error names every
// mistake in options; a directory that is in use is [ErrLocked], that of another node [ErrIdentity], and one whose log is damaged, or
// is gone although the node had one, storage.ErrDamaged.
func Open(o Options) (*Node, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	begun := time.Now()
	n := &Node{
		options: o, budget: rawnode.NewBudget(o.BudgetBytes), trials: adaptive.NewTrials(func() time.Duration { return time.Since(begun) }), turn: make(chan struct{}, 1),
		groups: map[uint64]*Group{}, opening: map[uint64]chan struct{}{},
	}
	n.context, n.cancel = context.WithCancel(context.Background())
	done := front.Timed(o.Logger, "opening the node, which reads the log,", "cluster", o.Cluster, "node", o.ID, "dir", o.Dir)
	err := n.open()
	if done(); err != nil {
		return nil, fmt.Errorf("open node %d of cluster %d: %w", o.ID, o.Cluster, errors.Join(err, n.release()))
	}
	o.Logger.Info("node open", "cluster", o.Cluster, "node", o.ID, "address", n.options.Advertise, "dir", o.Dir)
	if n.keeper != nil {
		n.background.Go(func() { n.keeper.Run(n.context, n.look) })
	}
	if o.Metrics != nil {
		n.unobserved = o.Metrics.NodeOpened(n)
	}
	return n, nil
}

// open opens the parts. After a failure, release closes the open ones.
func (n *Node) open() (err error) {
	o := &n.options
	if o.Gateway {
		return n.openGateway()
	}
	if n.engine, err = openEngine(*o); err != nil {
		return err
	}
	if err := copies.CheckFinished(o.Dir); err != nil {
		return err
	}
	if n.book, err = book.Open(o.book()); err != nil {
		return err
	}
	if n.transport, err = transport.New(o.transportConfig(n.book.All())); err != nil {
		return err
	}
	if o.Advertise == "" {
		o.Advertise = n.transport.Addr().String()
		if err := address.Check(o.Advertise); err != nil {
			return invalid.Errorf("Options.Advertise is empty, and so is Peers[%d], and other nodes cannot dial the address of Listen: %w", o.ID, err)
		}
	}
	if n.catchUp, err = rawnode.NewCatchUp(o.CatchUpBytes); err != nil {
		return err
	}
	n.placement, err = rawnode.NewPlacement(rawnode.PlacementConfig{
		ID: o.ID, Timeout: o.electionTimeout(), Transport: n.transport, Weight: o.LeaderWeight,
	})
	if err != nil {
		return err
	}
	n.book.SetDial(n.transport.SetPeer)
	n.keeper = book.NewKeeper(n.book, keeping{n}, o.Advertise, o.TickInterval)
	if err := n.transport.Join(book.NoteGroup, n.keeper); err != nil {
		return err
	}
	if o.Balance < 0 {
		return nil
	}
	balancer, err := rawnode.NewBalancer(rawnode.BalancerConfig{Hosts: n.hosts, Interval: o.Balance, Logger: o.part("balancer")})
	if err != nil {
		return err
	}
	n.background.Go(func() { balancer.Run(n.context) })
	return nil
}

// openEngine opens the log.
func openEngine(o Options) (*storage.Engine, error) {
	return storage.Open(filepath.Join(o.Dir, logDir), o.logOptions())
}

// release closes the parts that are open, in order.
func (n *Node) release() error {
	n.cancel()
	n.background.Wait()
	var errs []error
	if n.transport != nil {
		errs = append(errs, n.transport.Close())
	}
	if n.engine != nil {
		errs = append(errs, n.engine.Close())
	}
	return errors.Join(errs...)
}

// Groups returns the open groups, by ascending id.
func (n *Node) Groups() []*Group { return n.opened() }

// hosts returns the hosts of all groups, for the balancer.
func (n *Node) hosts() []*rawnode.Host {
	var hosts []*rawnode.Host
	for _, g := range n.opened() {
		hosts = append(hosts, g.host)
	}
	return hosts
}

// opened returns the open groups, by ascending id.
func (n *Node) opened() []*Group {
	n.mu.Lock()
	defer n.mu.Unlock()
	var groups []*Group
	for _, id := range slices.Sorted(maps.Keys(n.groups)) {
		groups = append(groups, n.groups[id])
	}
	return groups
}

// keeping is what the keeper of the book needs of the node.
type keeping struct{ n *Node }

// Send implements book.Node.
func (k keeping) Send(messages []wire.Message) { k.n.transport.Send(messages) }

// Groups implements book.Node.
func (k keeping) Groups() (ids []uint64) {
	for _, g := range k.n.opened() {
		if s := g.host.Status(); s.Lead != raft.None && members.Has(s.Members, k.n.options.ID) {
			ids = append(ids, g.id)
		}
	}
	return ids
}

// Propose implements book.Node.
func (k keeping) Propose(ctx context.Context, group uint64, command []byte) error {
	k.n.mu.Lock()
	g := k.n.groups[group]
	k.n.mu.Unlock()
	if g == nil {
		return ErrClosed
	}
	_, err := g.host.Propose(ctx, command)
	return err
}

// look is called by the keeper, again and again.
func (n *Node) look() {
	n.lookForLeavers()
	n.lookForOwnRemoval()
	n.compare()
}

// compare proposes what the comparisons of groups wait for.
func (n *Node) compare() {
	for _, g := range n.opened() {
		if g.comparing.Load() {
			continue
		}
		command := g.comparer.Next()
		if command == nil {
			continue
		}
		g.comparing.Store(true)
		n.background.Go(func() {
			defer g.comparing.Store(false)
			ctx, cancel := context.WithTimeout(n.context, compareTimeout)
			defer cancel()
			if _, err := g.host.Propose(ctx, command); err != nil {
				n.options.Logger.Debug("a comparison goes on without this node", "node", n.options.ID, "group", g.id, "error", err)
			}
		})
	}
}

const compareTimeout = 10 * time.Second

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

// noteLoss takes the reason for which the host has ended. The host counts as ended when the note of a lost log is durable.
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

// Group opens a group at this node, by its id, 1 or more. Its state is that of the state machine, brought up to date from the log. At a
// gateway there is no state, and sm is nil. A group that has no log yet begins with [Options.Peers] as its voters, unless the node joins.
// The state machine is the caller's to close, after the group or the node.
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
	g := &Group{node: n, id: id, user: sm, turn: make(chan struct{}, 1), opened: time.Now()}
	g.done = sync.OnceValue(g.ended)
	g.ending, g.end = context.WithCancel(context.Background())
	g.gone, g.goneNow = context.WithCancel(context.Background())
	if err := g.service().OutOfService(); err != nil {
		return nil, err
	}
	g.machine = g.newMachine()
	c := groupConfig{host: rawnode.Config{
		Replica: rawnode.ReplicaConfig{
			ID: n.options.ID, Group: id, Log: log, Budget: n.budget, Placement: n.placement, ElectionTick: n.options.ElectionTicks,
		},
		StateMachine: g.machine,
		Transport:    n.transport,
		CatchUp:      n.catchUp,
		Trials:       n.trials,
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
	g.electionTimeout = time.Duration(cmp.Or(c.host.Replica.ElectionTick, n.options.ElectionTicks)) * cmp.Or(c.host.TickInterval, n.options.TickInterval)
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

// Replicate opens a group whose state is a machine in memory with three methods: apply a command, write the state, read it
// back. The rest is done here: checkpoints beside the log, snapshots, restarts. newMachine returns an empty machine. Closing
// the group or the node closes the state, too.
//
// A command proposed again after [ErrUnknown] may take effect twice, unless clients have [Sessions].
func Replicate[M state.Machine](n *Node, id uint64, newMachine func() M, options ...GroupOption) (*Replicated[M], error) {
	if n == nil {
		return nil, invalid.Errorf("the node is nil: look at the error of Open")
	}
	if n.options.Gateway {
		return nil, fmt.Errorf("%w; a gateway has no state, and opens the group with Node.Group", noReplica(n.options))
	}
	var memory *state.Memory[M]
	g, err := n.groupWith(id, func() (_ StateMachine, _ func() error, err error) {
		if memory, err = OpenMemory(n.options, id, newMachine, options...); err != nil {
			return nil, nil, err
		}
		return memory, memory.Close, nil
	}, options)
	if err != nil {
		return nil, err
	}
	return &Replicated[M]{Group: g, memory: memory}, nil
}

// ID returns the node's id.
func (n *Node) ID() uint64 { return n.options.ID }

// Address returns the address at which other nodes reach this one.
func (n *Node) Address() string { return n.options.Advertise }

// Addresses returns the addresses of all nodes that this node knows, by id.
func (n *Node) Addresses() map[uint64]string {
	all := n.book.All()
	all[n.options.ID] = n.options.Advertise
	return all
}

// Transport returns the node's transport, for its statistics.
func (n *Node) Transport() *transport.TCP { return n.transport }

// Engine returns the node's log engine, for its statistics, or nil at a gateway.
func (n *Node) Engine() *storage.Engine { return n.engine }

// Placement returns what the node knows of its own health and of that of other nodes, or nil at a gateway.
func (n *Node) Placement() *rawnode.Placement { return n.placement }

// CatchUp returns the budget of snapshots, for its statistics, or nil at a gateway.
func (n *Node) CatchUp() *rawnode.CatchUp { return n.catchUp }

// SetLeaderWeight changes the node's weight as a leader, until the node closes: see [Options].
func (n *Node) SetLeaderWeight(weight int) error {
	if n == nil {
		return invalid.Errorf("the node is nil: look at the error of Open")
	}
	if n.options.Gateway {
		return noReplica(n.options)
	}
	if err := n.placement.SetWeight(weight); err != nil {
		return invalid.Errorf("%w", err)
	}
	return nil
}

// Close closes the node in order: groups, all at the same time, which end their calls and hand
// leadership over; then the transport and the log. The state machines stay the caller's
// to close.
//
// When ctx ends, the groups are cut short, and the error wraps ctx's; everything is closed
// all the same. If a state machine or the log hangs, the error wraps [ErrNotEnded] and names
// it: what is in use stays open, transport and log, too, and a later Close tries again.
// A second Close of a closed node returns nil.
func (n *Node) Close(ctx context.Context) error {
	if n == nil {
		return invalid.Errorf("the node is nil: look at the error of Open")
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	if err := front.TakeTurn(ctx, n.turn); err != nil {
		return fmt.Errorf("close node %d: %w", n.options.ID, err)
	}
	defer func() { <-n.turn }()
	if n.closed {
		return nil
	}
	n.mu.Lock()
	n.closing = true
	n.mu.Unlock()
	n.cancel()
	err := errors.Join(n.closeGroups(ctx), n.awaitBackground(ctx))
	if errors.Is(err, ErrNotEnded) {
		return fmt.Errorf("close node %d: %w", n.options.ID, err)
	}
	if n.unobserved != nil {
		n.unobserved()
		n.unobserved = nil
	}
	err = errors.Join(err, n.parts.Await(ctx, "the transport, or the log, whose disk does not answer", n.release))
	n.closed = n.parts.Ended()
	if err != nil {
		return fmt.Errorf("close node %d: %w", n.options.ID, err)
	}
	n.options.Logger.Info("node closed", "cluster", n.options.Cluster, "node", n.options.ID)
	return nil
}

func (n *Node) closeGroups(ctx context.Context) error {
	if err := n.awaitOpening(ctx); err != nil {
		return err
	}
	groups := n.opened()
	errs := make([]error, len(groups))
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() { errs[i] = g.Close(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// awaitBackground waits for the keeper and the balancer, which end with n.context.
func (n *Node) awaitBackground(ctx context.Context) error {
	done := make(chan struct{})
	go func() { n.background.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(front.Patience):
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: the file of addresses, in %s, is being written: %w", ErrNotEnded, n.options.Dir, context.Cause(ctx))
	}
}

// awaitOpening waits until no group is being opened.
func (n *Node) awaitOpening(ctx context.Context) error {
	n.mu.Lock()
	opening := maps.Clone(n.opening)
	n.mu.Unlock()
	for id, done := range opening {
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("%w: group %d is being opened, which waits for the state machine in Load, or for the log: %w", ErrNotEnded, id, context.Cause(ctx))
		}
	}
	return nil
}
