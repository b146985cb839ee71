// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// fit returns the factors of [lab.Fit] for what was measured and for counts of it.
func fit(all []sample, measured func(sample) float64, counts ...func(sample) float64) []float64 {
	var rows [][]float64
	var times []float64
	for _, s := range all {
		var row []float64
		for _, count := range counts {
			row = append(row, count(s))
		}
		rows, times = append(rows, row), append(times, measured(s))
	}
	return lab.Fit(rows, times)
}

// print prints the table as Go.
func print(all, alone []sample, sync, kib time.Duration) {
	step := fit(all, func(s sample) float64 { return s.step },
		func(s sample) float64 { return s.stepItems }, func(s sample) float64 { return s.stepKiB })
	apply := fit(all, func(s sample) float64 { return s.apply },
		func(s sample) float64 { return s.applyItems }, func(s sample) float64 { return s.applied }, func(s sample) float64 { return s.applyKiB })
	log := fit(alone, func(s sample) float64 { return s.cpu },
		func(s sample) float64 { return s.writes }, func(s sample) float64 { return s.entries }, func(s sample) float64 { return s.logKiB })
	// What the process used besides is the network, which has every message and
	// every byte twice, and the callers.
	rest := fit(all, func(s sample) float64 {
		return max(s.cpu-s.step-s.apply-log[0]*s.writes-log[1]*s.entries-log[2]*s.logKiB, s.cpu/10)
	}, func(s sample) float64 { return 2 * s.messages }, func(s sample) float64 { return s.commands }, func(s sample) float64 { return 2 * s.wireKiB })
	line := func(name string, seconds float64) { fmt.Printf("\t%s: %d,\n", name, int64(seconds*1e9)) }
	fmt.Println("var Measured = Costs{ // nanoseconds")
	line("Turn", step[0])
	line("Message", step[0])
	line("Call", step[0]+rest[1])
	line("Sent", rest[0])
	line("Received", rest[0])
	line("Write", log[0])
	line("Entry", log[1])
	line("Apply", apply[0])
	line("Command", apply[1])
	line("LoopKiB", step[1])
	line("WireKiB", rest[2])
	line("LogKiB", log[2])
	line("ApplyKiB", apply[2])
	line("Sync", sync.Seconds())
	line("DiskKiB", kib.Seconds())
	line("Delay", 100e-6)
	line("LinkKiB", 1024*8/10e9)
	fmt.Println("}")
}
