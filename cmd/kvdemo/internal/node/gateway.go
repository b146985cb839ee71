// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
)

// gateway serves clients without data: it batches their writes, and asks nodes the rest.
type gateway struct {
	*entrance
	writes
	weft   *weft.Node
	groups []*gate        // group 1 first
	reads  page.Histogram // questions of all groups, which group 1 carries
	secret sessionsSecret
	polls  atomic.Int64 // questions that wait at nodes for something to tell
}

const (
	// maxPolls bounds the polls of a gateway, so that they leave room for other questions at nodes.
	maxPolls = 1024
	// pollPause is between attempts to reach a node.
	pollPause = 100 * time.Millisecond
)

// RunGateway runs a gateway until ctx ends. Of the configuration count ID, Cluster, Peers, which are nodes to ask,
// Listen, Advertise, Zone, ClientListen, RespListen, RespPassword, HTTPListen, Pprof, OTLP, OTLPSample, TLS, Unprotected, Tick, ElectionTicks and Log.
func RunGateway(ctx context.Context, cfg Config) (err error) {
	if err := cfg.ValidateGateway(); err != nil {
		return err
	}
	g := &gateway{entrance: newEntrance(cfg)}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // it was stopped while it waited for a node
		}
		return err
	}
	return g.serve(ctx)
}

func (g *gateway) open(ctx context.Context) error {
	for _, step := range []func() error{g.listen, g.openTraces, g.openNode, func() error { return g.openGroups(ctx) }, g.newServer} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (g *gateway) openNode() (err error) {
	c := g.cfg
	g.weft, err = weft.Open(weft.Options{
		Gateway: true, Cluster: c.Cluster, ID: c.ID, Listen: c.Listen, Advertise: c.Advertise, Peers: c.Peers, Zone: c.Zone, TLS: weft.TLS(c.TLS), TickInterval: c.Tick, ElectionTicks: c.ElectionTicks,
		BudgetBytes: queueBytes, Metrics: g.metrics, Calls: g.traces.wrap, Logger: c.Log, ConfigureTransport: func(c *transport.Config) { c.Listener = g.members },
	})
	if err != nil {
		return err
	}
	g.then(func() error { return closeWeft(g.weft) })
	return nil
}

// ValidateGateway returns an error that names every mistake in the configuration of a gateway by its flag, or nil.
func (c Config) ValidateGateway() error {
	var errs mistakes
	bad := errs.add
	errs.check(c.ID > 0 && c.ID <= weft.MaxID, "id", c.ID, "1 to %d, and one that no node has", uint64(weft.MaxID))
	errs.check(c.Cluster > 0, "cluster", c.Cluster, "1 or more, that of the nodes")
	if len(c.Peers) == 0 {
		bad("peers", "none", "nodes of the cluster as id=host:port,...")
	} else if at, ok := c.Peers[c.ID]; ok {
		bad("id", c.ID, "one that no node has: --peers has the node %d=%s", c.ID, at)
	}
	errs.check(c.Listen != "", "listen", "none", "an address for nodes")
	if c.Advertise != "" {
		if err := client.CheckAddress(c.Advertise); err != nil {
			errs = append(errs, fmt.Errorf("--advertise: %w", err))
		}
	}
	errs.check(c.Tick >= MinTick && c.Tick <= MaxTick, "tick", c.Tick, "%v to %v", MinTick, MaxTick)
	errs.check(c.ElectionTicks >= 2 && c.ElectionTicks <= MaxElectionTicks, "election-ticks", c.ElectionTicks, "2 to %d", MaxElectionTicks)
	errs = append(append(errs, c.validateTraces()...), c.validateProtection()...)
	return errors.Join(append(errs, c.validateAddresses()...)...)
}

// gate is a group at a gateway.
type gate struct {
	*weft.Group
	writes page.Histogram
}

// propose implements proposer.
func (g *gate) propose(ctx context.Context, c kv.Command) (uint64, kv.Result, error) {
	begun := time.Now()
	return proposeThawed(ctx, g, c, func(command []byte) (uint64, kv.Result, error) {
		done, err := g.Propose(ctx, command)
		if err != nil {
			return 0, kv.Result{}, err
		}
		g.writes.Observe(time.Since(begun))
		r, err := readResult(done.Value)
		return done.Index, r, err
	})
}

// readResult reads the result that a node has sent of a command, which was applied whatever the bytes are.
func readResult(value any) (kv.Result, error) {
	b, _ := value.([]byte)
	r, err := kv.DecodeResult(b)
	if err != nil {
		err = &rawnode.CallError{Op: "propose", Verdict: rawnode.ErrUnknown, Cause: fmt.Errorf("the command was applied, and the result of a node cannot be read, does it run a later version? %w", err)}
	}
	return r, err
}

// openGroups asks nodes how many groups there are, until one answers, and opens them.
func (g *gateway) openGroups(ctx context.Context) error {
	open := func() error {
		group, err := g.weft.Group(uint64(len(g.groups)+1), nil)
		at := &gate{Group: group}
		g.groups, g.proposers = append(g.groups, at), append(g.proposers, at)
		return err
	}
	if err := open(); err != nil {
		return err
	}
	var count kvpb.ListRequest
	for {
		err := g.ask(ctx, askGroups, &kvpb.StatusRequest{}, &count)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		g.cfg.Log.Warn("no node has answered yet", "peers", g.cfg.ids(), "error", err)
		pause(ctx)
	}
	if n := count.GetLimit(); n < 1 || n > MaxGroups {
		return fmt.Errorf("a node says that there are %d groups, want 1 to %d", n, MaxGroups)
	}
	for len(g.groups) < int(count.GetLimit()) {
		if err := open(); err != nil {
			return err
		}
	}
	g.writes.await = func(context.Context) error { return nil }
	g.writes.secret = g.secret.of(g.proposers[0])
	g.writes.enable = func(ctx context.Context, group uint64, level int) error {
		return g.ask(ctx, askEnable, &kvpb.Position{Group: group, Revision: uint64(level)}, &kvpb.StatusRequest{})
	}
	return nil
}

// ask asks a node.
func (g *gateway) ask(ctx context.Context, q question, request, response proto.Message) error {
	ctx, cancel := withMargin(ctx)
	defer cancel()
	b, err := ask(q, request)
	if err != nil {
		return toStatus(err)
	}
	begun := time.Now()
	answer, err := g.groups[0].Query(ctx, b, weft.Local())
	if err != nil {
		return toStatus(err)
	}
	if q != askWatch {
		g.reads.Observe(time.Since(begun))
	}
	return readAnswer(answer, response)
}

// poll asks a node that waits until it has something to tell. another says that none is to be had now, and that
// the gateway has paused: another poll may find one.
func (g *gateway) poll(ctx context.Context, q question, request, response proto.Message) (another bool, err error) {
	defer g.polls.Add(-1)
	if g.polls.Add(1) > maxPolls {
		return false, status.Errorf(codes.ResourceExhausted, "watches and subscribers have %d questions at nodes, one for each group, want at most that: close some, or use another gateway", maxPolls)
	}
	err = g.ask(ctx, q, request, response)
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		pause(ctx)
		return ctx.Err() == nil, ctx.Err()
	}
	return false, err
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pollPause):
	}
}

