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

// statusResult is one node in the output of status --json.
type statusResult struct {
	Endpoint   string            `json:"endpoint"`
	Error      string            `json:"error,omitempty"`
	ID         uint64            `json:"id,omitempty"`
	Cluster    uint64            `json:"cluster,omitempty"`
	Core       string            `json:"core,omitempty"`
	Role       string            `json:"role,omitempty"`
	Leader     uint64            `json:"leader,omitempty"`
	Term       uint64            `json:"term,omitempty"`
	Commit     uint64            `json:"commit,omitempty"`
	Applied    uint64            `json:"applied,omitempty"`
	Durable    uint64            `json:"durable,omitempty"`
	FirstIndex uint64            `json:"first_index,omitempty"`
	LastIndex  uint64            `json:"last_index,omitempty"`
	LogBytes   uint64            `json:"log_bytes,omitempty"`
	StateBytes uint64            `json:"state_bytes,omitempty"`
	UptimeMS   uint64            `json:"uptime_ms,omitempty"`
	PID        uint64            `json:"pid,omitempty"`
	Members    map[uint64]string `json:"members,omitempty"`
	Links      []linkResult      `json:"links,omitempty"`
	Dropped    uint64            `json:"dropped_messages,omitempty"`

	LogWritten   uint64        `json:"log_written_bytes,omitempty"`
	StateWritten uint64        `json:"state_written_bytes,omitempty"`
	Stalled      string        `json:"stalled,omitempty"`
	Groups       []groupResult `json:"groups,omitempty"`
	Appended     uint64        `json:"appended_bytes,omitempty"`
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

	Coding *codingResult `json:"coding,omitempty"`
	Leases *leasesResult `json:"leases,omitempty"`
	Reads  *readsResult  `json:"reads,omitempty"`
	Home   uint64        `json:"home,omitempty"`
}

type linkResult struct {
	Peer     uint64 `json:"peer"`
	Sent     uint64 `json:"sent_bytes"`
	Received uint64 `json:"received_bytes"`
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
	up := (time.Duration(r.UptimeMS) * time.Millisecond).Round(time.Second)
	node := []any{size(r.LogBytes), size(r.StateBytes), size(r.sent()), up, r.Core}
	for _, g := range r.Groups {
		role := g.Role
		if r.Stalled != "" {
			role += ", stalled"
		}
		if g.Home != 0 {
			role = fmt.Sprintf("%s, home %d", role, g.Home)
		}
		rows = append(rows, append([]any{r.Endpoint, r.ID, g.Group, role, g.Leader, g.Term, g.Commit, g.Applied, g.Durable}, node...))
		node = nil
	}
	return rows
}

func newStatusResult(n client.NodeStatus) statusResult {
	if n.Err != nil {
		return statusResult{Endpoint: n.Endpoint, Error: strings.TrimPrefix(n.Err.Error(), n.Endpoint+": ")}
	}
	s := n.Response
	r := statusResult{
		Endpoint: n.Endpoint, ID: s.GetId(), Cluster: s.GetCluster(), Core: s.GetCore(),
		Role: s.GetRole(), Leader: s.GetLeader(), Term: s.GetTerm(), Commit: s.GetCommit(),
		Applied: s.GetApplied(), Durable: s.GetDurable(),
		FirstIndex: s.GetFirstIndex(), LastIndex: s.GetLastIndex(),
		LogBytes: s.GetLogBytes(), StateBytes: s.GetStateBytes(),
		UptimeMS: s.GetUptimeMs(), PID: s.GetPid(), Members: members(s), Dropped: s.GetDroppedMessages(),
		LogWritten: s.GetLogWrittenBytes(), StateWritten: s.GetStateWrittenBytes(), Stalled: s.GetStalled(),
		Appended: s.GetAppendedBytes(),
	}
	for _, g := range s.GetGroups() {
		r.Groups = append(r.Groups, groupResult{
			Group: g.GetId(), Role: g.GetRole(), Leader: g.GetLeader(), Term: g.GetTerm(), Commit: g.GetCommit(),
			Applied: g.GetApplied(), Durable: g.GetDurable(), FirstIndex: g.GetFirstIndex(), LastIndex: g.GetLastIndex(),
			Coding: newCodingResult(g.GetCoding()), Leases: newLeasesResult(g.GetLeases()), Reads: newReadsResult(g.GetReads()), Home: g.GetHome(),
		})
	}
	for _, l := range s.GetLinks() {
		r.Links = append(r.Links, linkResult{Peer: l.GetPeer(), Sent: l.GetSentBytes(), Received: l.GetReceivedBytes()})
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
	for _, l := range r.Links {
		sum += l.Sent
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
