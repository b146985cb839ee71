// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// statusResult is a node in the output of status --json. What has no name here has that of
// kv.proto, and is left out if it is zero.
type statusResult struct {
	Endpoint string `json:"endpoint"`
	Error    string `json:"error,omitempty"`
	*kvpb.StatusResponse
	Members map[uint64]string `json:"members,omitempty"`
	Groups  []groupResult     `json:"groups,omitempty"`
}

type groupResult struct {
	Group      uint64 `json:"group"`
	Role       string `json:"role"`
	Leader     uint64 `json:"leader,omitempty"`
	Term       uint64 `json:"term,omitempty"`
	Commit     uint64 `json:"commit,omitempty"`
	Applied    uint64 `json:"applied,omitempty"`
	Durable    uint64 `json:"durable,omitempty"`
	FirstIndex uint64 `json:"first_index,omitempty"`
	LastIndex  uint64 `json:"last_index,omitempty"`

	Coding *kvpb.StatusResponse_Coding `json:"coding,omitempty"`
	Leases *leasesResult               `json:"leases,omitempty"`
	Reads  *kvpb.StatusResponse_Reads  `json:"reads,omitempty"`
	Home   uint64                      `json:"home,omitempty"`
}

func newStatus() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what each of the endpoints' nodes says of itself",
		Long:  "status shows what each node says of itself, and fails if one does not answer.",
	}
	return f.runs(cmd, func(ctx context.Context, c *client.Client, _ []string) error {
		return f.printStatus(cmd, c.Status(ctx))
	})
}

// printStatus prints a row for each node, all of which must answer.
func (f *clientFlags) printStatus(cmd *cobra.Command, nodes []client.NodeStatus) error {
	t := f.table(cmd, "ENDPOINT", "NODE", "GROUP", "ROLE", "LEADER", "TERM", "COMMIT", "APPLIED", "DURABLE", "LOG", "STATE", "SENT", "UP", "CORE")
	var errs []error
	for _, n := range nodes {
		r := newStatusResult(n)
		rows := r.rows()
		if n.Err != nil {
			errs = append(errs, n.Err)
			rows = [][]any{{r.Endpoint, "-", "-", r.Error}}
		}
		if err := t.rows(r, rows...); err != nil {
			return err
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	if err := errors.Join(f.printCoding(cmd, nodes), f.printLeases(cmd, nodes)); err != nil {
		return err
	}
	if len(errs) > 0 {
		return fmt.Errorf("%d of %d nodes did not answer: %w; check --endpoints and that the nodes run", len(errs), len(nodes), errs[0]) // the table has all
	}
	return nil
}

// rows are the lines of a node, one for each group. The first line has the node's own
// values.
func (r statusResult) rows() (rows [][]any) {
	up := (time.Duration(r.GetUptimeMs()) * time.Millisecond).Round(time.Second)
	node := []any{size(r.GetLogBytes()), size(r.GetStateBytes()), size(r.sent()), up, r.GetCore()}
	for _, g := range r.Groups {
		role := g.Role
		if r.GetStalled() != "" {
			role += ", stalled"
		}
		if g.Home != 0 {
			role = fmt.Sprintf("%s, home %d", role, g.Home)
		}
		rows = append(rows, append([]any{r.Endpoint, r.GetId(), g.Group, role, g.Leader, g.Term, g.Commit, g.Applied, g.Durable}, node...))
		node = nil
	}
	return rows
}

func newStatusResult(n client.NodeStatus) statusResult {
	if n.Err != nil {
		return statusResult{Endpoint: n.Endpoint, Error: strings.TrimPrefix(n.Err.Error(), n.Endpoint+": ")}
	}
	s := n.Response
	r := statusResult{Endpoint: n.Endpoint, StatusResponse: s, Members: members(s)}
	for _, g := range s.GetGroups() {
		r.Groups = append(r.Groups, groupResult{
			Group: g.GetId(), Role: g.GetRole(), Leader: g.GetLeader(), Term: g.GetTerm(), Commit: g.GetCommit(),
			Applied: g.GetApplied(), Durable: g.GetDurable(), FirstIndex: g.GetFirstIndex(), LastIndex: g.GetLastIndex(),
			Coding: g.GetCoding(), Leases: newLeasesResult(g.GetLeases()), Reads: g.GetReads(), Home: g.GetHome(),
		})
	}
	return r
}

func members(s *kvpb.StatusResponse) map[uint64]string {
	m := make(map[uint64]string, len(s.GetMembers()))
	for _, member := range s.GetMembers() {
		m[member.GetId()] = member.GetAddress()
	}
	return m
}

// sent is the sum over all links.
func (r statusResult) sent() (sum uint64) {
	for _, l := range r.GetLinks() {
		sum += l.GetSentBytes()
	}
	return sum
}

// size prints a number of bytes for people.
func size(n uint64) string {
	switch {
	case n < 1e4:
		return fmt.Sprintf("%d B", n)
	case n < 1e7:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
