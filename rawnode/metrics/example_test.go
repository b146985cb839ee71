// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/rawnode/metrics"
)

// queue is a part of a service, with numbers of its own beside those of Weft.
type queue struct {
	Depth int
	Taken uint64
}

// words is a state: how often each word was said.
type words map[string]int

func (w words) Apply(command []byte) any  { w[string(command)]++; return w[string(command)] }
func (w words) Write(to io.Writer) error  { return json.NewEncoder(to).Encode(w) }
func (w words) Read(from io.Reader) error { return json.NewDecoder(from).Decode(&w) }

// A node of package weft takes the Set as an option: its log, its transport and its groups are
// measured.
func ExampleSet_NodeOpened() {
	must := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "weft-")
	must(err)
	defer func() { _ = os.RemoveAll(dir) }()
	set, registry, ctx := metrics.NewSet(), prometheus.NewRegistry(), context.Background()
	registry.MustRegister(set)
	node, err := weft.Open(weft.Options{Cluster: 7, ID: 1, Dir: dir, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond, Metrics: set})
	must(err)
	group, err := weft.Replicate(node, 1, func() words { return words{} })
	must(err)
	_, err = group.Propose(ctx, []byte("hello"))
	must(err)
	families, err := registry.Gather()
	must(err)
	for _, f := range families {
		switch f.GetName() {
		case "weft_log_sync_seconds", "weft_propose_applied_seconds":
			fmt.Println(f.GetName(), "has samples:", f.GetMetric()[0].GetHistogram().GetSampleCount() > 0)
		case "weft_group_leader":
			fmt.Println(f.GetName(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	must(node.Close(ctx))
	families, err = registry.Gather()
	must(err)
	fmt.Println("of a closed node there are only durations:", len(families) < 10)
	// Output:
	// weft_group_leader 1
	// weft_log_sync_seconds has samples: true
	// weft_propose_applied_seconds has samples: true
	// of a closed node there are only durations: true
}

// A node registers one Set, and the numbers of its own parts.
func Example() {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewSet())
	texts := map[string]string{"Depth": "now: Jobs that wait.", "Taken": "Jobs taken."}
	registry.MustRegister(metrics.Numbers("queue", texts, func() any { return queue{Depth: 2, Taken: 40} }))
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if m := f.GetMetric()[0]; f.GetName() == "weft_queue_depth" {
			fmt.Println(f.GetName(), f.GetHelp(), m.GetGauge().GetValue())
		} else if f.GetName() == "weft_queue_taken_total" {
			fmt.Println(f.GetName(), f.GetHelp(), m.GetCounter().GetValue())
		}
	}
	// Output:
	// weft_queue_depth Jobs that wait. 2
	// weft_queue_taken_total Jobs taken. 40
}
