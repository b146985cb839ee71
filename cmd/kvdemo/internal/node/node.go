// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
	"github.com/weftraft/weft/cmd/kvdemo/internal/room"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

const (
	// stopTimeout bounds an orderly stop; what remains is cut off. With what follows,
	// clientsTimeout and a state that finds no room, a node ends within 10 s, as long
	// as supervisors wait at least.
	stopTimeout = 5 * time.Second
	// clientsTimeout is what clients get, at least, to read the ends of their calls.
	clientsTimeout = time.Second
	// strangerConns is how many connections without a known client an address can have
	// before they push out each other.
	strangerConns = 8
	// queueBytes bounds the commands that wait at a node, in all groups.
	queueBytes = 128 << 20
)

// Run runs a node until ctx ends, and then stops it in good order. An error
// says why it could not start, or what made it give up.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	n := newNode(cfg)
	if err := n.open(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			err = nil // it was stopped while it waited for leases to end
		}
		return errors.Join(err, n.close())
	}
	err := n.serve(ctx)
	return errors.Join(err, n.close())
}

// node is a node's parts, in the order in which they are opened.
type node struct {
	*entrance

	weft   *weft.Node
	db     *kv.DB
	groups []*group // group 1 first
	reads  readCounts
	policy *policySwitch // nil unless a parent gives orders
	shapes shapes
	// placement is the health of this node, and what it knows of the others'.
	placement *rawnode.Placement
	service   *service
	watches   *watches
	secret    sessionsSecret

	// settled is closed when the cluster is known to have as many groups as
	// this node was told.
	settled chan struct{}
	// gaveUp gets why the node cannot go on, or nil if it is not needed any more.
	gaveUp chan error
}

// group is one Raft group at this node.
type group struct {
	weft  *weft.Group
	id    uint64
	log   *storage.Group
	store *kv.Store
	host  *rawnode.Host
	// Only follow uses these two.
	told      toldWish
	wasMember bool

	writes, readTimes page.Histogram // of calls that ended well
	recent            recentEntries
}

func newNode(cfg Config) *node {
	n := &node{entrance: newEntrance(cfg), settled: make(chan struct{}), watches: newWatches(), gaveUp: make(chan error, 1)}
	if cfg.Orders != nil {
		n.policy = new(policySwitch)
	}
	return n
}

// open opens all parts. The network comes first: that a port is taken is found
// before anything is written.
func (n *node) open(ctx context.Context) error {
	for _, step := range []func() error{n.listen, n.openData, n.openTraces, n.openNode, n.openStore, n.newServer, func() error { return n.openGroups(ctx) }} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// openData checks whose directory it is, how many groups it has, and whether
// there is room for more.
func (n *node) openData() error {
	err := checkRoom(n.cfg, room.Free)
	if err == nil {
		err = checkSettings(n.cfg)
	}
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	return nil
}

// openNode opens what the groups share: log, transport, and addresses.
func (n *node) openNode() (err error) {
	balance := n.cfg.BalanceInterval
	if balance == 0 || n.cfg.Groups == 1 {
		balance = -1
	}
	n.weft, err = weft.Open(weft.Options{
		Cluster: n.cfg.Cluster, ID: n.cfg.ID, Dir: n.cfg.Data, Listen: n.cfg.listen(), Peers: n.cfg.Peers, Join: n.cfg.Join, TLS: weft.TLS(n.cfg.TLS),
		TickInterval: n.cfg.Tick, ElectionTicks: n.cfg.ElectionTicks, BudgetBytes: queueBytes, CatchUpBytes: n.cfg.CatchUpBytes, Balance: balance, LeaderWeight: n.cfg.LeaderWeight, Zone: n.cfg.Zone, ExitAfterHang: n.cfg.ExitAfterHang,
		Metrics: n.metrics, Calls: n.traces.wrap, Logger: n.cfg.Log,
		ConfigureLog:       func(o *storage.Options) { o.FS = n.cfg.StuckDisk.FS() },
		ConfigureTransport: func(c *transport.Config) { c.Listener, c.Egress = n.members, n.cfg.Egress },
	})
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	n.placement = n.weft.Placement()
	n.then(func() error { return closeWeft(n.weft) })
	for id := range uint64(n.cfg.Groups) {
		g := &group{id: id + 1}
		if g.log, err = n.weft.Engine().Group(g.id); err != nil {
			return fmt.Errorf("--data: log of group %d: %w", g.id, err)
		}
		n.groups = append(n.groups, g)
	}
	return nil
}

func (n *node) openStore() (err error) {
	n.db, err = kv.Open(filepath.Join(n.cfg.Data, "state"), kv.Identity{Cluster: n.cfg.Cluster, Node: n.cfg.ID}, kv.Options{FS: n.cfg.StuckDisk.FS(), Logf: n.cfg.logf("state")})
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	n.then(n.db.Close)
	for _, g := range n.groups {
		if g.store, err = n.db.Group(g.id); err != nil {
			return fmt.Errorf("--data: state of group %d: %w", g.id, err)
		}
	}
	return nil
}

// logf lets a part write to the log.
func (c Config) logf(part string) func(string, ...any) {
	return func(format string, args ...any) {
		c.Log.Info(fmt.Sprintf(format, args...), "part", part)
	}
}

func (n *node) openGroups(ctx context.Context) error {
	if last, err := n.groups[0].log.LastIndex(); !n.cfg.Join && err == nil && last == 0 {
		n.cfg.Log.Info("begins a cluster; to join one that runs, use --join with an empty directory", "members", n.cfg.ids())
	}
	if err := n.noteLeases(ctx); err != nil {
		return err
	}
	for _, g := range n.groups {
		err := n.checkDense(g)
		if err != nil {
			return err
		}
		if g.weft, err = n.weft.Group(g.id, asked{g.store, n.service}, weft.Configure(n.configure)); err != nil {
			return fmt.Errorf("start the node: %w", err)
		}
		g.host = g.weft.Host()
		g.host.Densify(n.cfg.Coding == CodingOff)
		n.then(func() error { return stopGroup(g.weft) })
	}
	return nil
}

// configure sets how the host of a group works.
func (n *node) configure(c *rawnode.Config) {
	r := &c.Replica
	if n.cfg.Core == CoreUpstream {
		r.Core = rawnode.Upstream
	}
	r.HeartbeatTick, r.MaxCommandBytes = n.cfg.HeartbeatTicks, kv.MaxCommandBytes
	r.Coding, r.Leases = n.coding(), n.cfg.leases()
	r.RetainBytes = max(1, n.cfg.RetainBytes/uint64(n.cfg.Groups))
}

// checkDense refuses a log with coded entries if the node cannot read them.
func (n *node) checkDense(g *group) error {
	if n.cfg.codes() {
		return nil
	}
	index, err := rawnode.FindCoded(g.log, 0)
	if err != nil {
		return fmt.Errorf("--data: log of group %d: %w", g.id, err)
	}
	if index != 0 {
		return fmt.Errorf("--core %s --coding %s: cannot read the log of group %d, whose entry %d is coded: run all nodes with --core %s --coding %s until status says of each that no coded entry is left",
			n.cfg.Core, n.cfg.Coding, g.id, index, CoreWeft, CodingOff)
	}
	return nil
}

// closeWeft closes what the groups share. A log whose disk hangs is left to the end of the process.
func closeWeft(n *weft.Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return n.Close(ctx)
}

// stopGroup makes sure that a group has ended.
func stopGroup(g *weft.Group) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = g.Close(ctx) // serve stopped it in good order, or it never served
	return nil
}

