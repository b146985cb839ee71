// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

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
	// Stalled is why this node takes no commands, as its disk is full or late, or nil.
	Stalled error
	// CaughtUp says that, at some moment under the present leader, this node had applied all
	// acknowledged commands.
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
	return s.Leader == o.Leader && s.Term == o.Term && s.Role == o.Role && slices.Equal(s.Members, o.Members) &&
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

// State returns the present state. CaughtUp is false: only Watch finds out.
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
		Stalled: h.Stalled, Differs: h.Differs, Removed: g.removed(), Err: g.host.Err(),
	}
	select {
	case <-g.host.Done():
		s.Ended = true
	default:
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
