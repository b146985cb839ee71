// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// group is a size of values, and what both sides on Weft reach of the puts of etcd as
// released: 1 is as many, 2 twice as many.
type group struct {
	size        string
	weft, coded float64
}

// The columns that a table of the report must have, in this order.
const columns = "| value | clients | ratio of puts |"

// ratios reads the rows of one number of clients from the table of a section.
func ratios(report, section, clients string) (groups []group, err error) {
	_, table, ok := strings.Cut(report, "\n"+section+"\n")
	if !ok {
		return nil, fmt.Errorf("no section %q: run make bench-etcd until the report is complete", section)
	}
	table, _, _ = strings.Cut(table, "\n### ")
	table, _, _ = strings.Cut(table, "\n## ")
	if !strings.Contains(table, "\n"+columns) {
		return nil, fmt.Errorf("section %q has no table that begins with %q", section, columns)
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 || strings.TrimSpace(cells[1]) != clients {
			continue
		}
		g := group{size: strings.TrimSpace(cells[0])}
		weft, coded, ok := strings.Cut(strings.TrimSpace(cells[2]), " / ")
		if g.weft, err = ratio(weft); err != nil || !ok {
			return nil, fmt.Errorf("section %q, %s: ratio of puts is %q, want two numbers such as 1.00 / 2.79", section, g.size, cells[2])
		}
		if g.coded, err = ratio(coded); err != nil {
			return nil, fmt.Errorf("section %q, %s: ratio of puts is %q, want two numbers such as 1.00 / 2.79", section, g.size, cells[2])
		}
		groups = append(groups, g)
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("section %q has no row of %s clients", section, clients)
	}
	return groups, nil
}

// maxRatio bounds what fits into the picture.
const maxRatio = 100

// ratio reads a ratio.
func ratio(text string) (float64, error) {
	r, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err == nil && !(r > 0 && r <= maxRatio) { // not a number is neither
		err = fmt.Errorf("ratio %v, want more than 0 and at most %d", r, maxRatio)
	}
	return r, err
}
