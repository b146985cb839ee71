// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

const (
	// stopTimeout bounds an orderly stop; what remains is cut off.
	stopTimeout = 5 * time.Second
)

// Run runs a node until ctx ends, and then stops it in good order. An error
// says why it could not start, or what made it give up.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	n := &node{cfg: cfg, started: time.Now()}
	if err := n.open(); err != nil {
		return errors.Join(err, n.close())
	}
	err := n.serve(ctx)
	return errors.Join(err, n.close())
}

// node is a node's parts, in the order in which they are opened. closeAll closes
// those that were, in the opposite order.
type node struct {
	cfg     Config
	started time.Time

	clients  net.Listener
	web      net.Listener // nil without --http-listen
	engine   *storage.Engine
	peers    *transport.TCP
	db       *kv.DB
	groups   []*group
	server   *grpc.Server
	health   *health.Server
	closeAll []func() error
}

// group is one Raft group at this node.
type group struct {
	id    uint64
	log   *storage.Group
	store *kv.Store
	host  *rawnode.Host
}

// open opens all parts. The network comes first: that a port is taken is found
// before anything is written.
func (n *node) open() error {
	for _, step := range []func() error{n.listen, n.openLog, n.openStore, n.startHost} {
		if err := step(); err != nil {
			return err
		}
	}
	n.newServer()
	return nil
}

// then has f called by close.
func (n *node) then(f func() error) { n.closeAll = append(n.closeAll, f) }

func (n *node) close() error {
	var errs []error
	for i := len(n.closeAll) - 1; i >= 0; i-- {
		errs = append(errs, n.closeAll[i]())
	}
	return errors.Join(errs...)
}

func (n *node) listen() (err error) {
	if n.clients, err = listen("client-listen", n.cfg.ClientListen); err != nil {
		return err
	}
	n.then(func() error { return closeListener(n.clients) })
	if n.cfg.HTTPListen != "" {
		if n.web, err = listen("http-listen", n.cfg.HTTPListen); err != nil {
			return err
		}
		n.then(func() error { return closeListener(n.web) })
	}
	flag := "listen"
	if n.cfg.Listen == "" {
		flag = "peers"
	}
	l, err := listen(flag, n.cfg.listen())
	if err != nil {
		return err
	}
	n.peers, err = transport.New(transport.Config{
		Cluster: n.cfg.Cluster, Node: n.cfg.ID, Listener: l, Peers: n.cfg.Peers,
		Logger: n.cfg.Log.With("part", "transport"),
	})
	if err != nil {
		return errors.Join(fmt.Errorf("start the transport: %w", err), l.Close())
	}
	n.then(n.peers.Close)
	return nil
}

// listen listens on the address of a flag.
func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w; stop what uses the address, or choose another", flag, err)
	}
	return l, nil
}

