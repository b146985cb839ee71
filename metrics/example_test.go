// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft/metrics"
)

// queue is a part of a service, with numbers of its own beside those of Weft.
type queue struct {
	Depth int
	Taken uint64
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
