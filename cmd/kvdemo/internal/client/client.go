// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package client talks to the nodes of kvdemo.
//
// A [Client] knows several nodes and stays with a node that answers. After a failure
// the client goes on to the next node, until the deadline. A write carries a number
// of its session, and is applied once, however often and wherever the client sends
// the write. So the outcome of a write is unknown only if the deadline passes
// without an answer.
//
// Large values go in parts, and each part is tried again by itself.
//
// Every call ends by its deadline; a call without a deadline ends by the client's
// Timeout.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/address"
)

// DefaultTimeout bounds a call that has no deadline of its own.
const DefaultTimeout = 10 * time.Second

const (
	// connectTimeout is how long one node may take to accept a connection
	// before the next is tried.
	connectTimeout = time.Second
	// Each node gets at least minAttempt to answer. While other nodes are left, a node gets at
	// most maxAttempt, because the node may be cut off from the others.
	minAttempt = 500 * time.Millisecond
	maxAttempt = 3 * time.Second
	// pause follows a round in which no node took the call.
	pause = 50 * time.Millisecond
)

const (
	// MaxMessageBytes bounds a gRPC message to a node: a value, a key, and what is around them.
	MaxMessageBytes = kv.MaxInlineBytes + kv.MaxKeyBytes + 1<<10
	// MaxReplyBytes bounds a gRPC message to a client. The largest has the results of a transaction.
	MaxReplyBytes = kv.MaxTxnReplyBytes + kv.MaxTxnItems*64
	// PingTime is how long a connection with a call may be silent before the client asks whether the node is
	// there, and PingTimeout how long the answer may take before the connection ends: a watch, which may be silent for
	// days, goes on at another node. By TCP alone that takes two hours.
	PingTime, PingTimeout = 30 * time.Second, 20 * time.Second
)

// Config configures [New].
type Config struct {
	// Endpoints are the nodes' client addresses, host:port, at least one.
	Endpoints []string
	// Timeout bounds a call that has no deadline; 0 means DefaultTimeout.
	Timeout time.Duration
	// First is the number of the endpoint that is asked first, counted from 0 and
	// modulo the number of endpoints. Clients with the same list spread over the nodes
	// by different values of First.
	First int
	// TLS, unless nil, is how to talk to nodes that want certificates.
	TLS *tls.Config
}

// Validate returns an error that names every mistake, or nil.
func (c Config) Validate() error {
	var errs []error
	if len(c.Endpoints) == 0 {
		errs = append(errs, errors.New("endpoints: none given, want host:port or several of them"))
	}
	for _, e := range c.Endpoints {
		if err := CheckAddress(e); err != nil {
			errs = append(errs, fmt.Errorf("endpoints: %w", err))
		}
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout: %v, want more than 0 (0 means %v)", c.Timeout, DefaultTimeout))
	}
	return errors.Join(errs...)
}

// CheckAddress returns nil, or what is wrong with an address host:port.
func CheckAddress(at string) error {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return fmt.Errorf("address %q: want host:port", at)
	}
	if host != "" && !address.IsHost(host) {
		return fmt.Errorf("address %q: host %q, want an IP address or a name of letters, digits, '-', '_' and '.'", at, host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("address %q: port %q, want 1 to 65535", at, port)
	}
	return nil
}

// CheckLoopback returns nil if only this machine reaches an address host:port, or errOpen.
// A name is not looked up: another machine may answer to it tomorrow.
func CheckLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return nil // a mistake is for CheckAddress
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s %w", address, errOpen)
}

// errOpen says that other machines reach an address.
var errOpen = errors.New("is open to other machines")

// Client is a connection to several nodes. Its methods may be called from any
// goroutine.
type Client struct {
	cfg       Config
	conns     []*grpc.ClientConn
	witnesses []witness    // of conns
	next      atomic.Int64 // index of the endpoint to ask first

	sessions sessions
}

// New makes a client, which connects at its first call.
func New(cfg Config) (*Client, error) { return open(cfg) }

func open(cfg Config, more ...grpc.DialOption) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	c := &Client{cfg: cfg}
	c.next.Store(int64(cfg.First % len(cfg.Endpoints)))
	secure := insecure.NewCredentials()
	if cfg.TLS != nil {
		secure = credentials.NewTLS(cfg.TLS)
	}
	for _, e := range cfg.Endpoints {
		w := newWitness(secure)
		conn, err := grpc.NewClient("passthrough:///"+e, append(append(bounds(), grpc.WithTransportCredentials(w), grpc.WithDisableRetry()), more...)...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("endpoint %s: %w", e, err), c.Close())
		}
		c.conns, c.witnesses = append(c.conns, conn), append(c.witnesses, w)
	}
	return c, nil
}

// bounds are the options by which a connection takes no larger messages than there are, and ends if nobody is there.
func bounds() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxReplyBytes), grpc.MaxCallSendMsgSize(MaxMessageBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: PingTime, Timeout: PingTimeout}),
	}
}

