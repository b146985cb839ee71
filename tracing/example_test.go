// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/tracing"
)

// answers stands for the *rawnode.Host of a service.
type answers struct{}

func (answers) Propose(context.Context, []byte) (rawnode.Result, error) {
	return rawnode.Result{Index: 7}, nil
}

func (answers) ReadWith(context.Context, rawnode.ReadOptions) (rawnode.ReadResult, error) {
	return rawnode.ReadResult{}, nil
}

// ExampleWrap reads through a traced host; the read leaves a span.
func ExampleWrap() {
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	calls := tracing.Wrap(answers{}, tracing.Options{Provider: provider, Node: 1, Group: 1})
	if _, err := calls.ReadWith(context.Background(), rawnode.ReadOptions{}); err != nil {
		fmt.Println(err)
	}
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output: weft.read
}
