// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ycsb

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/ports"
)

// Side is a cluster that runs. Stop ends it in good order.
type Side struct {
	Target
	Stop func() error
}

// StartKvdemo starts a cluster of kvdemo, given the program's path and more flags in cfg, which has done its first write. The
// leader is the first of the addresses, at which nodes speak the protocol of Redis.
func StartKvdemo(ctx context.Context, program string, cfg cluster.Config) (*Side, error) {
	addresses, err := ports.Free(cfg.Nodes)
	if err != nil {
		return nil, err
	}
	cfg.Program = []string{program, "serve"}
	cfg.NodeArgs = func(id int) []string { return []string{"--resp", addresses[id-1]} }
	c, err := cluster.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	leader, err := c.WaitLeader(ctx)
	if err == nil {
		addresses[0], addresses[leader.ID-1] = addresses[leader.ID-1], addresses[0]
		err = Ready(ctx, c.Cluster, addresses[0])
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &Side{Target{Redis, addresses}, func() error { return errors.Join(c.Stop(), c.Close()) }}, nil
}

// Ready waits until an address takes writes by the protocol of Redis.
func Ready(ctx context.Context, c *lab.Cluster, address string) error {
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	err := c.Wait(ctx, "a first write", func(ctx context.Context) error { return client.Set(ctx, "ready", 1, 0).Err() })
	return errors.Join(err, client.Close())
}

// StartEtcd starts a cluster of etcd.
func StartEtcd(ctx context.Context, cfg cluster.EtcdConfig) (*Side, error) {
	c, err := cluster.StartEtcd(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.Lead(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &Side{Target{"EtcdBinding", c.Clients()}, func() error { return errors.Join(c.Terminate(time.Minute), c.Close()) }}, nil
}
