// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weftraft/weft/rawnode"
)

// steady is a host whose calls take the given times, in virtual time.
type steady struct {
	times rawnode.CommandTimes
	read  rawnode.ReadResult
	err   error
}

func (s steady) Propose(context.Context, []byte) (rawnode.Result, error) {
	time.Sleep(s.times.Applied)
	return rawnode.Result{Index: 77, Times: s.times}, s.err
}

func (s steady) ReadWith(context.Context, rawnode.ReadOptions) (rawnode.ReadResult, error) {
	time.Sleep(s.times.Applied)
	return s.read, s.err
}

// record runs f in virtual time with calls of a host, and returns the spans.
func record(t *testing.T, h Host, sampler sdk.Sampler, f func(ctx context.Context, calls Host)) (spans tracetest.SpanStubs) {
	synctest.Test(t, func(t *testing.T) {
		exporter := tracetest.NewInMemoryExporter()
		provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter), sdk.WithSampler(sampler))
		f(t.Context(), Wrap(h, Options{Provider: provider, Node: 3, Group: 9}))
		spans = exporter.GetSpans()
		require.NoError(t, provider.Shutdown(context.Background()))
	})
	return spans
}

func attributes(s tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

func TestACommandLeavesASpanForEachPart(t *testing.T) {
	times := rawnode.CommandTimes{Sent: 2 * time.Millisecond, Committed: 9 * time.Millisecond, Applied: 10 * time.Millisecond}
	var outer tracetest.SpanStub
	spans := record(t, steady{times: times}, sdk.AlwaysSample(), func(ctx context.Context, calls Host) {
		res, err := calls.Propose(ctx, make([]byte, 123))
		require.NoError(t, err)
		require.EqualValues(t, 77, res.Index)
	})
	var got []string
	for _, s := range spans {
		if s.Name == "weft.propose" {
			outer = s
		}
	}
	for _, s := range spans {
		got = append(got, fmt.Sprintf("%s %v-%v", s.Name, s.StartTime.Sub(outer.StartTime), s.EndTime.Sub(outer.StartTime)))
		if s.Name != outer.Name {
			require.Equal(t, outer.SpanContext.SpanID(), s.Parent.SpanID())
		}
		require.Equal(t, outer.SpanContext.TraceID(), s.SpanContext.TraceID())
	}
	require.Equal(t, []string{
		"weft.propose.queue 0s-2ms", "weft.propose.commit 2ms-9ms", "weft.propose.apply 9ms-10ms", "weft.propose 0s-10ms",
	}, got)
	require.Equal(t, map[string]string{"weft.node": "3", "weft.group": "9", "weft.command.bytes": "123", "weft.index": "77"}, attributes(outer))
	require.Equal(t, codes.Unset, outer.Status.Code)
}

func TestAReadLeavesASpanThatSaysWhatServedIt(t *testing.T) {
	h := steady{read: rawnode.ReadResult{Index: 5, By: rawnode.ServedByRoster, Lag: 2}, times: rawnode.CommandTimes{Applied: time.Millisecond}}
	spans := record(t, h, sdk.AlwaysSample(), func(ctx context.Context, calls Host) {
		for _, policy := range []rawnode.ReadPolicy{nil, rawnode.AtResponder{}} {
			_, err := calls.ReadWith(ctx, rawnode.ReadOptions{Policy: policy})
			require.NoError(t, err)
		}
	})
	require.Len(t, spans, 2)
	require.Equal(t, "read_index", attributes(spans[0])["weft.read.policy"])
	require.Equal(t, map[string]string{
		"weft.node": "3", "weft.group": "9", "weft.index": "5",
		"weft.read.policy": "at_responder", "weft.read.served": "roster", "weft.read.lag": "2",
	}, attributes(spans[1]))
	require.Equal(t, time.Millisecond, spans[1].EndTime.Sub(spans[1].StartTime))
}

func TestACallThatFailsLeavesItsVerdict(t *testing.T) {
	for verdict, err := range map[string]error{
		"refused": &rawnode.CallError{Op: "propose", Verdict: rawnode.ErrRefused, Cause: rawnode.ErrOverloaded},
		"unknown": &rawnode.CallError{Op: "propose", Verdict: rawnode.ErrUnknown, Cause: rawnode.ErrTimeout},
	} {
		spans := record(t, steady{err: err}, sdk.AlwaysSample(), func(ctx context.Context, calls Host) {
			_, got := calls.Propose(ctx, nil)
			require.Equal(t, err, got)
			_, got = calls.ReadWith(ctx, rawnode.ReadOptions{})
			require.Equal(t, err, got)
		})
		require.Len(t, spans, 2, "a command that failed has no parts")
		for _, s := range spans {
			require.Equal(t, verdict, attributes(s)["weft.verdict"])
			require.Equal(t, codes.Error, s.Status.Code)
			require.Equal(t, err.Error(), s.Status.Description)
		}
	}
}

func TestWhatIsNotSampledLeavesNothing(t *testing.T) {
	spans := record(t, steady{}, sdk.NeverSample(), func(ctx context.Context, calls Host) {
		_, err := calls.Propose(ctx, nil)
		require.NoError(t, err)
		_, err = calls.ReadWith(ctx, rawnode.ReadOptions{})
		require.NoError(t, err)
	})
	require.Empty(t, spans)
}

// A span in the caller's context is the parent of the call's spans.
func TestSpansAreChildrenOfTheCallers(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	ctx, caller := provider.Tracer("test").Start(context.Background(), "caller")
	_, err := Wrap(steady{}, Options{Provider: provider}).Propose(ctx, nil)
	require.NoError(t, err)
	caller.End()
	for _, s := range exporter.GetSpans() {
		require.Equal(t, caller.SpanContext().TraceID(), s.SpanContext.TraceID(), s.Name)
		if s.Name == "weft.propose" {
			require.Equal(t, caller.SpanContext().SpanID(), s.Parent.SpanID())
			require.Contains(t, s.Attributes, attribute.Int64("weft.node", 0))
		}
	}
	require.Len(t, exporter.GetSpans(), 5)
}
