// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// maxCallBytes bounds a gRPC message.
const maxCallBytes = 5 << 20

// Run runs a node until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	l, err := net.Listen("tcp", cfg.ClientListen)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // unless it was served
	return Serve(ctx, cfg, func(kv kvpb.KVServer) (stop func()) {
		g := grpc.NewServer(grpc.MaxRecvMsgSize(maxCallBytes), grpc.MaxSendMsgSize(maxCallBytes))
		kvpb.RegisterKVServer(g, kv)
		var serving sync.WaitGroup
		serving.Go(func() { _ = g.Serve(l) }) // ends with Stop
		return func() {
			g.Stop()
			serving.Wait()
		}
	})
}

// Serve runs a node until ctx ends, and has its service served until then.
func Serve(ctx context.Context, cfg Config, serve func(kvpb.KVServer) (stop func())) (err error) {
	s := &server{cfg: cfg, waiting: map[string]chan uint64{}, reads: map[uint64][]chan struct{}{}}
	if err := s.open(); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.peers, err = startPeers(ctx, cfg.ID, cmp.Or(cfg.Listen, cfg.Peers[cfg.ID]), cfg.Peers, s.receiver(ctx), s.node.ReportUnreachable); err != nil {
		return err
	}
	stop := serve(service{server: s})
	err = s.run(ctx)
	cancel()
	s.node.Stop()
	stop()
	return errors.Join(err, s.peers.wait(), s.state.Close(), s.wal.file.Close())
}

// receiver returns the function that takes messages from peers. A forwarded proposal
// waits inside the library while there is no leader. Messages behind the proposal on
// the same connection must not wait with it, or a restarted node would never hear of
// the new leader.
func (s *server) receiver(ctx context.Context) func(*pb.Message) {
	return func(m *pb.Message) {
		if m.GetType() != pb.MsgProp {
			_ = s.node.Step(ctx, m) // an error means that it ends
			return
		}
		go func() {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_ = s.node.Step(ctx, m) // dropped: whoever proposed it runs into a timeout
		}()
	}
}

// service is kvdemo's service, as far as the benchmark calls it.
type service struct {
	kvpb.UnimplementedKVServer
	*server
}

// Put implements kvpb.KVServer.
func (s service) Put(ctx context.Context, req *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	index, err := s.propose(ctx, EncodePut(req.GetKey(), req.GetValue()))
	if err != nil {
		return nil, failed(err)
	}
	return &kvpb.PutResponse{Index: index}, nil
}

// Get implements kvpb.KVServer.
func (s service) Get(ctx context.Context, req *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	if !req.GetLocal() {
		if err := s.read(ctx); err != nil {
			return nil, failed(err)
		}
	}
	value, err := s.state.get(s.state.db, dataKey(req.GetKey()))
	if err != nil {
		return nil, failed(err)
	}
	if value == nil {
		return nil, status.Error(codes.NotFound, "no such key")
	}
	return &kvpb.GetResponse{Value: value}, nil
}

// Status implements kvpb.KVServer.
func (s service) Status(context.Context, *kvpb.StatusRequest) (*kvpb.StatusResponse, error) {
	st := s.node.Status()
	m := s.state.db.Metrics()
	s.mu.Lock()
	applied := s.applied
	s.mu.Unlock()
	return &kvpb.StatusResponse{
		Id: s.cfg.ID, Core: "loop", Pid: uint64(os.Getpid()),
		Role: strings.ToLower(strings.TrimPrefix(st.RaftState.String(), "State")), Leader: st.Lead,
		Term: st.GetTerm(), Commit: st.GetCommit(), Applied: applied,
		LogWrittenBytes: s.written.Load(), StateBytes: m.DiskSpaceUsage(),
	}, nil
}

// failed turns an error into a status. Of a proposal that was dropped nothing
// can come; of others nobody knows.
func failed(err error) error {
	verdict := kvpb.Outcome_UNKNOWN
	if errors.Is(err, raft.ErrProposalDropped) {
		verdict = kvpb.Outcome_REFUSED
	}
	s, _ := status.New(codes.Unavailable, err.Error()).WithDetails(&kvpb.Outcome{Verdict: verdict}) // it always marshals
	return s.Err()
}