// Close closes the connections.
func (c *Client) Close() error {
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// Written is where a write took effect: in the log of the key's group, and among the group's
// changes. Position is nil if a retry found the write done.
type Written struct {
	Index    uint64
	Position *kvpb.Position
}

// Put sets a key to a value.
func (c *Client) Put(ctx context.Context, key string, value []byte) (Written, error) {
	if len(value) > kv.MaxInlineBytes {
		return c.PutFrom(ctx, key, bytes.NewReader(value), int64(len(value)))
	}
	resp, err := write(ctx, c, key, func(ctx context.Context, kv kvpb.KVClient, s *kvpb.Session) (*kvpb.PutResponse, error) {
		return kv.Put(ctx, &kvpb.PutRequest{Key: key, Value: value, Session: s})
	})
	return Written{resp.GetIndex(), resp.GetPosition()}, err
}

// Delete removes a key, and returns whether the key had a value.
func (c *Client) Delete(ctx context.Context, key string) (at Written, existed bool, err error) {
	resp, err := write(ctx, c, key, func(ctx context.Context, kv kvpb.KVClient, s *kvpb.Session) (*kvpb.DeleteResponse, error) {
		return kv.Delete(ctx, &kvpb.DeleteRequest{Key: key, Session: s})
	})
	return Written{resp.GetIndex(), resp.GetPosition()}, resp.GetExisted(), err
}

// Get returns the value of a key, of any size. No value is kv.ErrNotFound.
func (c *Client) Get(ctx context.Context, req *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	if err := kv.CheckKey(req.GetKey()); err != nil {
		return nil, err
	}
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	resp, err := ask(ctx, c, kvpb.KVClient.Get, req)
	if !errors.Is(err, kv.ErrLarge) {
		return resp, err
	}
	var value bytes.Buffer
	head, err := c.GetTo(ctx, req, &value)
	return &kvpb.GetResponse{Value: value.Bytes(), Applied: head.GetApplied(), Served: head.GetServed(), Position: head.GetPosition(), Revision: head.GetRevision()}, err
}

// List returns one page of keys.
func (c *Client) List(ctx context.Context, req *kvpb.ListRequest) (*kvpb.ListResponse, error) {
	return ask(ctx, c, kvpb.KVClient.List, req)
}

// NodeStatus is the status of the node at one endpoint, or the reason why there is none.
type NodeStatus = Answer[*kvpb.StatusResponse]

// Status asks every endpoint at once.
func (c *Client) Status(ctx context.Context) []NodeStatus {
	return everywhere(ctx, c, func(ctx context.Context, conn *grpc.ClientConn) (*kvpb.StatusResponse, error) {
		return kvpb.NewKVClient(conn).Status(ctx, &kvpb.StatusRequest{})
	})
}

// Health asks every endpoint at once whether its node serves clients: the node must
// have room to write, and answer a linearizable read of all its groups. The response is
// how long the read took. Room is asked for first, because reads may wait for room.
func (c *Client) Health(ctx context.Context) []Answer[time.Duration] {
	return everywhere(ctx, c, func(ctx context.Context, conn *grpc.ClientConn) (time.Duration, error) {
		s, err := kvpb.NewKVClient(conn).Status(ctx, &kvpb.StatusRequest{})
		if err != nil {
			return 0, err
		}
		if s.GetStalled() != "" {
			return 0, fmt.Errorf("it cannot write: %s", s.GetStalled())
		}
		begin := time.Now()
		_, err = kvpb.NewKVClient(conn).List(ctx, &kvpb.ListRequest{Limit: 1})
		return time.Since(begin), err
	})
}

// deadline gives ctx the client's timeout if it has no deadline.
func (c *Client) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// connect waits until the connection to endpoint i is up. What fails here was
// never sent.
func (c *Client) connect(ctx context.Context, i int) error {
	conn := c.conns[i]
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	tried := false
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.Idle:
			tried = true
			conn.Connect()
		case connectivity.Connecting:
			tried = true
		case connectivity.TransientFailure:
			if tried {
				return c.unreachable(i, "")
			}
			// An old failure, and gRPC waits before it tries again: try now.
			tried = true
			conn.ResetConnectBackoff()
		case connectivity.Shutdown:
			return errors.New("the client is closed")
		}
		if !conn.WaitForStateChange(ctx, state) {
			return c.unreachable(i, " in time")
		}
	}
}

// unreachable is the error for an endpoint without a connection, with the reason if
// the reason is known.
func (c *Client) unreachable(i int, when string) error {
	if reason := c.witnesses[i].reason(); reason != nil {
		return fmt.Errorf("%w (%w%s)", reason, errUnreachable, when)
	}
	return fmt.Errorf("%w%s", errUnreachable, when)
}
