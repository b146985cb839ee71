// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// printCoding prints the nodes' status of coded replication, and the last coded
// entries, of each group once. With --json the nodes' objects have both.
func (f *clientFlags) printCoding(cmd *cobra.Command, nodes []client.NodeStatus) error {
	var rows, entries [][]any
	recent := map[uint64][]*kvpb.StatusResponse_CodedEntry{}
	for _, n := range nodes {
		r := newStatusResult(n)
		for _, g := range r.Groups {
			if g.Coding == nil {
				continue
			}
			rows = append(rows, g.codingRow(r.GetId(), r.GetAppendedBytes()))
			if last := recent[g.Group]; len(g.Coding.Recent) > 0 && (len(last) == 0 || g.Coding.Recent[0].Index > last[0].Index) {
				recent[g.Group] = g.Coding.Recent
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(recent)) {
		for _, e := range recent[group] {
			entries = append(entries, []any{group, e.Index, e.Term, size(e.GetPayloadBytes()), levelOf(e), e.GetRestoredBy(), held(e)})
		}
	}
	return errors.Join(
		f.more(cmd, rows, "NODE", "GROUP", "CODES", "COMPLETE", "LAG", "DELAY", "CODED", "APPENDED", "PUSHED", "JOINED", "MEMORY"),
		f.more(cmd, entries, "GROUP", "INDEX", "TERM", "PAYLOAD", "LEVEL", "UNITS", "HELD"))
}

// codingRow is a node's line for a group. APPENDED is the node's.
func (g groupResult) codingRow(node, appended uint64) []any {
	c, codes := g.Coding, "-"
	if c.Active {
		codes = "yes"
	} else if g.Role == "leader" {
		codes = "no"
	}
	if c.Dense {
		codes += ", none left"
	}
	lag := max(g.Commit, c.Completed) - c.Completed
	delay := "-"
	if c.Delayed > 0 {
		delay = (time.Duration(c.DelayUs/c.Delayed) * time.Microsecond).String()
	}
	return []any{node, g.Group, codes, c.Completed, lag, delay, size(c.EncodedBytes), size(appended), size(c.PushedBytes), size(c.CompletedBytes), size(c.MemoryBytes)}
}

// levelOf says how many restore the entry, or that shares differ.
func levelOf(e *kvpb.StatusResponse_CodedEntry) string {
	shares := slices.Collect(maps.Values(e.GetUnits()))
	if len(shares) > 0 && slices.Max(shares)-slices.Min(shares) > 1 {
		return fmt.Sprintf("%d, uneven", e.Level)
	}
	return fmt.Sprint(e.Level)
}

// held says what each member was given.
func held(e *kvpb.StatusResponse_CodedEntry) string {
	parts := []string{fmt.Sprintf("%d: all", e.Encoder)}
	for _, id := range slices.Sorted(maps.Keys(e.Units)) {
		parts = append(parts, fmt.Sprintf("%d: %d", id, e.Units[id]))
	}
	return strings.Join(parts, "  ")
}
