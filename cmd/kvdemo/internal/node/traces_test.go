// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// collected is a collector that keeps the traces of spans, by their names.
type collected struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans map[string][][]byte
	nodes map[string]bool
}

func (c *collected) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range req.GetResourceSpans() {
		for _, a := range r.GetResource().GetAttributes() {
			if a.GetKey() == "service.instance.id" {
				c.nodes[a.GetValue().GetStringValue()] = true
			}
		}
		for _, s := range r.GetScopeSpans() {
			for _, span := range s.GetSpans() {
				c.spans[span.GetName()] = append(c.spans[span.GetName()], span.GetTraceId())
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// newCollector serves a collector, and returns its URL.
func newCollector(t *testing.T) (*collected, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got := &collected{spans: map[string][][]byte{}, nodes: map[string]bool{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, got)
	go func() { _ = server.Serve(l) }() // it ends with Stop
	t.Cleanup(server.Stop)
	return got, "http://" + l.Addr().String()
}

// calls writes and reads at an address: first outside any trace, then in a client's.
func calls(t *testing.T, address string) (trace []byte) {
	c, err := client.New(client.Config{Endpoints: []string{address}})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = c.Put(t.Context(), "key", []byte("of no trace"))
	require.NoError(t, err)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent)
	_, err = c.Put(ctx, "key", []byte("value"))
	require.NoError(t, err)
	_, err = c.Get(ctx, &kvpb.GetRequest{Key: "key", Policy: &kvpb.ReadPolicy{Kind: kvpb.ReadPolicy_QUORUM}})
	require.NoError(t, err)
	return []byte{0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c}
}

// await waits for spans. A process that stops has a second for its last ones, and on a busy machine that may be too short
// for the first connection to the collector.
func (c *collected) await(t *testing.T, names ...string) {
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !slices.ContainsFunc(names, func(name string) bool { return c.spans[name] == nil })
	}, time.Minute, time.Millisecond)
}

// spansOfCalls are those of calls.
var spansOfCalls = []string{"weft.propose", "weft.propose.queue", "weft.propose.commit", "weft.propose.apply", "weft.read"}

// soon has spans sent at once.
func soon(t *testing.T) { t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1") }

// requireSpans wants one span of each name, of the process and the trace given.
func (c *collected) requireSpans(t *testing.T, process string, trace []byte, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(t, map[string]bool{process: true}, c.nodes)
	want := map[string][][]byte{}
	for _, name := range names {
		want[name] = [][]byte{trace}
	}
	require.Equal(t, want, c.spans)
}

// A node with --otlp sends the spans of calls to the collector, over a real connection,
// as parts of the client's trace.
func TestTracesReachTheCollector(t *testing.T) {
	soon(t)
	got, url := newCollector(t)
	cfg := testConfig(t)
	cfg.OTLP, cfg.OTLPSample = url, 0 // but what clients sample
	stop := start(t, cfg)
	trace := calls(t, cfg.ClientListen)
	got.await(t, spansOfCalls...)
	require.NoError(t, stop())
	got.requireSpans(t, "1", trace, spansOfCalls...)
}

// The last spans are sent as a process stops.
func TestLastSpansReachTheCollector(t *testing.T) {
	got, url := newCollector(t)
	cfg := testConfig(t)
	cfg.OTLP, cfg.OTLPSample = url, 1
	traces, err := cfg.openTraces()
	require.NoError(t, err)
	span := func(name string) {
		_, s := traces.provider.Tracer("").Start(t.Context(), name)
		s.End()
	}
	span("first")
	require.NoError(t, traces.provider.ForceFlush(patient(t))) // the collector is connected
	span("last")
	require.NoError(t, traces.close())
	got.await(t, "first", "last")
}

// So does a gateway, whose reads are questions to a node.
func TestTracesOfGatewaysReachTheCollector(t *testing.T) {
	soon(t)
	cfg := testConfig(t)
	stop := start(t, cfg)
	got, url := newCollector(t)
	gate := Config{
		ID: 101, Cluster: cfg.Cluster, Peers: cfg.Peers, Listen: freePort(t), ClientListen: freePort(t), Tick: cfg.Tick, ElectionTicks: cfg.ElectionTicks, OTLP: url, Log: cfg.Log,
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- RunGateway(ctx, gate) }()
	trace := calls(t, gate.ClientListen)
	got.await(t, spansOfCalls...)
	end()
	require.NoError(t, <-ended)
	require.NoError(t, stop())
	got.requireSpans(t, "101", trace, spansOfCalls...)
	gate.OTLP = "h:4317"
	require.ErrorContains(t, gate.ValidateGateway(), "--otlp:")
}

// A node serves, and stops in good order, without the collector that it was told.
func TestNodeServesWithoutItsCollector(t *testing.T) {
	cfg := testConfig(t)
	cfg.OTLP, cfg.OTLPSample = "http://"+freePort(t), 1
	stop := start(t, cfg)
	c, err := client.New(client.Config{Endpoints: []string{cfg.ClientListen}})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = c.Put(t.Context(), "key", []byte("value"))
	require.NoError(t, err)
	require.NoError(t, stop())
}

func TestMistakesInTheFlagsOfTraces(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:4317": "--otlp:", "ftp://h:1": "--otlp:", "http://h": "--otlp:", "http://h:4317": "",
	} {
		cfg := testConfig(t)
		cfg.OTLP, cfg.OTLPSample = address, 1
		if err := cfg.Validate(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
	for _, share := range []float64{-0.1, 1.1, math.NaN()} {
		cfg := testConfig(t)
		cfg.OTLP, cfg.OTLPSample = "http://h:4317", share
		require.ErrorContains(t, cfg.Validate(), "--otlp-sample:")
	}
}
