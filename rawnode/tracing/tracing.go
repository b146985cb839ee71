// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package tracing makes OpenTelemetry spans for the calls of a rawnode.Host. The spans of a command
// show the times until the command was sent, committed, and applied; the span of a read shows the
// proof that served the read.
//
//	calls := tracing.Wrap(host, tracing.Options{Node: 1, Group: 1})
//	res, err := calls.Propose(ctx, command) // a child of the span in ctx
//
// A node of package weft takes Wrap as an option (weft.Options.Calls): see the example.
//
// The span weft.propose has three children in sequence: weft.propose.queue, weft.propose.commit and
// weft.propose.apply. The children are made from rawnode.Result.Times when the call has ended, and
// only if the span is sampled. A command that fails has only the span weft.propose, with the error.
// A read is the span weft.read.
//
// Spans describe the called node. The trace does not travel to other members, because a log entry
// may hold many commands.
//
// The package is a module of its own, so that a host without OpenTelemetry does not require
// OpenTelemetry.
package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode"
)

// Scope is the name of the tracer that makes the spans.
const Scope = "github.com/weftraft/weft/rawnode/tracing"

// Host has the calls that are traced. [*rawnode.Host] is a Host.
type Host interface {
	Propose(ctx context.Context, command []byte) (rawnode.Result, error)
	ReadWith(ctx context.Context, o rawnode.ReadOptions) (rawnode.ReadResult, error)
}

// Options configure [Wrap]. All fields may be left out.
type Options struct {
	// Provider makes the tracer; nil means otel.GetTracerProvider.
	Provider trace.TracerProvider
	// Node and Group are attributes of each span: weft.node and weft.group.
	Node, Group uint64
}

// Wrap returns a Host whose calls leave spans, with the arguments and results of h.
func Wrap(h Host, o Options) Host {
	if o.Provider == nil {
		o.Provider = otel.GetTracerProvider()
	}
	return &traced{host: h, tracer: o.Provider.Tracer(Scope), where: []attribute.KeyValue{
		attribute.Int64("weft.node", int64(o.Node)), attribute.Int64("weft.group", int64(o.Group)),
	}}
}

type traced struct {
	host   Host
	tracer trace.Tracer
	where  []attribute.KeyValue
}

// Propose calls Propose of the host, in a span.
func (t *traced) Propose(ctx context.Context, command []byte) (rawnode.Result, error) {
	begin := time.Now()
	ctx, span := t.tracer.Start(ctx, "weft.propose", trace.WithTimestamp(begin), trace.WithAttributes(t.where...))
	res, err := t.host.Propose(ctx, command)
	if !span.IsRecording() {
		span.End()
		return res, err
	}
	span.SetAttributes(attribute.Int("weft.command.bytes", len(command)))
	if err != nil {
		fail(span, err)
		span.End()
		return res, err
	}
	span.SetAttributes(attribute.Int64("weft.index", int64(res.Index)))
	at := begin
	for _, part := range []struct {
		name string
		ends time.Duration
	}{
		{"weft.propose.queue", res.Times.Sent}, {"weft.propose.commit", res.Times.Committed}, {"weft.propose.apply", res.Times.Applied},
	} {
		_, child := t.tracer.Start(ctx, part.name, trace.WithTimestamp(at))
		at = begin.Add(part.ends)
		child.End(trace.WithTimestamp(at))
	}
	span.End(trace.WithTimestamp(at))
	return res, err
}

// ReadWith calls ReadWith of the host, in a span.
func (t *traced) ReadWith(ctx context.Context, o rawnode.ReadOptions) (rawnode.ReadResult, error) {
	ctx, span := t.tracer.Start(ctx, "weft.read", trace.WithAttributes(t.where...))
	defer span.End()
	res, err := t.host.ReadWith(ctx, o)
	if !span.IsRecording() {
		return res, err
	}
	span.SetAttributes(attribute.String("weft.read.policy", replica.PolicyName(o.Policy)))
	if err != nil {
		fail(span, err)
		return res, err
	}
	span.SetAttributes(
		attribute.String("weft.read.served", res.By.String()),
		attribute.Int64("weft.index", int64(res.Index)),
		attribute.Int64("weft.read.lag", int64(res.Lag)),
	)
	return res, err
}

// fail records the error of a call. weft.verdict is refused if the call had no effect, and unknown
// if the call may have had an effect.
func fail(span trace.Span, err error) {
	switch {
	case errors.Is(err, rawnode.ErrUnknown):
		span.SetAttributes(attribute.String("weft.verdict", "unknown"))
	case errors.Is(err, rawnode.ErrRefused):
		span.SetAttributes(attribute.String("weft.verdict", "refused"))
	}
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
}
