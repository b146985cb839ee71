// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"reflect"
	"strings"
)

// Reach counts what runs came across. A harness that reaches nothing finds
// nothing: tests fail if one of these stays at zero over many seeds.
type Reach struct {
	Elections, LeaderChanges                          uint64
	Commits, Applied                                  uint64
	Puts, Swaps, Reads, Retries, Indeterminate        uint64
	Delivered, Lost, Duplicated, Reordered, Blocked   uint64
	Partitions, OneWayPartitions, Isolations          uint64
	Crashes, ProcessKills, CrashesInWrite, TornWrites uint64
	LostRecords, Restarts                             uint64
	Pauses, SlowSyncs, DriftingClocks                 uint64
	Checkpoints, LogCuts, SnapshotsSent               uint64
	SnapshotsRestored, SnapshotsBusy                  uint64
	SimpleChanges, JointAuto, JointImplicit           uint64
	JointExplicit, JointsLeft, Learners, Promotions   uint64
	Removals, Returns, LeaderRemovals                 uint64
	Transfers, Campaigns, Forgets                     uint64
	AsyncRuns, SyncRuns, PreVoteRuns, LeaseRuns       uint64
	Bootstraps, SingleNodes, Histories, Bursts        uint64
	SnapshotsHeld, BoldOperators, Stalemates          uint64
	CoreRuns, HostRuns, Refusals                      uint64
	UnknownVerdicts, SnapshotsRefused, StatesKept     uint64
}

// Add adds the counts of another run.
func (r *Reach) Add(o Reach) {
	to, from := reflect.ValueOf(r).Elem(), reflect.ValueOf(o)
	for i := range to.NumField() {
		to.Field(i).SetUint(to.Field(i).Uint() + from.Field(i).Uint())
	}
}

// Missing returns the names of what was never reached, but for stalemates,
// which nobody needs.
func (r Reach) Missing() []string {
	r.Stalemates++
	var names []string
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if v.Field(i).Uint() == 0 {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

// String lists the counts, some to a line.
func (r Reach) String() string {
	var b strings.Builder
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		fmt.Fprintf(&b, "%20s %-10d", v.Type().Field(i).Name, v.Field(i).Uint())
		if i%4 == 3 || i == v.NumField()-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
