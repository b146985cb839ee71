// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command leases shows that the tests of leases find bugs: it takes rules of
// leases out of the sources of packages leases and raft, one at a time, runs on each
// the seeds of TestClusters or TestLeased, or the test that is made for the rule, and prints
// which found it. It fails if a bug is not found, or can no longer be put in.
//
// Run it at the root of the module: go run ./rafttest/mutants/leases
package main

import (
	"cmp"
	"flag"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

func main() { mutate.Main(mutants) }

// bug takes out a rule: texts that occur once each in a file are replaced.
type bug struct {
	// rule is the number that the rule has in the package's documentation.
	rule  string
	what  string
	file  string
	edits [][2]string
	more  []mutate.Change
	// by is the test that must find the bug; empty: seeds must find it. If what begins with "in
	// Raft", the test is in package raft, and the seeds are of TestLeased; if what begins with
	// "in Host", the test is in the package of the file. Else the seeds are of TestClusters.
	by string
}

var (
	seeds = flag.Int("seeds", 4000, "with how many seeds of TestClusters to look")
	first = flag.Uint64("first", 1, "the first of the seeds")
	fresh = flag.Bool("fresh", false, "look at what clients see only, and not at the other invariants")
	all   = flag.Bool("all-by-seeds", false, "look for every bug with seeds, also for those that a test is made for")
)

func mutants() []mutate.Mutant {
	var list []mutate.Mutant
	inOrder := slices.Concat(table, raftTable)
	slices.SortStableFunc(inOrder, func(a, b bug) int { return cmp.Compare(a.number(), b.number()) })
	for _, b := range inOrder {
		if *all && !strings.HasPrefix(b.what, "in Host") {
			b.by = ""
		}
		tests, flags := "leases", []string{"-test.run=^" + b.by + "$", "-test.timeout=5m"}
		inRaft := strings.HasPrefix(b.what, "in Raft")
		switch {
		case inRaft && b.by == "":
			tests, flags = "rafttest", []string{"-test.run=^TestLeased$", "-test.timeout=20m",
				fmt.Sprintf("-leased-seeds=%d", *seeds), fmt.Sprintf("-leased-first=%d", *first), "-stop=1"}
		case inRaft:
			tests = "raft"
		case strings.HasPrefix(b.what, "in Host"):
			tests = path.Dir(b.file)
		case b.by == "":
			flags = []string{"-test.run=^TestClusters$", "-test.timeout=20m", "-test.cpu=1",
				fmt.Sprintf("-lease-seeds=%d", *seeds), fmt.Sprintf("-lease-first=%d", *first), "-lease-count=false"}
			if *fresh {
				flags = append(flags, "-lease-only=Fresh")
			}
		}
		list = append(list, mutate.Mutant{What: b.rule + ": " + b.what, File: b.file, Edits: b.edits, More: b.more, Tests: tests,
			Stages: [][]string{flags}, Verdict: b.verdict})
	}
	return list
}

// number is that of the rule.
func (b bug) number() int {
	n, err := strconv.Atoi(strings.TrimPrefix(b.rule, "L"))
	if err != nil {
		panic(err) // the table is wrong
	}
	return n
}

var foundSeed = regexp.MustCompile(`seed (\d+): ([A-Za-z ]+) does not hold`)

// verdict reads from the output of a failed run what found the bug.
func (b bug) verdict(out string, _ []string) mutate.Finding {
	f := mutate.Finding{By: b.by, Detail: "it fails"}
	if m := foundSeed.FindStringSubmatch(out); m != nil {
		f.Detail = m[2]
		if b.by == "" {
			f.By = fmt.Sprintf("seed %s of %d", m[1], *seeds)
		}
		return f
	}
	if b.by == "" || strings.Contains(out, "panic: test timed out") {
		if len(out) > 400 {
			out = out[len(out)-400:]
		}
		f.Err = fmt.Errorf("the tests failed without naming an invariant: %s", out)
	}
	return f
}
