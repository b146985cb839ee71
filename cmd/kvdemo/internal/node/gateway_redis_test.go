// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Keys of all groups, by pattern and by type, are listed at a gateway as at a node.
func TestClientsOfRedisListKeysAtAGateway(t *testing.T) {
	cfg := testConfig(t)
	cfg.Groups, cfg.RespListen = 2, freePort(t)
	stop := start(t, cfg)
	gate := Config{
		ID: 101, Cluster: cfg.Cluster, Peers: cfg.Peers, Listen: freePort(t), ClientListen: freePort(t), RespListen: freePort(t), Tick: cfg.Tick, ElectionTicks: cfg.ElectionTicks, Log: cfg.Log,
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- RunGateway(ctx, gate) }()
	for _, address := range []string{cfg.RespListen, gate.RespListen} {
		c := redis.NewClient(&redis.Options{Addr: address})
		require.Eventually(t, func() bool { return c.HSet(t.Context(), "k/hash", "f", "v").Err() == nil }, time.Minute, 10*time.Millisecond, address)
		for _, key := range []string{"k/a", "k/b", "other"} {
			require.NoError(t, c.Set(t.Context(), key, "v", 0).Err())
		}
		keys, next, err := c.Scan(t.Context(), 0, "k/*", 1000).Result()
		require.NoError(t, err)
		require.Zero(t, next)
		require.Equal(t, []string{"k/a", "k/b", "k/hash"}, keys)
		keys, _, err = c.ScanType(t.Context(), 0, "k/*", 1000, "hash").Result()
		require.NoError(t, err)
		require.Equal(t, []string{"k/hash"}, keys)
		_, next, err = c.Scan(t.Context(), 0, "", 1).Result()
		require.NoError(t, err)
		require.NotZero(t, next)
		n, err := c.DBSize(t.Context()).Result()
		require.NoError(t, err)
		require.EqualValues(t, 4, n)
		require.NoError(t, c.Close())
	}
	end()
	require.NoError(t, <-ended)
	require.NoError(t, stop())
}