func (n *node) newServer() error {
	n.service = n.newService()
	if err := n.newServers(n.service, redisBackend{n.service}); err != nil {
		return err
	}
	kvpb.RegisterAdminServer(n.server, &admin{n: n, turn: make(chan struct{}, 1)})
	return nil
}

// serve answers clients until ctx ends or a part fails. Then it refuses what
// is new and lets what is under way end.
func (n *node) serve(ctx context.Context) error {
	n.cfg.Log.Info("serving", "id", n.cfg.ID, "cluster", n.cfg.Cluster, "core", n.cfg.Core, "groups", n.cfg.Groups, "leases", n.cfg.Leases,
		"clients", n.clients.Addr().String(), "peers", n.cfg.listen(), "pid", os.Getpid())
	var running sync.WaitGroup
	background, stopBackground := context.WithCancel(context.Background())
	running.Go(func() { n.flush(background) })
	running.Go(func() { n.follow(background) })
	running.Go(func() { n.expire(background) })
	if n.web != nil {
		running.Go(func() { n.serveWeb(background) })
	}
	if n.cfg.Orders != nil {
		running.Go(func() { n.obey(background) })
	}
	served := make(chan error, 2)
	if n.front != nil {
		running.Go(func() { served <- serveFront(n.front, n.redis) })
	}
	running.Go(func() { served <- n.server.Serve(n.clients) })
	for _, g := range n.groups {
		running.Go(func() {
			select {
			case <-g.host.Done():
				n.giveUp(n.gaveUpFor(g, g.host.Err()))
			case <-background.Done():
			}
		})
	}
	var err error
	patience := time.Duration(0) // nobody waits for what cannot end well
	select {
	case <-ctx.Done():
		n.cfg.Log.Info("stopping", "reason", context.Cause(ctx))
		patience = stopTimeout
	case err = <-n.gaveUp:
	case <-n.db.Failed():
		err = fmt.Errorf("the node gave up: %w", n.db.Err())
	case err = <-served:
		err = fmt.Errorf("serve clients: %w", err)
	}
	n.health.Shutdown()
	n.watches.end()
	stopBackground()
	deadline := time.Now().Add(patience)
	n.stopHosts(deadline)
	if n.front != nil {
		err = errors.Join(err, n.front.Close())
	}
	stopServer(n.server, max(clientsTimeout, time.Until(deadline)))
	running.Wait()
	return err
}

// giveUp ends serve. The first reason counts.
func (n *node) giveUp(reason error) {
	select {
	case n.gaveUp <- reason:
	default:
	}
}

// stopHosts stops the hosts while clients are still served, so that they hear
// of it: what is under way ends, and what is new is refused.
func (n *node) stopHosts(deadline time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	var stopping sync.WaitGroup
	for _, g := range n.groups {
		stopping.Go(func() {
			if err := g.weft.Close(ctx); err != nil {
				n.cfg.Log.Warn("not everything ended in time", "group", g.id, "error", err)
			}
		})
	}
	stopping.Wait()
}

// flush makes the state durable now and then, so that an idle node has little to
// replay after a crash. A busy one flushes by itself.
func (n *node) flush(ctx context.Context) {
	t := time.NewTicker(n.cfg.FlushInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := n.flushNow(); err != nil {
			n.cfg.Log.Error("flush the state", "error", err)
		}
	}
}

// flushNow makes the state durable unless it is.
func (n *node) flushNow() error {
	for _, g := range n.groups {
		durable, err := g.store.Durable()
		if err != nil {
			return err
		}
		if durable < g.store.Applied() {
			return n.db.Flush() // of all groups
		}
	}
	return nil
}
