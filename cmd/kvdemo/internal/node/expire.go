// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

const (
	// expireInterval is how often a leader looks for keys whose deadline has passed.
	expireInterval = 100 * time.Millisecond
	// expireTimeout bounds one attempt to remove them; the next look tries again.
	expireTimeout = 2 * time.Second
)

// expire removes keys whose deadline has passed, of the groups that this node leads,
// by a command in their logs. A node that is not the leader any more does no harm: the
// command names a time, and takes only what was due then.
func (n *node) expire(ctx context.Context) {
	ticker := time.NewTicker(expireInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var busy sync.WaitGroup
		for _, g := range n.groups {
			if g.store.Deadlines() > 0 && g.host.Status().Role == raft.StateLeader {
				busy.Go(func() { n.expireGroup(ctx, g) })
			}
		}
		busy.Wait()
	}
}

// expireGroup removes all keys of a group that are due now.
func (n *node) expireGroup(ctx context.Context, g *group) {
	ctx, cancel := context.WithTimeout(ctx, expireTimeout)
	defer cancel()
	for ctx.Err() == nil {
		now := time.Now().UnixMilli()
		keys, err := g.store.Due(now)
		if len(keys) > 0 && err == nil {
			_, _, err = g.propose(ctx, kv.Command{Op: kv.OpExpire, Expire: &kv.Expire{Now: now, Keys: keys}})
		}
		var call *rawnode.CallError
		if err != nil && !errors.As(err, &call) && ctx.Err() == nil {
			n.cfg.Log.Warn("remove keys whose deadline has passed", "group", g.id, "error", err)
		}
		if err != nil || len(keys) < kv.MaxExpireKeys {
			return
		}
	}
}
