// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft/rawnode"
)

// codingGauges are the numbers of coded replication that tell how it is.
type codingGauges struct {
	Active, Plain, Dense, IsStuck bool
	CompletedIndex, ReleasedIndex uint64
	MemoryBytes                   int
	// Entries are those that are not applied.
	Entries int
}

// collectCoding sends the metrics of a group that codes.
func collectCoding(out chan<- prometheus.Metric, l labels, s *rawnode.CodingState) {
	if s == nil {
		return
	}
	collect(out, "coding", l, codingGauges{
		Active: s.Active, Plain: s.Plain, Dense: s.Dense, IsStuck: s.StuckAt != 0,
		CompletedIndex: s.Completed, ReleasedIndex: s.Released, MemoryBytes: s.Memory, Entries: len(s.Entries),
	})
	collect(out, "coding", l, s.Counters)
	for level, count := range s.Counters.Levels {
		one(out, "coding", ".Levels", append(slices.Clone(l), label{"level", strconv.Itoa(level)}), "", float64(count))
	}
}
