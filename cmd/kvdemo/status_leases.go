// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// leasesResult is the roster leases of a group, as a node knows them, in the output of
// status --json.
type leasesResult struct {
	Term         uint64             `json:"term,omitempty"`   // of the roster
	Roster       uint64             `json:"roster,omitempty"` // 0: none
	Named        []assignmentResult `json:"named,omitempty"`
	Wanted       []assignmentResult `json:"wanted,omitempty"`
	Stable       bool               `json:"stable"`
	Retired      bool               `json:"retired,omitempty"`
	QuarantineUS uint64             `json:"quarantine_us,omitempty"`
	Waiting      uint64             `json:"waiting,omitempty"`
	Waited       uint64             `json:"waited,omitempty"`
	Held         uint64             `json:"held,omitempty"`
	Redirected   uint64             `json:"redirected,omitempty"`
	Removed      uint64             `json:"removed,omitempty"`
	AsResponder  uint64             `json:"as_responder,omitempty"`
	AsLeader     uint64             `json:"as_leader,omitempty"`
	Tuner        *tunerResult       `json:"tuner,omitempty"`
}

// assignmentResult is a span and its nodes.
type assignmentResult struct {
	From  string   `json:"from"`
	To    string   `json:"to"` // without it; empty: the end of all keys
	Nodes []uint64 `json:"nodes"`
	Tuned bool     `json:"tuned,omitempty"`
}

// readsResult is how many reads ended well at a node, by what they rest on.
type readsResult struct {
	Roster uint64 `json:"roster"`
	Lease  uint64 `json:"lease"`
	Leader uint64 `json:"leader"`
	Quorum uint64 `json:"quorum"`
	Stale  uint64 `json:"stale"`
}

func newLeasesResult(l *kvpb.StatusResponse_Leases) *leasesResult {
	if l == nil {
		return nil
	}
	return &leasesResult{
		Term: l.GetTerm(), Roster: l.GetRoster(), Named: newAssignments(l.GetNamed()), Wanted: newAssignments(l.GetWanted()),
		Stable: l.GetStable(), Retired: l.GetRetired(), QuarantineUS: l.GetQuarantineUs(), Waiting: l.GetWaiting(),
		Waited: l.GetWaited(), Held: l.GetHeld(), Redirected: l.GetRedirected(), Removed: l.GetRemoved(),
		AsResponder: l.GetAsResponder(), AsLeader: l.GetAsLeader(), Tuner: newTunerResult(l.GetTuner()),
	}
}

func newAssignments(list []*kvpb.Assignment) (all []assignmentResult) {
	for _, a := range list {
		all = append(all, assignmentResult{From: string(a.GetSpan().GetStart()), To: string(a.GetSpan().GetEnd()), Nodes: a.GetNodes(), Tuned: a.GetTuned()})
	}
	return all
}

func newReadsResult(r *kvpb.StatusResponse_Reads) *readsResult {
	if r == nil {
		return nil
	}
	return &readsResult{Roster: r.GetRoster(), Lease: r.GetLease(), Leader: r.GetLeader(), Quorum: r.GetQuorum(), Stale: r.GetStale()}
}

// span prints a span for people.
func (a assignmentResult) span() string {
	if a.From == "" && a.To == "" {
		return "all"
	}
	return a.From + ":" + a.To
}

// printLeases prints what nodes with leases say of them, and of reads. With --json that
// stands with the nodes.
func (f *clientFlags) printLeases(cmd *cobra.Command, nodes []client.NodeStatus) error {
	var rows [][]any
	for _, n := range nodes {
		r := newStatusResult(n)
		for _, g := range r.Groups {
			if g.Leases != nil {
				rows = append(rows, g.leaseRow(r.ID))
			}
		}
	}
	return f.more(cmd, rows, "NODE", "GROUP", "ROSTER", "NAMED", "ANSWERS", "READS", "LEADER", "QUORUM", "STALE", "HELD", "REDIRECTED", "REMOVED")
}

// leaseRow is a line of a group at a node.
func (g groupResult) leaseRow(id uint64) []any {
	l, reads := g.Leases, g.Reads
	if reads == nil {
		reads = &readsResult{}
	}
	return []any{
		id, g.Group, fmt.Sprintf("%d.%d", l.Term, l.Roster), l.named(), l.answers(g.Role == "leader"),
		reads.Roster + reads.Lease, reads.Leader, reads.Quorum, reads.Stale, l.Held, l.Redirected, l.Removed,
	}
}

// named lists who is named, of which keys.
func (l *leasesResult) named() string {
	var all []string
	for _, a := range l.Named {
		text := groupList(a.Nodes)
		if span := a.span(); span != "all" {
			text += " of " + span
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return "nobody"
	}
	return strings.Join(all, ", ")
}

// answers says whether a node answers reads of every key by itself.
func (l *leasesResult) answers(leads bool) string {
	switch {
	case l.Retired:
		return "retired"
	case l.QuarantineUS > 0:
		return "in " + (time.Duration(l.QuarantineUS) * time.Microsecond).Round(time.Millisecond).String()
	case l.Stable && leads:
		return "yes, as the leader"
	case l.Stable:
		return "yes"
	}
	return "no"
}
