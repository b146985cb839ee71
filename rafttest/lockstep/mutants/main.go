// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants shows that the lockstep tests find bugs. The command puts one-line bugs into the
// raft package, one at a time, runs the tests on each, and prints the test that found the bug, with
// its seed. The command fails if no test finds a bug, or if a bug can no longer be put in.
//
// Run the command in rafttest/lockstep: go run ./mutants
package main

import (
	"regexp"
	"strings"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

func main() { mutate.Main(mutants) }

// bug is a replacement of a text that occurs once in one file of the raft package.
type bug struct {
	area, what string
	file       string
	old, now   string
}

func mutants() []mutate.Mutant {
	var all []mutate.Mutant
	for _, b := range table {
		all = append(all, mutate.Mutant{
			What: b.area + ": " + b.what, File: "raft/" + b.file, Edits: [][2]string{{b.old, b.now}},
			Tests: "rafttest/lockstep", Stages: stages(b.area), Verdict: verdict,
		})
	}
	return all
}

// stages returns the tests to run on a bug, the tests of the bug's own area first, to save time.
// The tests use fixed seeds only, so that the outcome does not depend on luck.
func stages(area string) [][]string {
	const hangs = "-test.timeout=100s"
	cores := []string{"-test.run=^TestLockstep$", hangs, "-first", "-fresh=0"}
	nodes := []string{"-test.run=^TestNode$", hangs, "-first", "-fresh=0"}
	rest := []string{"-test.run=^(TestMemoryStorage|TestUtil|TestConfig)$", hangs}
	switch area {
	case "Node":
		return [][]string{nodes, cores, rest}
	case "MemoryStorage":
		return [][]string{rest, cores, nodes}
	default:
		return [][]string{cores, nodes, rest}
	}
}

var (
	failedTest = regexp.MustCompile(`--- FAIL: (\w+)`)
	foundSeed  = regexp.MustCompile(`seed (\d+), call \d+: (.*)`)
)

// verdict reads the test that found the bug from the output of a failed run.
func verdict(out string, flags []string) mutate.Finding {
	f := mutate.Finding{By: strings.Trim(strings.TrimPrefix(flags[0], "-test.run="), "^$")}
	if m := failedTest.FindStringSubmatch(out); m != nil {
		f.By = m[1]
	}
	switch m := foundSeed.FindStringSubmatch(out); {
	case m != nil:
		f.By, f.Detail = f.By+", seed "+m[1], m[2]
	case strings.Contains(out, "test timed out"):
		f.Detail = "it hangs"
	case strings.Contains(out, "panic:"):
		f.Detail = "a goroutine of Node panicked"
	}
	return f
}
