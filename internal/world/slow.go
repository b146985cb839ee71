// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// SlowSeeds counts the seeds with faults that report no error: what hangs, and what is slow.
type SlowSeeds struct {
	all, any uint64
	by       [len(slowFaults)]uint64
}

// slowFaults are the counters of these faults, in each simulator that has them; SlowSyncs are of slow disks.
var slowFaults = [...]string{"HungDisks", "SlowDisks", "SlowSyncs", "SlowMachines", "SlowLinks", "HeldLinks"}

// Add counts a seed by the counters of its run, a struct as for [AddCounts].
func (s *SlowSeeds) Add(counts any) {
	s.all++
	had := false
	counters(reflect.ValueOf(counts), func(name string, c reflect.Value) {
		if i := slices.Index(slowFaults[:], name); i >= 0 && c.Uint() > 0 {
			s.by[i]++
			had = true
		}
	})
	if had {
		s.any++
	}
}

// String says how many seeds there were with each fault, and with any.
func (s SlowSeeds) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "of %d seeds, %d have faults that report no error:", s.all, s.any)
	for i, name := range slowFaults {
		if s.by[i] > 0 {
			fmt.Fprintf(&b, " %s %d", name, s.by[i])
		}
	}
	return b.String()
}
