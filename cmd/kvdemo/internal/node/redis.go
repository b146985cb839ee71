// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/internal/resp"
	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
)

// redisBackend is the node as clients of Redis see it.
type redisBackend struct {
	*service
}

// newFront returns the server of --resp. A client has to show the certificate that it
// would show to the gRPC service.
func newFront(backend resp.Backend, c Config, clients *secure.Server) *resp.Server {
	cfg := resp.Config{Backend: backend, Log: c.Log.With("part", "resp"), Timeout: defaultDeadline, Strangers: clients.Strangers, Password: c.RespPassword}
	if clients.Keyring != nil {
		cfg.Secure = func(raw net.Conn) (net.Conn, error) { return clients.Admit(raw) }
	}
	return resp.New(cfg)
}

// serveFront serves until the front is closed.
func serveFront(front *resp.Server, l net.Listener) error {
	if err := front.Serve(l); err != nil {
		return fmt.Errorf("serve --resp: %w", err)
	}
	return nil
}

// Groups implements resp.Backend.
func (b redisBackend) Groups() int { return len(b.groups) }

// State implements resp.Backend.
func (b redisBackend) State(group uint64) resp.State {
	return resp.Local{Store: b.groups[group-1].state()}
}

// Barrier implements resp.Backend.
func (b redisBackend) Barrier(ctx context.Context, groups ...uint64) error {
	list := make([]replicated, len(groups))
	for i, g := range groups {
		list[i] = b.groups[g-1]
	}
	_, err := b.barrier(ctx, readRequest{}, list...)
	return err
}

// Transact implements resp.Backend, for nodes and gateways.
func (s *writes) Transact(ctx context.Context, group uint64, x *kv.Txn) (kv.Result, error) {
	_, r, err := s.transact(ctx, group, kv.Command{Op: kv.OpTxn, Txn: x}, nil)
	return r, toldUnknown(err)
}

// unknownOutcome is an error of a write that may have happened.
type unknownOutcome struct{ error }

// Unknown tells the front so.
func (unknownOutcome) Unknown() bool { return true }

// Unwrap returns the host's error.
func (u unknownOutcome) Unwrap() error { return u.error }

// List implements resp.Backend.
func (b redisBackend) List(ctx context.Context, q kv.Query) (kv.Page, error) {
	if _, err := b.barrier(ctx, readRequest{span: prefixSpan(q.Prefix)}, b.groups...); err != nil {
		return kv.Page{}, err
	}
	page, _, err := b.list(q)
	return page, err
}

// Count implements resp.Backend.
func (b redisBackend) Count(ctx context.Context) (int64, error) { return b.count(ctx) }

// Info implements resp.Backend.
func (b redisBackend) Info() [][2]string {
	s := b.status()
	number := func(v uint64) string { return strconv.FormatUint(v, 10) }
	return [][2]string{
		{"node", number(s.GetId())}, {"cluster", number(s.GetCluster())}, {"groups", strconv.Itoa(len(b.groups))},
		{"group1_role", s.GetRole()}, {"group1_leader", number(s.GetLeader())}, {"group1_term", number(s.GetTerm())},
		{"group1_commit", number(s.GetCommit())}, {"group1_applied", number(s.GetApplied())},
		{"uptime_ms", number(s.GetUptimeMs())}, {"log_bytes", number(s.GetLogBytes())}, {"state_bytes", number(s.GetStateBytes())},
	}
}
