// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/rawnode"
)

// memberTimeout bounds changes of members whose context has no deadline.
const memberTimeout = time.Minute

// Member is a member of a group.
type Member struct {
	ID uint64
	// Address is where the member listens, as far as this node knows; empty if it does not.
	Address string
	// Voter says that the member votes; a learner does not.
	Voter bool
}

// Members returns the members of the group, ascending, as this node has applied.
func (g *Group) Members() []Member {
	if g.gateway != nil {
		return g.members(g.gateway.Status().Members)
	}
	return g.members(g.host.Status().Members)
}

func (g *Group) members(conf *pb.ConfState) []Member { return membersOf(conf, g.node.address) }

// Removed returns the ids that were removed from the group and do not come back, ascending, as far as this node has
// heard. A member is not among them, also if a removal was refused, or if a recovery elsewhere gave the member up.
func (g *Group) Removed() []uint64 {
	here := g.Members()
	return slices.DeleteFunc(g.node.book.EveryBarred(g.id), func(id uint64) bool {
		return slices.ContainsFunc(here, func(m Member) bool { return m.ID == id })
	})
}

// membersOf returns the members of a configuration, with their addresses.
func membersOf(conf *pb.ConfState, address func(id uint64) string) []Member {
	var all []Member
	add := func(ids []uint64, voter bool) {
		for _, id := range ids {
			if !slices.ContainsFunc(all, func(m Member) bool { return m.ID == id }) {
				all = append(all, Member{ID: id, Address: address(id), Voter: voter})
			}
		}
	}
	add(conf.GetVoters(), true)
	add(conf.GetVotersOutgoing(), true)
	add(conf.GetLearners(), false)
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// address returns the address of any node.
func (n *Node) address(id uint64) string {
	if id == n.options.ID {
		return n.options.Advertise
	}
	return n.book.Address(id)
}

// AddLearner adds a node that gets the state and has no vote. The node is started with [Options.Join], before or after. A node
// that is a learner already gets the address, if that is new; a voter is refused ([ErrInvalid]), and a node that was removed before
// ([ErrRemoved]).
func (g *Group) AddLearner(ctx context.Context, id uint64, address string) error {
	return g.change(ctx, fmt.Sprintf("add learner %d", id), func(ctx context.Context) error {
		return g.addLearner(ctx, id, address)
	})
}

// AddVoter adds a node that votes: first as a learner, and, once it has the state, with a vote. If ctx ends meanwhile, the node
// stays a learner, and [Group.Promote] goes on. As for each change of members, a ctx without a deadline ends after a minute (a
// large state needs more), and a node that cannot write refuses what is left to do, at once as it refuses a command ([ErrStalled]).
// A further call does nothing if the node votes at this address; a voter at another address is refused ([ErrInvalid]).
func (g *Group) AddVoter(ctx context.Context, id uint64, address string) error {
	return g.change(ctx, fmt.Sprintf("add voter %d", id), func(ctx context.Context) error {
		conf, err := g.present(ctx)
		if err != nil || slices.Contains(conf.GetVoters(), id) && g.node.address(id) == address {
			return err
		}
		if err := g.addLearner(ctx, id, address); err != nil {
			return err
		}
		return g.promote(ctx, id)
	})
}

// Promote gives a learner a vote, as soon as it has the state.
func (g *Group) Promote(ctx context.Context, id uint64) error {
	return g.change(ctx, fmt.Sprintf("promote %d", id), func(ctx context.Context) error {
		return g.promote(ctx, id)
	})
}

// Remove removes a member, which never comes back under its id. A leader that is to be removed hands over first. The change is
// refused ([ErrUnsafeChange]) if too few of the voters that stay can be reached.
func (g *Group) Remove(ctx context.Context, id uint64) error {
	return g.remove(ctx, id, (*rawnode.Host).ProposeConfChange)
}

// ForceRemove is Remove without the refusal ([ErrUnsafeChange]): if too few voters can be reached, the group takes no more commands.
func (g *Group) ForceRemove(ctx context.Context, id uint64) error {
	return g.remove(ctx, id, (*rawnode.Host).ForceConfChange)
}

// proposeChange is a way to propose a change of members.
type proposeChange func(*rawnode.Host, context.Context, pb.ConfChangeI) (*pb.ConfState, error)

func (g *Group) remove(ctx context.Context, id uint64, propose proposeChange) error {
	if g.usable(ctx) == nil && id == g.node.options.ID && g.removed() {
		return nil // by an earlier call
	}
	return g.change(ctx, fmt.Sprintf("remove %d", id), func(ctx context.Context) error {
		conf, err := g.present(ctx)
		if err != nil {
			return err
		}
		if !members.Has(conf, id) {
			if g.barred(id) {
				return nil // by an earlier call
			}
			return refused("remove", fmt.Errorf("%w: node %d, the members are %v", ErrNotMember, id, members.IDs(conf)))
		}
		if err := g.bar(ctx, id); err != nil {
			return err
		}
		return g.takeOut(ctx, id, func(ctx context.Context) error {
			return g.tryAlter(ctx, propose, step(pb.ConfChangeRemoveNode, id))
		})
	})
}

// Replace puts a new node in the place of a member: the new one is added as a learner, and, once it has the state, one change gives it
// the vote and removes the old one. If ctx ends meanwhile, the new one stays a learner, and a second Replace goes on. A learner is
// replaced by a learner. A new node that votes already is refused ([ErrInvalid]), unless an earlier call has removed the old one; once
// the old one is out, so is a learner ([ErrNotMember]), and Promote gives it the vote that the old one may have had.
func (g *Group) Replace(ctx context.Context, old, id uint64, address string) error {
	return g.change(ctx, fmt.Sprintf("replace %d by %d", old, id), func(ctx context.Context) error {
		conf, err := g.settled(ctx)
		if err != nil {
			return err
		}
		switch {
		case old == id:
			return refused("replace", invalid.Errorf("the old and the new node are both %d: the new one has an id that was never used", id))
		case !members.Has(conf, old) && members.Votes(conf, id) && g.barred(old):
			return nil // by an earlier call
		case !members.Has(conf, old):
			return refused("replace", fmt.Errorf("%w: node %d, the members are %v", ErrNotMember, old, members.IDs(conf)))
		case members.Votes(conf, id):
			return refused("replace", invalid.Errorf("the new node, %d, is a voter already: Remove takes node %d out of the group, and nobody in its place", id, old))
		}
		if err := g.addLearner(ctx, id, address, old); err != nil {
			return err
		}
		if err := g.bar(ctx, old); err != nil {
			return err
		}
		steps := []*pb.ConfChangeSingle{step(pb.ConfChangeAddNode, id), step(pb.ConfChangeRemoveNode, old)}
		if members.Learns(conf, old) {
			steps = steps[1:]
		}
		return g.takeOut(ctx, old, func(ctx context.Context) error { return g.alter(ctx, steps...) })
	})
}

// SetAddress says where a member is from now on. A node that is started with another [Options.Advertise] or [Options.Listen] says so
// by itself; SetAddress is for a member that cannot, and for nodes whose Options.Peers have changed, to a wrong address. If the
// member has named an address that this node has not heard of yet, the member's counts: look at Members, and call again.
func (g *Group) SetAddress(ctx context.Context, id uint64, address string) error {
	return g.change(ctx, fmt.Sprintf("set the address of %d", id), func(ctx context.Context) error {
		conf, err := g.present(ctx)
		if err != nil {
			return err
		}
		if !members.Has(conf, id) {
			return refused("set address", fmt.Errorf("%w: node %d, the members are %v", ErrNotMember, id, members.IDs(conf)))
		}
		return g.locate(ctx, conf, id, address)
	})
}

// change runs a change of members, in bounded time.
func (g *Group) change(ctx context.Context, what string, f func(context.Context) error) error {
	if err := g.member(ctx); err != nil {
		return refused(what, err)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, memberTimeout)
		defer cancel()
	}
	if err := f(ctx); err != nil {
		return fmt.Errorf("group %d: %s: %w", g.id, what, err)
	}
	return nil
}

