// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/resp"
	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/quiet"
	"github.com/weftraft/weft/internal/strangers"
	"github.com/weftraft/weft/rawnode/metrics"
)

// entrance is where clients come in, and what is counted of them: the same at a node
// and at a gateway. closeAll closes what was opened, in the opposite order.
type entrance struct {
	cfg     Config
	started time.Time

	clients net.Listener
	redis   net.Listener // nil without --resp
	web     net.Listener // nil without --http-listen
	members net.Listener // for peers; weft's once it is open
	metrics *metrics.Set
	traces  *traces // nil without --otlp
	server  *grpc.Server
	front   *resp.Server // nil without --resp
	health  *health.Server

	refused  [secure.NumRefusals]atomic.Uint64 // clients
	lines    quiet.Log[secure.Refusal]
	closeAll []func() error
}

func newEntrance(cfg Config) *entrance {
	return &entrance{cfg: cfg, started: time.Now(), metrics: metrics.NewSet()}
}

// then has f called by close.
func (e *entrance) then(f func() error) { e.closeAll = append(e.closeAll, f) }

func (e *entrance) close() error {
	var errs []error
	for i := len(e.closeAll) - 1; i >= 0; i-- {
		errs = append(errs, e.closeAll[i]())
	}
	return errors.Join(errs...)
}

func (e *entrance) listen() error {
	members := "listen"
	if e.cfg.Listen == "" {
		members = "peers"
	}
	for _, at := range []struct {
		listener      *net.Listener
		flag, address string
	}{
		{&e.clients, "client-listen", e.cfg.ClientListen},
		{&e.redis, "resp", e.cfg.RespListen},
		{&e.web, "http-listen", e.cfg.HTTPListen},
		{&e.members, members, e.cfg.listen()},
	} {
		if at.address == "" {
			continue
		}
		l, err := net.Listen("tcp", at.address)
		if err != nil {
			return fmt.Errorf("--%s: %w; stop what uses the address, or choose another", at.flag, err)
		}
		*at.listener = l
		e.then(func() error { return closeListener(l) })
	}
	return nil
}

// closeListener closes a listener that a server may have closed before.
func closeListener(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (e *entrance) openTraces() (err error) {
	e.traces, err = e.cfg.openTraces()
	e.then(e.traces.close)
	return err
}

// newServers makes what answers clients, by gRPC and by the protocol of Redis.
func (e *entrance) newServers(kv kvpb.KVServer, redis resp.Backend, more ...grpc.ServerOption) error {
	clients := &secure.Server{
		Node: e.cfg.ID, Admin: kvpb.Admin_ServiceDesc.ServiceName, Refused: e.clientRefused,
		Strangers: strangers.New(strangers.Limit, strangerConns, rand.IntN),
	}
	if e.cfg.TLS != (certs.Files{}) {
		var err error
		if clients.Keyring, err = certs.NewKeyring(e.cfg.TLS); err != nil {
			return fmt.Errorf("--tls-cert, --tls-key, --tls-ca: %w", err)
		}
	}
	options := append(append(clients.Options(), e.traces.options()...), more...)
	e.server = grpc.NewServer(append(options, clientBounds()...)...)
	kvpb.RegisterKVServer(e.server, kv)
	if e.redis != nil {
		e.front = newFront(redis, e.cfg, clients)
	}
	e.health = health.NewServer()
	grpc_health_v1.RegisterHealthServer(e.server, e.health)
	e.health.SetServingStatus(kvpb.KV_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	reflection.Register(e.server)
	return nil
}

// maxStreams bounds the calls of a connection; further calls wait at the client.
const maxStreams = 1024

// clientBounds returns the options by which no client takes more than its share, and none that is gone keeps it. A
// client on a machine that died, or one that was stopped, is noticed by asking.
func clientBounds() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(client.MaxMessageBytes), grpc.MaxSendMsgSize(client.MaxReplyBytes), grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: client.PingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: client.PingTime / 3, PermitWithoutStream: true}),
	}
}

// clientRefused counts and logs that a client was refused, by its certificate or for
// want of one.
func (e *entrance) clientRefused(why secure.Refusal, from net.Addr, err error) {
	e.refused[why].Add(1)
	e.lines.Log(e.cfg.Log, slog.LevelWarn, why, "client refused", "reason", why.String(), "from", from.String(), "error", err)
}

// stopServer lets calls of clients end, within a limit.
func stopServer(server *grpc.Server, limit time.Duration) {
	done := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(limit):
		server.Stop() // which does not wait for calls that do not end
	}
}
