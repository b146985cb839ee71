// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weftraft/weft/internal/lab"
)

// reportBytes puts the cells into tables: rows are groups, failures and sizes,
// columns are ways of replication.
func reportBytes(cells []cell) *lab.Section {
	s := &lab.Section{
		Virtual: true, Verb: "virtual bytes",
		Title: "Bytes for a byte of payload",
		Intro: "Under each way: what the leader sends, and what all nodes send together (net), for a byte of committed payload,\n" +
			"control messages and headers included. Least is (healthy-1)/(healthy-f), below which an entry that all healthy\n" +
			"members acknowledge cannot survive any f failures.",
		Data: cells,
	}
	var sides []string
	for _, c := range cells {
		name := c.Side
		if c.Model {
			name += "*"
		}
		if !slices.Contains(sides, name) {
			sides = append(sides, name)
		}
	}
	t := lab.Table{Title: "1 Gbit a node, saturated by closed loops, in virtual time:"}
	head := []string{"N", "failed", "size", "least"}
	for _, side := range sides {
		head = append(head, side)
		if !strings.HasSuffix(side, "*") {
			head = append(head, "net")
		}
	}
	t.Rows = append(t.Rows, head)
	for i := 0; i < len(cells); {
		row := []string{strconv.Itoa(cells[i].Voters), strconv.Itoa(cells[i].Failed), lab.Bytes(cells[i].Size), fmt.Sprintf("%.3f", cells[i].Least)}
		first := i
		for ; i < len(cells) && sameRow(cells[i], cells[first]); i++ {
			row = append(row, cells[i].figures()...)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{
		"*: worked out from the sizes of messages, not run; -: nothing commits with so many failures. All of these have guarantees\n" +
			"that are weaker than Raft's, see package ecraft; only crossword's followers complete payloads.",
		"full: full copies. ours: coded, the default policy. levelled: coded, the highest level that the healthy can commit.\n" +
			"fixed: coded, the highest level whatever happens; what then cannot commit gets more units in later entries.",
	}
	s.Tables = append(s.Tables, t)
	return s
}

func (c cell) figures() []string {
	switch {
	case c.Stuck:
		return []string{"-"}
	case c.Model:
		return []string{fmt.Sprintf("%.3f", c.Leader)}
	}
	return []string{fmt.Sprintf("%.3f", c.Leader), fmt.Sprintf("%.3f", c.Network)}
}

func sameRow(a, b cell) bool {
	return a.Voters == b.Voters && a.Failed == b.Failed && a.Size == b.Size
}