// present returns the configuration as of now.
func (g *Group) present(ctx context.Context) (*pb.ConfState, error) {
	if _, err := g.host.Read(ctx); err != nil {
		return nil, err
	}
	return g.host.Status().Members, nil
}

// settled is present once no joint configuration is in force.
func (g *Group) settled(ctx context.Context) (*pb.ConfState, error) {
	conf, err := g.present(ctx)
	if err == nil && len(conf.GetVotersOutgoing()) > 0 {
		if err = g.awaitLeft(ctx, conf, ErrRefused); err == nil { // the call has done nothing yet
			conf, err = g.present(ctx)
		}
	}
	return conf, err
}

// addLearner adds a learner, which may have the address of nodes that leave.
func (g *Group) addLearner(ctx context.Context, id uint64, address string, leaving ...uint64) error {
	if id == 0 || id > MaxID {
		return refused("add", invalid.Errorf("the node is %d, want 1 to %d", id, uint64(MaxID)))
	}
	conf, err := g.present(ctx)
	if err != nil {
		return err
	}
	switch {
	case members.Votes(conf, id):
		return refused("add", invalid.Errorf("node %d is a voter: SetAddress changes the address of a member, Remove takes its vote", id))
	case !members.Has(conf, id) && g.barred(id):
		return refused("add", book.RemovedBefore(g.id, id))
	}
	if err := g.locate(ctx, conf, id, address, leaving...); err != nil {
		return err
	}
	if members.Has(conf, id) {
		return nil
	}
	err = g.alter(ctx, step(pb.ConfChangeAddLearnerNode, id))
	if errors.Is(err, ErrRefused) && errors.Is(err, ErrConfChange) && g.removedMeanwhile(ctx, id) {
		return refused("add", book.RemovedBefore(g.id, id))
	}
	return err
}

