// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tally counts the cases that schedules have covered: a row is a group and a name.
type tally map[string]int

// Hit adds 1 to a row.
func (t tally) Hit(row string) { t[row]++ }

// Add adds the counts of another tally.
func (t tally) Add(other tally) {
	for row, n := range other {
		t[row] += n
	}
}

// Missing returns the rows that were never hit.
func (t tally) Missing(rows []string) []string {
	var out []string
	for _, row := range rows {
		if t[row] == 0 {
			out = append(out, row)
		}
	}
	return out
}

// String returns a table: a line for each group, with names and counts.
func (t tally) String() string {
	var b strings.Builder
	group, width := "", 0
	for _, row := range slices.Sorted(maps.Keys(t)) {
		g, name, _ := strings.Cut(row, ": ")
		item := fmt.Sprintf("  %s %d", name, t[row])
		if g != group {
			group, width = g, 0
			fmt.Fprintf(&b, "\n%s\n", g)
		}
		if width += len(item); width > 118 {
			b.WriteString("\n")
			width = len(item)
		}
		b.WriteString(item)
	}
	b.WriteString("\n")
	return b.String()
}
