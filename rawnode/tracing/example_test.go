// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/tracing"
)

// answers stands for the *rawnode.Host of a service.
type answers struct{}

func (answers) Propose(context.Context, []byte) (rawnode.Result, error) {
	return rawnode.Result{Index: 7}, nil
}

func (answers) ReadWith(context.Context, rawnode.ReadOptions) (rawnode.ReadResult, error) {
	return rawnode.ReadResult{}, nil
}

// words is a state: how often each word was said.
type words map[string]int

func (w words) Apply(command []byte) any  { w[string(command)]++; return w[string(command)] }
func (w words) Write(to io.Writer) error  { return json.NewEncoder(to).Encode(w) }
func (w words) Read(from io.Reader) error { return json.NewDecoder(from).Decode(&w) }

// A node of package weft is given Wrap as an option: the calls of its groups leave spans.
func ExampleWrap_group() {
	must := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "weft-")
	must(err)
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, spans := context.Background(), tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	node, err := weft.Open(weft.Options{
		Cluster: 7, ID: 1, Dir: dir, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond,
		Calls: func(group uint64, host weft.Calls) weft.Calls {
			return tracing.Wrap(host, tracing.Options{Provider: provider, Node: 1, Group: group})
		},
	})
	must(err)
	group, err := weft.Replicate(node, 1, func() words { return words{} })
	must(err)
	_, err = group.Propose(ctx, []byte("hello"))
	must(err)
	must(group.View(ctx, func(words) {}))
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
	}
	must(node.Close(ctx))
	// Output:
	// weft.propose.queue
	// weft.propose.commit
	// weft.propose.apply
	// weft.propose
	// weft.read
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
