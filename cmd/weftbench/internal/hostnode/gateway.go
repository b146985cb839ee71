// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostnode

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
)

// firstGateway is added to the ID of a node that is a gateway.
const firstGateway = 100

// gateway is the part of a process without a replica.
type gateway struct{ *rawnode.Gateway }

func (g gateway) propose(ctx context.Context, command []byte) error {
	_, err := g.Propose(ctx, command)
	return err
}

func (g gateway) read(ctx context.Context, o rawnode.ReadOptions) (string, error) {
	_, res, err := g.Query(ctx, nil, o)
	return res.By.String(), err
}

func (g gateway) status(context.Context) (Status, error) {
	s := g.Status()
	if s.Home == 0 {
		return Status{}, errors.New("the gateway has no home yet")
	}
	return Status{Lead: s.Lead}, nil
}

func (g gateway) count(c *Counts) {
	s := g.Status().Counters
	c.Proposals, c.Reads = float64(s.Proposals), float64(s.Queries)
}

// runGateway runs a gateway until ctx ends.
func runGateway(ctx context.Context, cfg Config) (err error) {
	listen := cfg.Peers[cfg.ID]
	t, err := transport.New(transport.Config{Cluster: cfg.Cluster, Node: firstGateway + cfg.ID, Listen: listen, Gateway: listen, Peers: cfg.Members})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	homes := slices.Sorted(maps.Keys(cfg.Members))
	g, err := rawnode.NewGateway(rawnode.GatewayConfig{
		ID: firstGateway + cfg.ID, Group: 1, Transport: t, Homes: func() []uint64 { return homes }, MaxBatchBytes: cfg.BatchBytes, TickInterval: 50 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer g.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return (&node{part: gateway{g}, transport: t, ends: ctx}).serve(ctx, cfg.ClientListen)
}
