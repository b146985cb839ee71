// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// profile is the content of a coverage profile: the blocks of code, by position.
type profile map[string]block

type block struct {
	statements int
	run        bool
}

// readProfile reads the output of go test -coverprofile: a line with the mode, and then lines of
// "file.go:from,to statements count".
func readProfile(path string) (profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	p := profile{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "mode:") {
			continue
		}
		var (
			where      string
			statements int
			count      uint64
		)
		if _, err := fmt.Sscanf(lines.Text(), "%s %d %d", &where, &statements, &count); err != nil {
			return nil, fmt.Errorf("%s: %q is no line of a profile: %w", path, lines.Text(), err)
		}
		p[where] = block{statements: statements, run: p[where].run || count > 0}
	}
	return p, lines.Err()
}

// merge returns a profile of the blocks that at least one of two profiles has run.
func (p profile) merge(other profile) profile {
	both := profile{}
	maps.Copy(both, p)
	for where, b := range other {
		both[where] = block{statements: b.statements, run: b.run || both[where].run}
	}
	return both
}

// percent returns the share of statements that were run.
func (p profile) percent() float64 {
	run, all := 0, 0
	for _, b := range p {
		all += b.statements
		if b.run {
			run += b.statements
		}
	}
	if all == 0 {
		return 0
	}
	return 100 * float64(run) / float64(all)
}

// missed lists the blocks that were not run.
func (p profile) missed() []string {
	var out []string
	for where, b := range p {
		if !b.run {
			out = append(out, where)
		}
	}
	slices.Sort(out)
	return out
}
