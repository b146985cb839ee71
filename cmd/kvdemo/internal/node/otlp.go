// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net/url"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

// otlpExport is the call by which a collector takes traces.
const otlpExport = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// otlpRetries has gRPC repeat a call while the collector cannot be reached.
const otlpRetries = `{"methodConfig": [{"name": [{"service": "opentelemetry.proto.collector.trace.v1.TraceService"}],
	"retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.5s", "maxBackoff": "5s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// otlp sends spans to a collector over gRPC: an otlptrace.Client. The client that
// OpenTelemetry has links a gateway between HTTP and gRPC into the program, and two
// modules more, because the generated code of the collector's service does. The request is
// one repeated field, which TracesData has under the same number, and no field of the
// answer is of use here.
type otlp struct{ conn *grpc.ClientConn }

// newOTLP returns a client that connects when there are spans: over TLS, if the URL is one
// of https, with the authorities that the system believes.
func newOTLP(address string) (*otlp, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	security := insecure.NewCredentials()
	if u.Scheme == "https" {
		security = credentials.NewTLS(nil)
	}
	conn, err := grpc.NewClient(u.Host, grpc.WithTransportCredentials(security), grpc.WithDefaultServiceConfig(otlpRetries))
	return &otlp{conn}, err
}

// Start implements otlptrace.Client.
func (o *otlp) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (o *otlp) Stop(context.Context) error { return o.conn.Close() }

// UploadTraces implements otlptrace.Client.
func (o *otlp) UploadTraces(ctx context.Context, spans []*trace.ResourceSpans) error {
	if err := o.conn.Invoke(ctx, otlpExport, &trace.TracesData{ResourceSpans: spans}, &emptypb.Empty{}); err != nil {
		return fmt.Errorf("send spans to %s: %w", o.conn.Target(), err)
	}
	return nil
}
