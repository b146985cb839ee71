// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/loop"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// weftNode serves clients by a group of Weft.
type weftNode struct {
	kvpb.UnimplementedKVServer
	id      uint64
	group   *weft.Group
	applied atomic.Uint64
}

func runWeft(coded bool) func(context.Context, settings, func(kvpb.KVServer) func()) error {
	return func(ctx context.Context, s settings, serve func(kvpb.KVServer) (stop func())) (err error) {
		n := &weftNode{id: s.ID}
		db, err := pebblestate.Open(pebblestate.Options{Dir: filepath.Join(s.Data, "state")})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		state, err := db.Group(shard, n.apply, pebblestate.GroupOptions{})
		if err != nil {
			return err
		}
		node, err := weft.Open(weft.Options{Cluster: s.Cluster, ID: s.ID, Dir: filepath.Join(s.Data, "log"), Peers: s.Peers, TickInterval: s.Tick})
		if err != nil {
			return err
		}
		defer func() {
			end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			err = errors.Join(err, node.Close(end))
		}()
		n.group, err = node.Group(shard, state, weft.Configure(func(c *rawnode.Config) {
			c.Replica.ElectionTick = electionTicks
			if coded {
				c.Replica.Coding = &raft.Coding{}
			}
		}))
		if err != nil {
			return err
		}
		stop := serve(n)
		<-ctx.Done()
		stop()
		return nil
	}
}

// apply applies a command.
func (n *weftNode) apply(tx *pebblestate.Tx, command []byte) (any, error) {
	key, value, err := loop.DecodePut(command)
	if err != nil {
		return nil, err
	}
	n.applied.Add(1)
	return nil, tx.Set([]byte(key), value)
}

// Put implements kvpb.KVServer.
func (n *weftNode) Put(ctx context.Context, req *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	done, err := n.group.Propose(ctx, loop.EncodePut(req.GetKey(), req.GetValue()))
	return &kvpb.PutResponse{Index: done.Index}, err
}

// Status implements kvpb.KVServer.
func (n *weftNode) Status(context.Context, *kvpb.StatusRequest) (*kvpb.StatusResponse, error) {
	s := n.group.Host().Status()
	return &kvpb.StatusResponse{Id: n.id, Leader: s.Lead, Term: s.Term, Applied: n.applied.Load()}, nil
}