// removedMeanwhile reports whether a node is no member, and is not taken again.
func (g *Group) removedMeanwhile(ctx context.Context, id uint64) bool {
	conf, err := g.present(ctx)
	return err == nil && !members.Has(conf, id) && g.barred(id)
}

func (g *Group) promote(ctx context.Context, id uint64) error {
	conf, err := g.present(ctx)
	switch {
	case err != nil:
		return err
	case slices.Contains(conf.GetVoters(), id):
		return nil
	case !members.Has(conf, id):
		return refused("promote", fmt.Errorf("%w: node %d, the members are %v: add it as a learner first", ErrNotMember, id, members.IDs(conf)))
	}
	return g.alter(ctx, step(pb.ConfChangeAddNode, id))
}

func step(typ pb.ConfChangeType, id uint64) *pb.ConfChangeSingle {
	return &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: new(id)}
}

// alter changes the configuration and waits until the change is over. What the leader finds unsafe, as a new member lacks entries
// or has not answered, is asked again, each tick, until ctx ends.
func (g *Group) alter(ctx context.Context, steps ...*pb.ConfChangeSingle) error {
	var unsafe error
	for {
		err := g.tryAlter(ctx, (*rawnode.Host).ProposeConfChange, steps...)
		switch {
		case errors.Is(err, ErrUnsafeChange):
			unsafe = err
		case unsafe != nil && errors.Is(err, ErrRefused) && errors.Is(err, rawnode.ErrTimeout):
			return g.withReasons(unsafe, steps) // the reason for which the time went by
		default:
			return err
		}
		if !g.pause(ctx, g.node.options.TickInterval) {
			return g.withReasons(err, steps)
		}
	}
}

// withReasons adds why this node cannot talk to the nodes that are to get a vote, as far as its transport knows: a
// node may say in words why it takes no connection.
func (g *Group) withReasons(err error, steps []*pb.ConfChangeSingle) error {
	peers := g.node.transport.Stats().Peers
	for _, s := range steps {
		if s.GetType() != pb.ConfChangeAddNode {
			continue
		}
		for _, traffic := range peers[s.GetNodeId()] {
			if traffic.Error != "" {
				err = fmt.Errorf("%w; node %d cannot talk to node %d, which is to be started with Join, on an empty directory, before it is added: %s", err, g.node.options.ID, s.GetNodeId(), traffic.Error)
				break
			}
		}
	}
	return err
}

// otherChanges is for how many election timeouts a change is tried that the leader refuses: another change may be under
// way, or a new leader may not have heard all members yet.
const otherChanges = 5

