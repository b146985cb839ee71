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

// slowFaults are the counters of these faults, in each simulator that has them.
var slowFaults = [...]string{"HungDisks", "SlowDisks", "SlowMachines", "SlowLinks", "HeldLinks"}

// slowFloor says in how many seeds, of so many that a test runs, there is each of these faults at least.
type slowFloor struct{ Of, Least uint64 }

// slowFloors returns the floors of the tests of simulators in `make test`. Together they have each
// fault in 2,000 seeds.
func slowFloors() map[string]slowFloor {
	return map[string]slowFloor{
		"TestSim": {2000, 540}, "TestCoded": {2000, 520}, "TestCodedFalls": {1000, 250}, "TestLeased": {1500, 340},
		"TestEarly": {300, 80}, "TestNodes": {1000, 235}, "TestGates": {150, 35}, "TestGatesBrief": {1850, 400},
	}
}

// Fewer returns the faults in fewer seeds than the floor of a test, if that many seeds ran.
func (s SlowSeeds) Fewer(test string) (names []string) {
	floor := slowFloors()[test]
	for i, name := range slowFaults {
		if s.all >= floor.Of && s.by[i] < floor.Least {
			names = append(names, name)
		}
	}
	return names
}

// Add counts a seed by the counters of its run, a struct as for [AddCounts].
func (s *SlowSeeds) Add(counts any) {
	s.all++
	had := false
	counters(reflect.ValueOf(counts), func(name string, c reflect.Value) {
		if name == "SlowSyncs" { // what a slow disk is in package rafttest
			name = "SlowDisks"
		}
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
