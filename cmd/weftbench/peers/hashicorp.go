// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/loop"
)

// hashiNode serves clients by hashicorp/raft, as the leader.
type hashiNode struct {
	kvpb.UnimplementedKVServer
	id      uint64
	raft    *raft.Raft
	state   *loop.State
	applied atomic.Uint64
}

const (
	hashiPool      = 3 // connections kept to a peer, as in the library's examples
	hashiSnapshots = 2 // that are kept
)

func runHashicorp(ctx context.Context, s settings, serve func(kvpb.KVServer) (stop func())) (err error) {
	n := &hashiNode{id: s.ID}
	if n.state, err = loop.OpenState(filepath.Join(s.Data, "state"), ""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.state.Close()) }()
	dir := filepath.Join(s.Data, "log")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	logger := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Warn})
	log, err := wal.Open(dir, wal.WithLogger(logger))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(s.Data, hashiSnapshots, logger)
	if err != nil {
		return err
	}
	transport, err := raft.NewTCPTransportWithLogger(s.Peers[s.ID], nil, hashiPool, callTime, logger)
	if err != nil {
		return err
	}
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(strconv.FormatUint(s.ID, 10))
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = s.timeout(), s.timeout(), s.timeout()/2
	c.BatchApplyCh, c.Logger = true, logger
	var members raft.Configuration
	for id, address := range s.Peers {
		members.Servers = append(members.Servers, raft.Server{ID: raft.ServerID(strconv.FormatUint(id, 10)), Address: raft.ServerAddress(address)})
	}
	if known, err := raft.HasExistingState(log, log, snapshots); err != nil {
		return err
	} else if !known {
		if err := raft.BootstrapCluster(c, log, log, snapshots, transport, members); err != nil {
			return err
		}
	}
	if n.raft, err = raft.NewRaft(c, n, log, log, snapshots, transport); err != nil {
		return err
	}
	stop := serve(n)
	<-ctx.Done()
	stop()
	return errors.Join(n.raft.Shutdown().Error(), transport.Close())
}

// Put implements kvpb.KVServer.
func (n *hashiNode) Put(_ context.Context, req *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	done := n.raft.Apply(loop.EncodePut(req.GetKey(), req.GetValue()), callTime)
	if err := done.Error(); err != nil {
		return nil, err
	}
	err, _ := done.Response().(error)
	return &kvpb.PutResponse{Index: done.Index()}, err
}

// Status implements kvpb.KVServer.
func (n *hashiNode) Status(context.Context, *kvpb.StatusRequest) (*kvpb.StatusResponse, error) {
	_, id := n.raft.LeaderWithID()
	leader, _ := strconv.ParseUint(string(id), 10, 64) // empty: none is known
	return &kvpb.StatusResponse{Id: n.id, Leader: leader, Term: n.raft.CurrentTerm(), Applied: n.applied.Load()}, nil
}

// ApplyBatch implements raft.BatchingFSM.
func (n *hashiNode) ApplyBatch(logs []*raft.Log) []any {
	results := make([]any, len(logs))
	var commands [][]byte
	for _, l := range logs {
		if l.Type == raft.LogCommand {
			commands = append(commands, l.Data)
		}
	}
	n.applied.Add(uint64(len(commands)))
	if err := n.state.Apply(logs[len(logs)-1].Index, commands); err != nil {
		for i := range results {
			results[i] = err
		}
	}
	return results
}

// Apply implements raft.FSM.
func (n *hashiNode) Apply(l *raft.Log) any { return n.ApplyBatch([]*raft.Log{l})[0] }

// Snapshot implements raft.FSM.
func (n *hashiNode) Snapshot() (raft.FSMSnapshot, error) {
	return &hashiSnapshot{Frozen: n.state.Freeze()}, nil
}

// Restore implements raft.FSM.
func (n *hashiNode) Restore(r io.ReadCloser) error {
	return errors.Join(restore(n.state, r), r.Close())
}

// hashiSnapshot is the state as of one moment.
type hashiSnapshot struct {
	*loop.Frozen
	read bool // which closes it
}

// Persist implements raft.FSMSnapshot.
func (f *hashiSnapshot) Persist(sink raft.SnapshotSink) error {
	f.read = true
	data, index, err := f.Read()
	if err == nil {
		_, err = sink.Write(append(binary.BigEndian.AppendUint64(nil, index), data...))
	}
	if err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (f *hashiSnapshot) Release() {
	if !f.read {
		_ = f.Close() // nothing is written
	}
}
