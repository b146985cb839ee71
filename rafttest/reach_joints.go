// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"strings"

	"github.com/weftraft/weft/internal/world"
)

// party is something that may be under way while others are.
type party int

const (
	partyCoding   party = iota // a leader has a coded entry that is not committed
	partyLeases                // a grant has not expired
	partyChange                // a change of the members is in a log, and not in force there
	partyTransfer              // a leader hands over
	partyRestart               // a node was started less than an election timeout ago
	partySnapshot              // a leader waits for a member to take a snapshot
	partyLate                  // a host has had something to apply for a quarter of an election timeout
	partyUpstream              // a member, now or to be, runs upstream's library
	parties
)

var partyNames = [parties]string{"coding", "leases", "change", "transfer", "restart", "snapshot", "late", "upstream"}

// jointReach counts the events of runs of joints.
type jointReach struct {
	jointCounts
	// Met counts the looks at the cluster that found both of two parties under way.
	Met [parties][parties]uint64
}

// jointCounts is the counters of one event each.
type jointCounts struct {
	Runs, OnlyCoding, OnlyLeases, UpstreamRuns uint64
	Reported, LateApplies, Torn, OldRestarts   uint64
	LeaseReads, WideCommits, Marooned, Learned uint64
}

// Missing returns the names of what was never reached, and the pairs that never met.
func (r jointReach) Missing() []string {
	names := world.Zeros(r.jointCounts)
	for a := range r.Met {
		for b := range a {
			if r.Met[a][b] == 0 {
				names = append(names, partyNames[b]+" with "+partyNames[a])
			}
		}
	}
	return names
}

// String lists the counts, and a table of the pairs.
func (r jointReach) String() string {
	var t strings.Builder
	t.WriteString(world.Table(r.jointCounts))
	for a := range r.Met {
		fmt.Fprintf(&t, "%10s", partyNames[a])
		for b := range a + 1 {
			fmt.Fprintf(&t, " %10d", r.Met[a][b])
		}
		t.WriteByte('\n')
	}
	fmt.Fprintf(&t, "%10s", "")
	for _, name := range partyNames {
		fmt.Fprintf(&t, " %10s", name)
	}
	return t.String()
}
