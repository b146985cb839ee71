// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
)

// Querier is an optional interface of a [StateMachine]: see [rawnode.Querier] and [Group.Query]. A machine of
// [Replicate] implements [state.Querier], whose Query takes no context.
type Querier = rawnode.Querier

// ResultEncoder is an optional interface of a [StateMachine] whose results are to reach callers at
// gateways: see [rawnode.ResultEncoder].
type ResultEncoder = rawnode.ResultEncoder

// validateGateway returns what is wrong with the options of a gateway, beside what all options have in common.
func (o Options) validateGateway() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, invalid.Errorf("Options."+format, args...)) }
	peers := o
	peers.Gateway, peers.Join = false, true
	errs = peers.validatePeers()
	if at, named := o.Peers[o.ID]; named {
		bad("Peers[%d] is %s, and a gateway has the ID: want an ID that no node has", o.ID, at)
	}
	for _, set := range []struct {
		field string
		set   bool
	}{
		{"Dir", o.Dir != ""}, {"Join", o.Join}, {"LeaderWeight", o.LeaderWeight != 0},
		{"ExitAfterHang", o.ExitAfterHang != 0}, {"ConfigureLog", o.ConfigureLog != nil},
		{"CatchUpBytes", o.CatchUpBytes != defaultCatchUp}, {"Balance", o.Balance != defaultBalance},
	} {
		if set.set {
			bad("%s is set, and a gateway has none: leave it", set.field)
		}
	}
	return errs
}

// noReplica is the reason for which a gateway does not do something.
func noReplica(o Options) error {
	return invalid.Errorf("process %d is a gateway, without a replica: ask a node", o.ID)
}

// openGateway opens the parts of a gateway.
func (n *Node) openGateway() (err error) {
	o := &n.options
	if n.book, err = book.Load(o.book()); err != nil {
		return err
	}
	c := o.transportConfig(o.Peers)
	if c.Listener == nil {
		if c.Listener, err = net.Listen("tcp", o.Listen); err != nil {
			return fmt.Errorf("listen for nodes at %s: %w", o.Listen, err)
		}
	}
	if o.Advertise == "" {
		o.Advertise = c.Listener.Addr().String()
		if err := address.Check(o.Advertise); err != nil {
			return errors.Join(invalid.Errorf("Options.Advertise is empty, and nodes cannot dial the address of Listen: %w", err), c.Listener.Close())
		}
	}
	c.Gateway = o.Advertise
	if n.transport, err = transport.New(c); err != nil {
		return errors.Join(err, c.Listener.Close())
	}
	n.book.SetDial(n.transport.SetPeer)
	reader := book.NewReader(n.book, n.transport.Send)
	n.background.Go(func() { reader.Run(n.context, max(time.Second, o.electionTimeout())) })
	return n.transport.Join(book.NoteGroup, reader)
}

// homes returns the nodes that may have a replica for a gateway.
func (n *Node) homes() []uint64 {
	return slices.DeleteFunc(slices.Collect(maps.Keys(n.book.All())), func(id uint64) bool {
		kinds, _, known := n.transport.Announced(id)
		return known && !kinds.Has(wire.KindAttach)
	})
}

// openGateGroup opens a group at a gateway.
func (n *Node) openGateGroup(id uint64, options []GroupOption) (*Group, error) {
	o := &n.options
	if len(options) > 0 {
		return nil, invalid.Errorf("group %d has %d options, and a gateway takes none", id, len(options))
	}
	g := &Group{node: n, id: id, turn: make(chan struct{}, 1), opened: time.Now(), electionTimeout: o.electionTimeout()}
	var err error
	g.gateway, err = rawnode.NewGateway(rawnode.GatewayConfig{
		ID: o.ID, Group: id, Transport: n.transport, Homes: n.homes, Budget: n.budget, TickInterval: o.TickInterval, ElectionTick: o.ElectionTicks,
		Logger: o.part("gateway"), Recorder: o.recordGroup(id),
	})
	if err != nil {
		return nil, err
	}
	g.done = g.gateway.Done
	if g.calls, err = o.wrap(id, gateCalls{g.gateway}); err != nil {
		g.gateway.Stop()
	}
	return g, err
}

// gateCalls are the calls of a gateway's group for [Options.Calls]: a read there is a query, which ctx has.
type gateCalls struct{ *rawnode.Gateway }

// query is a question of a gateway's caller, and the answer to it.
type query struct{ request, answer []byte }

// queryKey is the key of a query in a context.
type queryKey struct{}

// ReadWith implements Calls.
func (g gateCalls) ReadWith(ctx context.Context, o rawnode.ReadOptions) (r ReadResult, err error) {
	q, ok := ctx.Value(queryKey{}).(*query)
	if !ok {
		return r, refused("query", invalid.Errorf("Options.Calls has dropped the context of a call: derive contexts from it"))
	}
	q.answer, r, err = g.Query(ctx, q.request, o)
	return r, err
}

// Gateway returns the gateway below, or nil at a node. It is the group's to stop.
func (g *Group) Gateway() *rawnode.Gateway { return g.gateway }

// Query asks the group's state machine, a [Querier], as of no earlier than the call, unless options ask for less: here,
// if this is a node, and at a replica if this is a gateway. The request must not be changed
// afterwards.
//
// An error is a [CallError] that wraps [ErrRefused]: a query has no effect.
func (g *Group) Query(ctx context.Context, request []byte, options ...ReadOption) ([]byte, error) {
	if err := g.usable(ctx); err != nil {
		return nil, refused("query", err)
	}
	if g.gateway != nil {
		o, err := readOptions(options)
		if err != nil {
			return nil, refused("query", err)
		}
		q := &query{request: request}
		_, err = g.calls.ReadWith(context.WithValue(ctx, queryKey{}, q), o)
		return q.answer, err
	}
	if _, err := g.Read(ctx, options...); err != nil {
		return nil, err
	}
	ctx, end, err := g.begin(ctx)
	if err != nil {
		return nil, refused("query", err)
	}
	defer end()
	answer, err := g.machine.Query(ctx, request)
	if err != nil {
		if !errors.Is(err, rawnode.ErrNoQueries) {
			err = fmt.Errorf("%w: %w", rawnode.ErrQuery, err)
		}
		return nil, refused("query", err)
	}
	return answer, nil
}

// gateState is State at a gateway.
func (g *Group) gateState() State {
	s := g.gateway.Status()
	return State{Leader: s.Lead, Term: s.Term, Role: Gateway, Home: s.Home, Members: g.members(s.Members), CaughtUp: s.Lead != 0 && members.Has(s.Members, s.Home), Ended: g.isOver()}
}

// isOver reports whether the host, or the gateway, has ended.
func (g *Group) isOver() bool {
	select {
	case <-g.over():
		return true
	default:
		return false
	}
}
