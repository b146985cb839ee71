// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package load makes load on the nodes of a key-value store, and checks each answer.
package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/internal/lab"
)

// Plan says what load to make.
type Plan struct {
	Addresses []string
	Clients   int // each with a connection of its own, spread over the nodes from node Seed on
	Size      int // bytes of a value
	Keys      int
	Reads     int // percentage of calls that are linearizable reads
	// Rate, Calls, Duration, Timeout and Note are those of [lab.Load].
	Rate     float64
	Calls    int
	Duration time.Duration
	Timeout  time.Duration // of one call
	Note     func(*lab.Call)
	Seed     uint64
	// Store returns a client of the nodes on a connection; nil: kvdemo's.
	Store func(grpc.ClientConnInterface) Store
}

// KeysFor returns a number of keys with which the values of a size fill some
// tens of megabytes.
func KeysFor(size int) int { return min(1000, max(16, (64<<20)/max(size, 1))) }

// client is one client, which goes on to the next node after a failure.
type client struct {
	at    int // its connection
	rng   *rand.Rand
	value []byte
}

// Run makes the load and returns when it is over.
func Run(ctx context.Context, plan Plan) (*lab.Result, error) {
	conns, err := plan.connect(ctx)
	defer func() {
		for _, c := range conns {
			_ = c.Close() // nothing is under way
		}
	}()
	if err != nil {
		return nil, err
	}
	if plan.Store == nil {
		plan.Store = newKvdemo
	}
	clients := make([]client, plan.Clients)
	for i := range clients {
		clients[i] = client{at: i, rng: rand.New(rand.NewPCG(plan.Seed, uint64(i))), value: make([]byte, plan.Size)}
	}
	l := lab.Load{
		Clients: plan.Clients, Rate: plan.Rate, Calls: plan.Calls, Duration: plan.Duration, Timeout: plan.Timeout, Note: plan.Note,
		Retreat: 10 * time.Millisecond,
		Do: func(ctx context.Context, c *lab.Call) error {
			cl := &clients[c.Client]
			err := plan.call(ctx, plan.Store(conns[cl.at%len(conns)]), cl, c)
			if err != nil {
				cl.at++
			}
			return err
		},
	}
	return l.Run(ctx)
}

// connect opens a connection for each client, and waits at most a second for the connections.
func (p *Plan) connect(ctx context.Context) (conns []*grpc.ClientConn, err error) {
	for i := range p.Clients {
		c, err := nodes.Dial(p.Addresses[(i+int(p.Seed%uint64(len(p.Addresses))))%len(p.Addresses)])
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		c.Connect()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, c := range conns {
		for state := c.GetState(); state != connectivity.Ready && c.WaitForStateChange(ctx, state); {
			state = c.GetState()
		}
	}
	return conns, nil
}

// call reads or writes a key. A key that was not written yet has no value.
func (p *Plan) call(ctx context.Context, kv Store, cl *client, c *lab.Call) error {
	key := fmt.Sprintf("bench/%d/%d", p.Size, cl.rng.IntN(p.Keys))
	if cl.rng.IntN(100) < p.Reads {
		value, found, err := kv.Get(ctx, key)
		if err != nil || !found {
			return err
		}
		return lab.CheckValue(key, value, p.Size)
	}
	lab.Value(key, p.Seed<<48|uint64(c.Client)<<32|uint64(c.Number), cl.value)
	return kv.Put(ctx, key, cl.value)
}
