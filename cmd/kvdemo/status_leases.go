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

// leasesResult is roster leases of a group in the output of status --json; see statusResult.
type leasesResult struct {
	*kvpb.StatusResponse_Leases
	Named  []assignmentResult `json:"named,omitempty"`
	Wanted []assignmentResult `json:"wanted,omitempty"`
	Tuner  *tunerResult       `json:"tuner,omitempty"`
}

// assignmentResult is a span and its nodes.
type assignmentResult struct {
	From  string   `json:"from"`
	To    string   `json:"to"` // without it; empty: the end of all keys
	Nodes []uint64 `json:"nodes"`
	Tuned bool     `json:"tuned,omitempty"`
}

func newLeasesResult(l *kvpb.StatusResponse_Leases) *leasesResult {
	if l == nil {
		return nil
	}
	return &leasesResult{l, newAssignments(l.GetNamed()), newAssignments(l.GetWanted()), newTunerResult(l.GetTuner())}
}

func newAssignments(list []*kvpb.Assignment) (all []assignmentResult) {
	for _, a := range list {
		all = append(all, assignmentResult{From: string(a.GetSpan().GetStart()), To: string(a.GetSpan().GetEnd()), Nodes: a.GetNodes(), Tuned: a.GetTuned()})
	}
	return all
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
				rows = append(rows, g.leaseRow(r.GetId()))
			}
		}
	}
	return f.more(cmd, rows, "NODE", "GROUP", "ROSTER", "NAMED", "ANSWERS", "READS", "LEADER", "QUORUM", "STALE", "HELD", "REDIRECTED", "REMOVED")
}

// leaseRow is a line of a group at a node.
func (g groupResult) leaseRow(id uint64) []any {
	l, reads := g.Leases, g.Reads
	return []any{
		id, g.Group, fmt.Sprintf("%d.%d", l.Term, l.Roster), l.named(), l.answers(g.Role == "leader"),
		reads.GetRoster() + reads.GetLease(), reads.GetLeader(), reads.GetQuorum(), reads.GetStale(), l.Held, l.Redirected, l.Removed,
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
	case l.QuarantineUs > 0:
		return "in " + (time.Duration(l.QuarantineUs) * time.Microsecond).Round(time.Millisecond).String()
	case l.Stable && leads:
		return "yes, as the leader"
	case l.Stable:
		return "yes"
	}
	return "no"
}
