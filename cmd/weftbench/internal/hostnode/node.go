// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostnode is a node of a benchmark: a Host with a state machine that keeps nothing, which
// takes orders over HTTP. Clients are goroutines of the node, or connect to it:
//
//	node.go     the node, and its orders
//	state.go    the state machine that keeps nothing
//	gateway.go  a gateway in a node's place
//	counts.go   the work that a node has counted
//	clients.go  calls in frames, and by gRPC
//	program.go  the node as a program of lab.Cluster
package hostnode

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// Config configures a node.
type Config struct {
	ID, Cluster  uint64
	Peers        map[uint64]string
	ClientListen string // of orders
	Data         string
	Leases       bool // all voters are responders
	// BatchBytes is rawnode.ReplicaConfig.MaxBatchBytes: 1 has each command be an entry.
	BatchBytes int
	// Shorten has the log be shortened: see nothing.shortens.
	Shorten bool
	// Members, if set, are the nodes for which this process is a gateway, in the place of a Host; Peers has its own address.
	Members map[uint64]string
}

// Status is what a node says of itself.
type Status struct {
	Lead   uint64 `json:"lead"`
	Stable bool   `json:"stable"` // it answers reads by its own leases
}

// Done is what a node's own clients did.
type Done struct {
	Calls int `json:"calls"`
	// By counts reads by what served them.
	By map[string]int `json:"by"`
}

// node is a running node.
type node struct {
	part
	transport *transport.TCP
	served    [numKinds]atomic.Uint64 // calls of clients
	bytes     atomic.Uint64           // of commands in these calls
	ends      context.Context         // when the node does
}

// part is what a process is for its group: a Host, or a gateway.
type part interface {
	propose(ctx context.Context, command []byte) error
	read(ctx context.Context, o rawnode.ReadOptions) (by string, err error)
	status(ctx context.Context) (Status, error)
	count(c *Counts)
}

// host is the part of a node with a replica.
type host struct {
	*rawnode.Host
	engine *storage.Engine
}

func (h host) propose(ctx context.Context, command []byte) error {
	_, err := h.Propose(ctx, command)
	return err
}

func (h host) read(ctx context.Context, o rawnode.ReadOptions) (string, error) {
	res, err := h.ReadWith(ctx, o)
	return res.By.String(), err
}

func (h host) status(ctx context.Context) (Status, error) {
	s, err := h.LeaseStatus(ctx)
	return Status{Lead: h.Status().Lead, Stable: s.Stable}, err
}

// Run runs a node until ctx ends.
func Run(ctx context.Context, cfg Config) (err error) {
	if len(cfg.Members) > 0 {
		return runGateway(ctx, cfg)
	}
	t, err := transport.New(transport.Config{Cluster: cfg.Cluster, Node: cfg.ID, Listen: cfg.Peers[cfg.ID], Peers: cfg.Peers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	engine, err := storage.Open(cfg.Data, storage.Options{Identity: storage.Identity{Cluster: cfg.Cluster, Node: cfg.ID}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	log, err := engine.Group(1)
	if err != nil {
		return err
	}
	var peers []uint64
	for id := range uint64(len(cfg.Peers)) {
		peers = append(peers, id+1)
	}
	c := rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: cfg.ID, Group: 1, Core: rawnode.Weft, Log: log, Peers: peers, MaxBatchBytes: cfg.BatchBytes},
		StateMachine: &nothing{shortens: cfg.Shorten}, Transport: t, TickInterval: 50 * time.Millisecond,
	}
	if cfg.Leases {
		c.Replica.Leases = &raft.Leases{Wanted: []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}}
	}
	h, err := rawnode.New(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	n := &node{part: host{h, engine}, transport: t, ends: ctx}
	err = n.serve(ctx, cfg.ClientListen)
	cancel()
	stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, h.Stop(stop))
}

// serve takes orders until ctx ends.
func (n *node) serve(ctx context.Context, address string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		s, err := n.status(r.Context())
		lab.Answer(w, s, err)
	})
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, _ *http.Request) { lab.Answer(w, n.counts(), nil) })
	mux.HandleFunc("POST /listen", func(w http.ResponseWriter, r *http.Request) {
		address, err := n.listen(r.FormValue("kind"))
		lab.Answer(w, address, err)
	})
	mux.HandleFunc("POST /read", n.clients(func(ctx context.Context, _ []byte) (string, error) {
		return n.read(ctx, rawnode.ReadOptions{})
	}))
	mux.HandleFunc("POST /write", n.clients(func(ctx context.Context, command []byte) (string, error) {
		return "log", n.propose(ctx, command)
	}))
	return Serve(ctx, address, mux)
}

// Serve takes orders at an address until ctx ends.
func Serve(ctx context.Context, address string, mux *http.ServeMux) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	end := context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody waits
	defer end()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// clients takes an order for clients in this process.
func (n *node) clients(call func(context.Context, []byte) (by string, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		clients, err := strconv.Atoi(r.FormValue("clients"))
		d, err2 := time.ParseDuration(r.FormValue("for"))
		size, err3 := strconv.Atoi(r.FormValue("size"))
		if err = errors.Join(err, err2, err3); err != nil {
			lab.Answer(w, nil, err)
			return
		}
		sum, err := loop(r.Context(), clients, d, func(ctx context.Context) (string, error) { return call(ctx, make([]byte, size)) })
		lab.Answer(w, sum, err)
	}
}

// loop has clients call for a while, each one call after the other.
func loop(ctx context.Context, clients int, d time.Duration, call func(context.Context) (by string, err error)) (Done, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		sum   = Done{By: map[string]int{}}
		first error
		over  atomic.Bool
	)
	for range clients {
		wg.Go(func() {
			count := map[string]int{}
			var failed error
			for !over.Load() && failed == nil {
				by, err := call(ctx)
				if failed = err; err == nil {
					count[by]++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for by, n := range count {
				sum.By[by] += n
				sum.Calls += n
			}
			first = errors.Join(first, failed)
		})
	}
	time.Sleep(d)
	over.Store(true)
	wg.Wait()
	return sum, first
}
