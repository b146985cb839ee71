// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/weftraft/weft/cmd/kvdemo/internal/logs"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/ports"
)

func freePort(t *testing.T) string {
	t.Helper()
	free, err := ports.Free(1)
	require.NoError(t, err)
	return free[0]
}

func testConfig(t *testing.T) Config {
	log, level, err := logs.New(io.Discard, logs.Console, "info")
	require.NoError(t, err)
	return Config{
		ID: 1, Cluster: 3, Peers: map[uint64]string{1: freePort(t)}, ClientListen: freePort(t), Data: t.TempDir(),
		Groups: 1, Core: CoreWeft, Coding: CodingAuto, Tick: 5 * time.Millisecond, HeartbeatTicks: 1, ElectionTicks: 10,
		RetainBytes: DefaultRetainBytes, FlushInterval: DefaultFlushInterval,
		Log: log, LogLevel: level,
	}
}

// A node of its own, on both libraries: it serves, is healthy, describes its
// service, stops, and comes back with what it acknowledged.
func TestRun(t *testing.T) {
	for _, core := range []string{CoreWeft, CoreUpstream} {
		t.Run(core, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.Core = core
			index := uint64(0)
			for round := range 3 {
				stop := start(t, cfg)
				conn := dial(t, cfg.ClientListen)
				index = visit(t, conn, core, round, index)
				require.NoError(t, stop())
			}
		})
	}
}

// start runs a node; stop ends it and returns its error.
func start(t *testing.T, cfg Config) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// visit writes, and reads what the visit before wrote.
func visit(t *testing.T, conn *grpc.ClientConn, core string, round int, before uint64) uint64 {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	kv := kvpb.NewKVClient(conn)
	if round > 0 {
		got, err := kv.Get(ctx, &kvpb.GetRequest{Key: "k"}, grpc.WaitForReady(true))
		require.NoError(t, err)
		require.EqualValues(t, []byte{byte(round - 1)}, got.GetValue())
	}
	put, err := kv.Put(ctx, &kvpb.PutRequest{Key: "k", Value: []byte{byte(round)}}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Greater(t, put.GetIndex(), before)

	health, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: kvpb.KV_ServiceDesc.ServiceName})
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, health.GetStatus())
	s, err := kv.Status(ctx, &kvpb.StatusRequest{})
	require.NoError(t, err)
	require.Equal(t, "leader", s.GetRole())
	require.Equal(t, core, s.GetCore())
	require.EqualValues(t, 1, s.GetLeader())
	require.GreaterOrEqual(t, s.GetApplied(), put.GetIndex())
	require.Len(t, s.GetMembers(), 1)
	checkReflection(ctx, t, conn)
	return put.GetIndex()
}

func checkReflection(ctx context.Context, t *testing.T, conn *grpc.ClientConn) {
	stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
	}))
	resp, err := stream.Recv()
	require.NoError(t, err)
	var names []string
	for _, service := range resp.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	require.Contains(t, names, kvpb.KV_ServiceDesc.ServiceName)
	require.NoError(t, stream.CloseSend())
}

// Health is compared in units of the election timeout that the groups have.
func TestPlacementHasTheElectionTimeoutOfTheFlags(t *testing.T) {
	cfg := testConfig(t)
	cfg.ElectionTicks = 30
	n := newNode(cfg)
	require.NoError(t, n.open(t.Context()))
	defer func() { require.NoError(t, n.close()) }()
	require.Equal(t, 150*time.Millisecond, n.placement.Timeout())
}

func TestRunRefusesConfig(t *testing.T) {
	err := Run(t.Context(), Config{})
	for _, flag := range []string{"--id", "--cluster", "--peers", "--data", "--groups", "--core", "--tick", "--heartbeat-ticks", "--election-ticks", "--client-listen", "--retain-bytes", "--flush-interval"} {
		require.ErrorContains(t, err, flag+":")
	}
}