// tryAlter is alter without patience, but for changes of others: a leader that has applied
// less than this node takes the last change for one under way.
func (g *Group) tryAlter(ctx context.Context, propose proposeChange, steps ...*pb.ConfChangeSingle) error {
	for begun := time.Now(); ; {
		conf, err := propose(g.host, ctx, &pb.ConfChangeV2{Changes: steps})
		if err == nil {
			return g.awaitLeft(ctx, conf, ErrUnknown)
		}
		wait := g.electionTimeout
		if errors.Is(err, ErrUnsafeChange) {
			wait = g.node.options.TickInterval
		}
		if !errors.Is(err, rawnode.ErrConfChange) || time.Since(begun)+wait > otherChanges*g.electionTimeout || !g.pause(ctx, wait) {
			return err
		}
	}
}

// pause waits, and reports whether there is time for another try.
func (g *Group) pause(ctx context.Context, wait time.Duration) bool {
	if at, ok := ctx.Deadline(); ok && time.Until(at) < wait {
		return false
	}
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
	case <-g.host.Done():
	}
	return false
}

// awaitLeft waits until a joint configuration is left. The verdict is that of a call that waits in vain.
func (g *Group) awaitLeft(ctx context.Context, conf *pb.ConfState, verdict error) error {
	ended := func(cause error) error {
		return &rawnode.CallError{Op: "wait for the end of the change", Verdict: verdict, Cause: cause}
	}
	for len(conf.GetVotersOutgoing()) > 0 {
		select {
		case <-time.After(g.node.options.TickInterval):
		case <-g.host.Done():
			return ended(cmp.Or(g.host.Err(), ErrStopped))
		case <-ctx.Done():
			return ended(causeOf(ctx))
		}
		conf = g.host.Status().Members
	}
	return nil
}

// barred reports whether the group does not take a node again.
func (g *Group) barred(id uint64) bool { return g.node.book.Barred(g.id, id) }

// removed reports whether this node is known to have been removed from the group, or has obeyed
// the word of another node that it is lost.
func (g *Group) removed() bool {
	_, gone := g.node.book.Removed(g.id, g.node.options.ID)
	_, answer := g.node.book.Lost(g.id)
	return gone || answer == book.Obeyed
}

// leave has f take this node out of the group. Nobody may tell a removed node that the change is
// committed, so the book of another node counts, too. Afterwards this node refuses calls.
func (g *Group) leave(ctx context.Context, f func(context.Context) error) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(limited) }()
	for {
		select {
		case err := <-done:
			if err == nil {
				g.node.book.Learn(book.Facts{Removed: map[uint64]map[uint64]bool{g.id: {g.node.options.ID: true}}})
				g.setOut()
				g.node.book.TrySave()
			}
			return err
		case <-time.After(g.node.options.TickInterval):
		}
		if g.removed() {
			g.setOut()
			cancel()
			if err := <-done; err != nil {
				g.node.options.Logger.Debug("the group goes on without this node, and its call ended otherwise", "group", g.id, "error", err)
			}
			return nil
		}
	}
}

// takeOut has f take a member out of the group.
func (g *Group) takeOut(ctx context.Context, id uint64, f func(context.Context) error) error {
	if id == g.node.options.ID {
		return g.leave(ctx, f)
	}
	return f(ctx)
}

// bar notes, in the group, that a node is not to be added again.
func (g *Group) bar(ctx context.Context, id uint64) error {
	if begun, _ := g.node.book.Removed(g.id, id); begun {
		return nil
	}
	return g.tell(ctx, book.Facts{Removed: map[uint64]map[uint64]bool{g.id: {id: false}}})
}

// locate replicates the address of a node. The address of another member is refused, unless
// that member leaves.
func (g *Group) locate(ctx context.Context, conf *pb.ConfState, id uint64, at string, leaving ...uint64) error {
	if err := address.Check(at); err != nil {
		return refused("set address", err)
	}
	for _, other := range members.IDs(conf) {
		if other != id && g.node.address(other) == at && !slices.Contains(leaving, other) {
			return refused("set address", fmt.Errorf("%w: %s is the address of node %d: give node %d one of its own, or move node %d first", ErrAddress, at, other, id, other))
		}
	}
	known := g.node.book.Fact(id)
	if known.Address == at && !members.Has(conf, id) {
		return nil
	}
	return g.tell(ctx, book.Facts{Addresses: map[uint64]book.Located{id: {Address: at, Version: known.Next()}}})
}

