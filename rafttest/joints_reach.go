// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

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
	// Met counts looks at the cluster at which two parties were under way.
	Met [parties][parties]uint64
}

// jointCounts is the counters of one event each.
type jointCounts struct {
	Runs, OnlyCoding, OnlyLeases, UpstreamRuns uint64
	Reported, LateApplies, Torn, OldRestarts   uint64
	LeaseReads, WideCommits, Marooned, Learned uint64
}

// Add adds the counts of another run.
func (r *jointReach) Add(o jointReach) {
	world.AddCounts(&r.jointCounts, o.jointCounts)
	for a := range r.Met {
		for b := range r.Met[a] {
			r.Met[a][b] += o.Met[a][b]
		}
	}
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

// lookEvery is the time between looks at which parties are under way.
const lookEvery = 2 * time.Millisecond

// beginJoints plans the looks.
func (f *faults) beginJoints() {
	s, j := f.s, f.s.plan.joints
	if j == nil {
		return
	}
	r := &s.joints
	r.Runs++
	for is, to := range map[*uint64]bool{&r.OnlyCoding: j.codes && !j.leases, &r.OnlyLeases: j.leases && !j.codes, &r.UpstreamRuns: j.upstream != 0} {
		if to {
			*is++
		}
	}
	f.every(lookEvery, s.meet)
}

// meet counts the pairs that are under way now.
func (s *sim) meet() {
	if s.calm() {
		return
	}
	var on [parties]bool
	for _, n := range s.nodes {
		if p, ok := n.proc.(*coreProcess); ok && p.rn != nil {
			s.partiesAt(n, p, &on)
		}
	}
	on[partyLeases] = s.granted()
	for a := range on {
		for b := range a + 1 {
			if on[a] && on[b] {
				s.joints.Met[a][b]++
			}
		}
	}
}

// partiesAt marks what is under way at a node.
func (s *sim) partiesAt(n *node, p *coreProcess, on *[parties]bool) {
	mark := func(what party, is bool) { on[what] = on[what] || is }
	mark(partyRestart, n.incarnation > 1 && s.Now()-n.startedAt < electionTime)
	mark(partyLate, p.lateSince > 0 && s.Now()-p.lateSince > electionTime/4)
	mark(partyUpstream, s.plan.joints.upstream>>n.id&1 == 1)
	for _, e := range n.disk.live.entries {
		mark(partyChange, e.GetIndex() > p.inForce && e.GetType() != pb.EntryNormal)
	}
	if !p.leads() {
		return
	}
	mark(partyCoding, s.codedUnderWay(n))
	st := p.rn.Status()
	mark(partyTransfer, st.LeadTransferee != 0)
	for _, pr := range st.Progress {
		mark(partySnapshot, pr.State == tracker.StateSnapshot)
	}
}

// startedOld counts starts from a checkpoint of before a change of the members in the log.
func (s *sim) startedOld(n *node) {
	if s.plan.joints != nil && slices.ContainsFunc(n.disk.live.entries, func(e *pb.Entry) bool {
		return e.GetType() != pb.EntryNormal && e.GetIndex() > released(&n.disk.live)
	}) {
		s.joints.OldRestarts++
	}
}
