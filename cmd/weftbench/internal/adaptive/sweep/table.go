// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// document has the table, between begin and end.
const document = "ecraft/adaptive/README.md"

const (
	begin      = "<!-- begin: sweep -->\n| constant | value | what it is for | half | double |\n|---|---|---|---|---|\n"
	byChance   = "\nChance alone, by a hundredth more of `" + chance + "`: "
	end        = ".\n<!-- end: sweep -->"
	unmeasured = "not measured"
)

// table is the document, taken apart.
type table struct {
	before, after string
	rows          map[string]*row // by constant
	chance        string
}

type row struct{ purpose, half, double string }

func readTable(file string) (*table, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	before, rest, begun := strings.Cut(string(text), begin)
	rows, rest, told := strings.Cut(rest, byChance)
	effect, after, ended := strings.Cut(rest, end)
	if !begun || !told || !ended {
		return nil, fmt.Errorf("%s has no table between %q, %q and %q", file, begin, byChance, end)
	}
	t := &table{before: before, after: after, rows: map[string]*row{}, chance: effect}
	for line := range strings.Lines(rows) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 5 {
			return nil, fmt.Errorf("%s: row %q has %d cells, want 5", file, line, len(cells))
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		t.rows[strings.Trim(cells[0], "`")] = &row{cells[2], cells[3], cells[4]}
	}
	return t, nil
}

// row returns the row of a constant, which is new if there is none.
func (t *table) row(constant string) *row {
	if t.rows[constant] == nil {
		t.rows[constant] = &row{"", unmeasured, unmeasured}
	}
	return t.rows[constant]
}

// text is the document with a row for each constant, and no other.
func (t *table) text(list []setting) string {
	var b strings.Builder
	b.WriteString(t.before + begin)
	for _, c := range list {
		r := t.row(c.name)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.name, c.text, r.purpose, r.half, r.double)
	}
	return b.String() + byChance + t.chance + end + t.after
}
