// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/lni/dragonboat/v4"
	"github.com/lni/dragonboat/v4/client"
	"github.com/lni/dragonboat/v4/config"
	"github.com/lni/dragonboat/v4/logger"
	"github.com/lni/dragonboat/v4/plugin/tan"
	"github.com/lni/dragonboat/v4/statemachine"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/loop"
	"github.com/weftraft/weft/internal/lab"
)

// dragonNode serves clients by a shard of dragonboat.
type dragonNode struct {
	kvpb.UnimplementedKVServer
	id      uint64
	host    *dragonboat.NodeHost
	session *client.Session
	applied atomic.Uint64
}

const (
	dragonSnapshots = 50_000 // entries between two snapshots, which of an on-disk state have no data
	dragonKept      = 10_000 // entries that stay in the log behind one
	callTime        = 30 * time.Second
)

func runDragonboat(ctx context.Context, s settings, serve func(kvpb.KVServer) (stop func())) error {
	for _, part := range []string{"dragonboat", "raft", "rsm", "transport", "logdb", "grpc", "util", "raftpb", "config", "tan", "order", "registry", "settings"} {
		logger.GetLogger(part).SetLevel(logger.WARNING)
	}
	n := &dragonNode{id: s.ID}
	host, err := dragonboat.NewNodeHost(config.NodeHostConfig{
		DeploymentID: s.Cluster, NodeHostDir: filepath.Join(s.Data, "host"), RaftAddress: s.Peers[s.ID],
		RTTMillisecond: uint64(s.Tick.Milliseconds()), Expert: config.ExpertConfig{LogDBFactory: tan.Factory},
	})
	if err != nil {
		return err
	}
	defer host.Close()
	create := func(uint64, uint64) statemachine.IOnDiskStateMachine {
		return &dragonState{node: n, dir: filepath.Join(s.Data, "state")}
	}
	err = host.StartOnDiskReplica(s.Peers, false, create, config.Config{
		ReplicaID: s.ID, ShardID: shard, CheckQuorum: true, PreVote: true, ElectionRTT: electionTicks, HeartbeatRTT: 1,
		SnapshotEntries: dragonSnapshots, CompactionOverhead: dragonKept,
	})
	if err != nil {
		return err
	}
	n.host, n.session = host, host.GetNoOPSession(shard)
	stop := serve(n)
	<-ctx.Done()
	stop()
	return nil
}

// Put implements kvpb.KVServer.
func (n *dragonNode) Put(ctx context.Context, req *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	command := loop.EncodePut(req.GetKey(), req.GetValue())
	for {
		_, err := n.host.SyncPropose(ctx, n.session, command)
		if !errors.Is(err, dragonboat.ErrSystemBusy) {
			return &kvpb.PutResponse{}, err
		}
		// Its queue of proposals is full, and the command was not taken: the error says to try again later.
		if err := lab.Sleep(ctx, dragonBusy); err != nil {
			return nil, err
		}
	}
}

// dragonBusy is the time until a command is offered again.
const dragonBusy = time.Millisecond

// Status implements kvpb.KVServer.
func (n *dragonNode) Status(context.Context, *kvpb.StatusRequest) (*kvpb.StatusResponse, error) {
	leader, term, known, err := n.host.GetLeaderID(shard)
	if errors.Is(err, dragonboat.ErrShardNotReady) || !known {
		leader, err = 0, nil
	}
	return &kvpb.StatusResponse{Id: n.id, Leader: leader, Term: term, Applied: n.applied.Load()}, err
}

// dragonState is the state as dragonboat wants it.
type dragonState struct {
	node  *dragonNode
	dir   string
	state *loop.State
}

func (d *dragonState) Open(<-chan struct{}) (applied uint64, err error) {
	if d.state, err = loop.OpenState(d.dir, ""); err != nil {
		return 0, err
	}
	return d.state.Applied(), nil
}

func (d *dragonState) Update(entries []statemachine.Entry) ([]statemachine.Entry, error) {
	commands := make([][]byte, len(entries))
	for i, e := range entries {
		commands[i] = e.Cmd
	}
	d.node.applied.Add(uint64(len(commands)))
	return entries, d.state.Apply(entries[len(entries)-1].Index, commands)
}

func (d *dragonState) Lookup(any) (any, error)       { return d.state.Applied(), nil }
func (d *dragonState) Sync() error                   { return d.state.Flush() }
func (d *dragonState) PrepareSnapshot() (any, error) { return d.state.Freeze(), nil }
func (d *dragonState) Close() error                  { return d.state.Close() }

func (d *dragonState) SaveSnapshot(at any, w io.Writer, _ <-chan struct{}) error {
	data, index, err := at.(*loop.Frozen).Read()
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint64(nil, index), data...))
	return err
}

func (d *dragonState) RecoverFromSnapshot(r io.Reader, _ <-chan struct{}) error {
	return restore(d.state, r)
}

// restore replaces a state by what SaveSnapshot or Persist wrote.
func restore(s *loop.State, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if len(data) < 8 {
		return io.ErrUnexpectedEOF
	}
	return s.Restore(data[8:], binary.BigEndian.Uint64(data))
}
