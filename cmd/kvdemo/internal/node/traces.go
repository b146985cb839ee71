// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/rawnode/tracing"
)

// validateTraces returns what is wrong with the flags of traces.
func (c Config) validateTraces() (errs []error) {
	if c.OTLP == "" {
		return nil
	}
	u, err := url.Parse(c.OTLP)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" {
		errs = append(errs, fmt.Errorf("--otlp: %q, want the URL of a collector that takes OTLP over gRPC, such as http://127.0.0.1:4317, or https:// with TLS", c.OTLP))
	}
	if !(c.OTLPSample >= 0 && c.OTLPSample <= 1) { // also if it is no number
		errs = append(errs, fmt.Errorf("--otlp-sample: %v, want a share of the calls, 0 to 1", c.OTLPSample))
	}
	return errs
}

// traces are the spans of a process's calls, for a collector; nil makes none.
type traces struct {
	cfg      Config
	provider *sdk.TracerProvider
}

// openTraces connects to the collector of --otlp. What it does not take is lost; the
// process's log says so.
func (c Config) openTraces() (*traces, error) {
	if c.OTLP == "" {
		return nil, nil
	}
	exporter, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithEndpointURL(c.OTLP))
	if err != nil {
		return nil, fmt.Errorf("--otlp: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		c.Log.Warn("spans got lost", "collector", c.OTLP, "error", err)
	}))
	return &traces{c, sdk.NewTracerProvider(
		sdk.WithBatcher(exporter),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.OTLPSample))),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "kvdemo"),
			attribute.String("service.instance.id", strconv.FormatUint(c.ID, 10)),
			attribute.Int64("weft.cluster", int64(c.Cluster)),
		)),
	)}, nil
}

// close sends the last spans. A process does not fail for want of a collector.
func (t *traces) close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), clientsTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.cfg.Log.Warn("the last spans got lost", "collector", t.cfg.OTLP, "error", err)
	}
	return nil
}

// wrap returns the calls of a group, with spans.
func (t *traces) wrap(group uint64, calls weft.Calls) weft.Calls {
	if t == nil {
		return calls
	}
	return tracing.Wrap(calls, tracing.Options{Provider: t.provider, Node: t.cfg.ID, Group: group})
}

// options let calls of clients bring the span that they are part of, as W3C's Trace
// Context has it.
func (t *traces) options() []grpc.ServerOption {
	if t == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			var span propagation.TraceContext
			of := propagation.MapCarrier{} // what the caller's metadata says of its span
			for _, field := range span.Fields() {
				of[field] = strings.Join(metadata.ValueFromIncomingContext(ctx, field), ",")
			}
			return handle(span.Extract(ctx, of), req)
		},
	)}
}