// Get implements kvpb.KVServer.
func (g *gateway) Get(ctx context.Context, req *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	resp := &kvpb.GetResponse{}
	return resp, g.ask(ctx, askGet, req, resp)
}

// List implements kvpb.KVServer.
func (g *gateway) List(ctx context.Context, req *kvpb.ListRequest) (*kvpb.ListResponse, error) {
	resp := &kvpb.ListResponse{}
	return resp, g.ask(ctx, askList, req, resp)
}

// Read implements kvpb.KVServer. The pieces of a large value must be of one: its digest says so.
func (g *gateway) Read(req *kvpb.ReadRequest, stream grpc.ServerStreamingServer[kvpb.ReadChunk]) error {
	next := proto.CloneOf(req)
	var first *kvpb.ReadChunk
	for {
		piece := &kvpb.ReadChunk{}
		if err := g.ask(stream.Context(), askRead, next, piece); err != nil {
			return err
		}
		if first == nil {
			first = piece
			head := proto.CloneOf(piece)
			head.Data = nil
			if err := stream.Send(head); err != nil {
				return err
			}
		} else if piece.GetSize() != first.GetSize() || string(piece.GetSha256()) != string(first.GetSha256()) {
			return status.Error(codes.Aborted, "the value has changed while it was read: read it again")
		}
		if len(piece.GetData()) > 0 {
			if err := stream.Send(&kvpb.ReadChunk{Data: piece.GetData()}); err != nil {
				return err
			}
		}
		if next.Offset += uint64(len(piece.GetData())); next.GetOffset() >= first.GetSize() || len(piece.GetData()) == 0 {
			return nil
		}
	}
}

// Watch implements kvpb.KVServer.
func (g *gateway) Watch(req *kvpb.WatchRequest, stream grpc.ServerStreamingServer[kvpb.WatchResponse]) error {
	begin := &kvpb.WatchRequest{}
	if err := g.ask(stream.Context(), askWatchFrom, req, begin); err != nil {
		return err
	}
	send := inPieces(stream)
	all, ctx := errgroup.WithContext(stream.Context())
	for _, at := range begin.GetAfter() {
		all.Go(func() error {
			return g.watch(ctx, &kvpb.WatchRequest{Keys: begin.GetKeys(), After: []*kvpb.Position{at}}, send)
		})
	}
	return toStatus(all.Wait())
}