// tell puts facts into the log.
func (g *Group) tell(ctx context.Context, f book.Facts) error {
	if err := g.node.book.Takes(f); err != nil {
		return refused("note members", err)
	}
	command, err := f.Command()
	if err != nil {
		return err
	}
	_, err = g.host.Propose(ctx, command)
	return err
}

// lookForLeavers finds members whose removal is done, and tells the other nodes, because a
// removed node hears nothing of the group any more. A leader looks.
func (n *Node) lookForLeavers() {
	for _, g := range n.opened() {
		leaving := n.book.Leaving(g.id)
		if len(leaving) == 0 {
			continue
		}
		s := g.host.Status()
		leaving = slices.DeleteFunc(leaving, func(id uint64) bool { return members.Has(s.Members, id) })
		if len(leaving) == 0 || s.Lead != s.ID {
			continue
		}
		// The order to remove a node comes behind the one to add it, and this read behind both:
		// so a node that is no member now is none any more.
		ctx, cancel := context.WithTimeout(n.context, n.keeper.Interval())
		conf, err := g.present(ctx)
		cancel()
		if err != nil {
			continue
		}
		for _, id := range leaving {
			if !members.Has(conf, id) {
				n.book.Learn(book.Facts{Removed: map[uint64]map[uint64]bool{g.id: {id: true}}})
			}
		}
	}
}

// lookForOwnRemoval has the groups that go on without this node refuse calls here.
func (n *Node) lookForOwnRemoval() {
	for _, g := range n.opened() {
		if by, answer := n.book.Lost(g.id); by != 0 && answer == book.NoClaim && g.weighing.CompareAndSwap(false, true) {
			n.background.Go(func() {
				defer g.weighing.Store(false)
				g.weigh(by)
			})
		}
		g.lookForRemoval()
	}
}

// A node that is recovered ([Recover]) tells the others that they are lost. That is true if they
// were dead, and come back; the recovered node may also have been cut off from a majority that
// went on, or have asked at old addresses. A lost member that obeyed in every case would stop a
// healthy group for good, because all its members hear the same.
//
// So a member that has been in service for a while, and now has a leader and a majority, does not
// obey. A member that was opened a moment ago obeys at once: two lost members that come back are a
// majority of the old group, too, and hear within this time that it is no more. The answer of a
// member is durable, and given once.

// inService is how many election timeouts after it was opened a member counts as in service.
const inService = 30

// weighed is how many election timeouts a member looks for a leader and a majority.
const weighed = 3

// weigh decides whether this node obeys the word of another node, which has recovered the group
// without this one.
func (g *Group) weigh(by uint64) {
	o := &g.node.options
	if time.Since(g.opened) < inService*g.electionTimeout || !g.led() {
		if g.node.context.Err() != nil {
			return // the node is being closed: it answers at its next start
		}
		o.Logger.Error("the group was recovered at another node, and goes on there without this node, which refuses calls from now on: "+
			"if other members that were given up are alive, stop the recovered node and call Recover at one of them", "group", g.id, "node", o.ID, "recovered", by)
		g.node.book.Answer(g.id, book.Obeyed)
		g.setOut()
		g.node.book.TrySave()
		return
	}
	o.Logger.Error("the group was recovered at another node, as if this node were lost, and has a leader and a majority here: this node goes on; "+
		"stop the recovered node for good, remove it from the group, and add a node with a new id", "group", g.id, "node", o.ID, "recovered", by)
	g.node.book.Answer(g.id, book.Denied)
	g.node.book.TrySave()
}

// led reports whether this node is a member of a group with a leader and a majority.
func (g *Group) led() bool {
	ctx, cancel := context.WithTimeout(g.node.context, weighed*g.electionTimeout)
	defer cancel()
	conf, err := g.present(ctx)
	return err == nil && members.Has(conf, g.node.options.ID)
}