// closeListener closes a listener that a server may have closed before.
func closeListener(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (n *node) openLog() (err error) {
	dir := filepath.Join(n.cfg.Data, "log")
	n.engine, err = storage.Open(dir, storage.Options{
		Identity: storage.Identity{Cluster: n.cfg.Cluster, Node: n.cfg.ID},
		Logf:     n.logf("log"),
	})
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	n.then(n.engine.Close)
	g := &group{id: 1}
	if g.log, err = n.engine.Group(g.id); err != nil {
		return err
	}
	n.groups = []*group{g}
	return nil
}

func (n *node) openStore() (err error) {
	n.db, err = kv.Open(filepath.Join(n.cfg.Data, "state"), kv.Options{
		Identity: kv.Identity{Cluster: n.cfg.Cluster, Node: n.cfg.ID},
		Logf:     n.logf("state"),
	})
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	n.then(n.db.Close)
	g := n.groups[0]
	g.store, err = n.db.Group(g.id)
	return err
}

// logf lets a part write to the log.
func (n *node) logf(part string) func(string, ...any) {
	return func(format string, args ...any) {
		n.cfg.Log.Info(fmt.Sprintf(format, args...), "part", part)
	}
}

func (n *node) startHost() (err error) {
	core := rawnode.Weft
	if n.cfg.Core == CoreUpstream {
		core = rawnode.Upstream
	}
	g := n.groups[0]
	g.host, err = rawnode.New(rawnode.Config{
		Replica: rawnode.ReplicaConfig{
			ID: n.cfg.ID, Group: g.id, Core: core, Log: g.log,
			Peers:           n.cfg.ids(),
			ElectionTick:    n.cfg.ElectionTicks,
			HeartbeatTick:   n.cfg.HeartbeatTicks,
			MaxCommandBytes: kv.MaxCommandBytes,
			RetainBytes:     n.cfg.RetainBytes,
		},
		StateMachine: g.store,
		Transport:    n.peers,
		TickInterval: n.cfg.Tick,
		Logger:       n.cfg.Log.With("part", "host"),
	})
	if err != nil {
		return fmt.Errorf("start the node: %w", err)
	}
	return nil
}

func (n *node) newServer() {
	n.server = grpc.NewServer(
		grpc.MaxRecvMsgSize(client.MaxMessageBytes),
		grpc.MaxSendMsgSize(client.MaxMessageBytes),
	)
	kvpb.RegisterKVServer(n.server, &service{host: hostCalls{n.groups[0].host}, store: n.groups[0].store, status: n.status})
	n.health = health.NewServer()
	grpc_health_v1.RegisterHealthServer(n.server, n.health)
	n.health.SetServingStatus(kvpb.KV_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	reflection.Register(n.server)
}

// serve answers clients until ctx ends or the host fails. Then it refuses what
// is new and lets what is under way end.
func (n *node) serve(ctx context.Context) error {
	n.cfg.Log.Info("serving", "id", n.cfg.ID, "cluster", n.cfg.Cluster, "core", n.cfg.Core,
		"clients", n.clients.Addr().String(), "peers", n.cfg.listen(), "pid", os.Getpid())
	var running sync.WaitGroup
	background, stopBackground := context.WithCancel(context.Background())
	running.Go(func() { n.flush(background) })
	if n.web != nil {
		running.Go(func() { n.serveWeb(background) })
	}
	served := make(chan error, 1)
	running.Go(func() { served <- n.server.Serve(n.clients) })
	var err error
	select {
	case <-ctx.Done():
		n.cfg.Log.Info("stopping", "reason", context.Cause(ctx))
	case <-n.groups[0].host.Done():
		err = fmt.Errorf("the node gave up: %w", n.alive())
	case <-n.db.Failed():
		err = fmt.Errorf("the node gave up: %w", n.db.Err())
	case err = <-served:
		err = fmt.Errorf("serve clients: %w", err)
	}
	n.health.Shutdown()
	stopBackground()
	err = errors.Join(err, n.stopHost())
	n.stopServer()
	running.Wait()
	return err
}

// stopHost stops the host while clients are still served, so that they hear of
// it: what is under way ends, and what is new is refused.
func (n *node) stopHost() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := n.groups[0].host.Stop(ctx); err != nil {
		n.cfg.Log.Warn("not everything ended in time", "error", err)
	}
	return nil
}

func (n *node) stopServer() {
	done := make(chan struct{})
	go func() {
		n.server.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(stopTimeout):
		n.server.Stop()
		<-done
	}
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
		store := n.groups[0].store
		durable, err := store.Durable()
		if err == nil && durable < store.Applied() {
			err = store.Flush()
		}
		if err != nil {
			n.cfg.Log.Error("flush the state", "error", err)
		}
	}
}

// hostCalls is the host as the service wants to see it.
type hostCalls struct{ host *rawnode.Host }

func (h hostCalls) Propose(ctx context.Context, data []byte) (uint64, any, error) {
	r, err := h.host.Propose(ctx, data)
	return r.Index, r.Value, err
}

func (h hostCalls) Read(ctx context.Context) error {
	_, err := h.host.Read(ctx)
	return err
}
