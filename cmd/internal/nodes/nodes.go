// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodes is kvdemo as a program of [lab.Cluster], for the demonstration and for benches.
package nodes

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

// maxCallBytes bounds a message between a client and a node.
const maxCallBytes = 5 << 20

// Program is kvdemo, or a program with the same flags and service. It asks nodes over gRPC.
type Program struct {
	lab.Serve
	mu    sync.Mutex
	conns map[string]*grpc.ClientConn // by address
}

// New returns the program that a command line runs.
func New(s lab.Serve) *Program { return &Program{Serve: s, conns: map[string]*grpc.ClientConn{}} }

// Dial returns a connection for one client, which connects when it is used.
func Dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxCallBytes), grpc.MaxCallSendMsgSize(maxCallBytes)),
		grpc.WithDisableRetry())
}

// Conn returns the connection to a node, which Close closes.
func (p *Program) Conn(n *lab.Node) (c *grpc.ClientConn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c = p.conns[n.Client]; c == nil {
		if c, err = Dial(n.Client); err == nil {
			p.conns[n.Client] = c
		}
	}
	return c, err
}

// Status implements [lab.Program].
func (p *Program) Status(ctx context.Context, n *lab.Node) (lab.Status, error) {
	c, err := p.Conn(n)
	if err != nil {
		return lab.Status{}, err
	}
	s, err := kvpb.NewKVClient(c).Status(ctx, &kvpb.StatusRequest{})
	return lab.Status{ID: s.GetId(), Leader: s.GetLeader(), Term: s.GetTerm()}, err
}

// Transfer implements [lab.Program].
func (p *Program) Transfer(ctx context.Context, leader, to *lab.Node) error {
	c, err := p.Conn(leader)
	if err != nil {
		return err
	}
	_, err = kvpb.NewAdminClient(c).Transfer(ctx, &kvpb.TransferRequest{To: uint64(to.ID)})
	return err
}

// Close closes the connections.
func (p *Program) Close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		err = errors.Join(err, c.Close())
	}
	return err
}
