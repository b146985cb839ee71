// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package realreads

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/weftbench/internal/readsbench"
)

// startZooKeeper starts a cluster. A connection is a session.
func (cfg *Config) startZooKeeper(ctx context.Context, n readsbench.Network, p policy) (*store, error) {
	z, err := cluster.StartZooKeeper(ctx, cluster.ZooKeeperConfig{
		Jar: cfg.ZooKeeper, Nodes: len(n.Sites), Leader: int(n.Leader), Dir: cfg.dir(n.Name + " zookeeper"),
		Links: func(from, to int) time.Duration { return n.RoundTrip(uint64(from), uint64(to)) / 2 },
	})
	if err != nil {
		return nil, err
	}
	lead := func(context.Context) (int, error) { return z.Leader() }
	return &store{z, lead, func(address string) (client, error) {
		conn, _, err := zk.Connect([]string{address}, 30*time.Second, zk.WithLogger(quiet{}))
		return zkClient{conn, p.name == SyncedZooKeeper}, err
	}}, nil
}

// quiet is a logger: what goes wrong is in the errors of calls.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// zkClient is a connection to a server of ZooKeeper, which answers reads from what it has: they may be stale.
type zkClient struct {
	conn *zk.Conn
	// synced reads ask the leader for all writes first. A leader that others have replaced may answer, too.
	synced bool
}

func (c zkClient) Close() error {
	c.conn.Close()
	return nil
}

// path is that of a key's node in the tree.
func path(key string) string { return "/" + strings.ReplaceAll(key, "/", "-") }

func (c zkClient) put(_ context.Context, key string, value []byte) error {
	_, err := c.conn.Set(path(key), value, -1)
	if errors.Is(err, zk.ErrNoNode) {
		_, err = c.conn.Create(path(key), value, 0, zk.WorldACL(zk.PermAll))
	}
	return err
}

func (c zkClient) get(_ context.Context, key string) (value []byte, local bool, err error) {
	if c.synced {
		if _, err := c.conn.Sync(path(key)); err != nil {
			return nil, false, fmt.Errorf("sync: %w", err)
		}
	}
	value, _, err = c.conn.Get(path(key))
	return value, false, err
}