// watch sends what comes behind a position, and first the position.
func (g *gateway) watch(ctx context.Context, req *kvpb.WatchRequest, send func(*kvpb.WatchResponse) error) error {
	sent := req.GetAfter()[0].GetRevision()
	if err := send(&kvpb.WatchResponse{Position: req.GetAfter()[0]}); err != nil {
		return err
	}
	for {
		found := &kvpb.WatchResponse{}
		another, err := g.poll(ctx, askWatch, req, found)
		if err != nil {
			return err
		}
		if another {
			continue
		}
		req.After[0] = found.GetPosition()
		at := req.GetAfter()[0].GetRevision()
		if len(found.GetEvents()) == 0 && at <= sent+watchProgress {
			continue
		}
		sent = at
		if err := send(found); err != nil {
			return err
		}
	}
}

// Status implements kvpb.KVServer.
func (g *gateway) Status(context.Context, *kvpb.StatusRequest) (*kvpb.StatusResponse, error) {
	s := &kvpb.StatusResponse{Id: g.cfg.ID, Cluster: g.cfg.Cluster, Role: string(weft.Gateway), UptimeMs: uint64(time.Since(g.started).Milliseconds())}
	for i, group := range g.groups {
		at := group.Gateway().Status()
		s.Groups = append(s.Groups, &kvpb.StatusResponse_Group{Id: uint64(i + 1), Role: string(weft.Gateway), Leader: at.Lead, Term: at.Term, Applied: at.Applied, Home: at.Home})
	}
	s.Leader, s.Term, s.Applied = s.Groups[0].GetLeader(), s.Groups[0].GetTerm(), s.Groups[0].GetApplied()
	return s, nil
}

func (g *gateway) newServer() error {
	return g.newServers(g, gateBackend{g}, grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Errorf(codes.Unimplemented, "process %d is a gateway: ask a node, such as those of --peers", g.cfg.ID)
	}))
}

// newWeb returns the server of --http-listen.
func (g *gateway) newWeb() *http.Server {
	return g.cfg.newWeb([]prometheus.Collector{g.metrics, clientCounts{refused: &g.refused}}, g.alive, g.ready, func(mux *http.ServeMux) {
		mux.Handle("/page/", page.Handler(page.Config{Own: g.report}))
	})
}

// report makes the gateway's report about a group, for pages of nodes that name it in --http-peers.
func (g *gateway) report(_ context.Context, ask page.Ask) (*page.Node, error) {
	if ask.Group < 1 || ask.Group > uint64(len(g.groups)) {
		return nil, fmt.Errorf("group: %d, want 1 to %d", ask.Group, len(g.groups))
	}
	at := g.groups[ask.Group-1]
	s := at.Gateway().Status()
	r := &page.Node{
		ID: g.cfg.ID, Cluster: g.cfg.Cluster, PID: os.Getpid(), UptimeMs: time.Since(g.started).Milliseconds(), Group: ask.Group, Groups: len(g.groups),
		Role: page.Gateway, Leader: s.Lead, Term: s.Term, Commit: s.Applied, Applied: s.Applied, Links: reportLinks(g.weft.Transport().Stats(), nil), Writes: at.writes.Load(),
	}
	if ask.Group == 1 {
		r.Reads = g.reads.Load()
	}
	return r, nil
}

// alive returns why the gateway is of no use any more.
func (g *gateway) alive() error {
	var errs []error
	for i, group := range g.groups {
		if group.State().Ended {
			errs = append(errs, fmt.Errorf("group %d has ended", i+1))
		}
	}
	return errors.Join(errs...)
}

// ready returns why clients had better go elsewhere for now.
func (g *gateway) ready() error {
	errs := []error{g.alive()}
	for i, group := range g.groups {
		switch s := group.Gateway().Status(); {
		case s.Home == 0:
			errs = append(errs, fmt.Errorf("group %d: no node sends results and answers", i+1))
		case s.Lead == 0:
			errs = append(errs, fmt.Errorf("group %d: no leader is known", i+1))
		}
	}
	return errors.Join(errs...)
}

func (g *gateway) serve(ctx context.Context) (err error) {
	g.cfg.Log.Info("serving", "id", g.cfg.ID, "cluster", g.cfg.Cluster, "role", weft.Gateway, "groups", len(g.groups),
		"clients", g.clients.Addr().String(), "peers", g.cfg.Listen, "pid", os.Getpid())
	if g.web != nil {
		ctx, stop := context.WithCancel(ctx)
		var web sync.WaitGroup
		web.Go(func() { g.cfg.serveWeb(ctx, g.newWeb(), g.web) })
		defer func() { stop(); web.Wait() }()
	}
	served := make(chan error, 2)
	go func() { served <- g.server.Serve(g.clients) }()
	if g.front != nil {
		go func() { served <- serveFront(g.front, g.redis) }()
	}
	select {
	case <-ctx.Done():
		g.cfg.Log.Info("stopping", "reason", context.Cause(ctx))
	case err = <-served:
		err = fmt.Errorf("serve clients: %w", err)
	}
	g.health.Shutdown()
	if g.front != nil {
		err = errors.Join(err, g.front.Close())
	}
	stopServer(g.server, stopTimeout)
	return err
}
