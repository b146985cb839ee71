// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants shows that the tests of coded replication find bugs: it takes
// rules of coding out of the sources, one at a time, runs on each the directed
// schedule of rafttest that needs the rule, or seeds, and prints which found it.
// It fails if a bug is not found, or can no longer be put in.
//
// Run it at the root of the module: go run ./rafttest/mutants, with -joints for the bugs where
// coding, leases and changes of the members meet, with -late for the bugs of disks that hang, and of slow nodes, with -compartments for
// the bugs of gateways, names and zones, and with -catchup for those of the budget in which groups catch up.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

func main() { mutate.Main(mutants) }

// bug is put into one file: texts that occur once each are replaced.
type bug struct {
	what string
	file string
	// edits are pairs: a text, and the text in its place.
	edits [][2]string
	// by is the directed schedule that must find it, a file of
	// rafttest/testdata/coded; or a test of the file's own package, of rawnode or of
	// raft, if it begins with "Test"; or seeds of TestCoded, if it is empty.
	by string
	// within bounds the seeds.
	within int
}

var (
	only     = flag.Bool("joints", false, "only the bugs where coding, leases and changes of the members meet")
	lateOnly = flag.Bool("late", false, "only the bugs of nodes whose disks hang, or that are slow")
	gates    = flag.Bool("compartments", false, "only the bugs of gateways, names and zones")
	catching = flag.Bool("catchup", false, "only the bugs of the budget in which groups catch up")
	with     = flag.String("with", "", "look for every bug with seeds of this test of rafttest, on one processor: TestCoded, TestCodedFalls or TestCodedBrief")
	seeds    = flag.Int("seeds", 1000, "with how many seeds, if -with is set")
	first    = flag.Uint64("first", 1, "the first of the seeds, if -with is set")
)

func mutants() []mutate.Mutant {
	switch {
	case *only:
		return mutantsOf(joints)
	case *gates:
		bugs := slices.Concat(gateways, named, zoned, readers)
		all := mutantsOf(bugs)
		for i, b := range bugs {
			if b.by != "" {
				continue
			}
			all[i].Tests, all[i].Stages = "rafttest/nodes", [][]string{gateFlags(b)}
		}
		return all
	case *catching:
		return mutantsOf(catchUps)
	case *lateOnly:
		return mutantsOf(slices.Concat(late, placing))
	}
	return mutantsOf(slices.Concat(table, trials))
}

func mutantsOf(bugs []bug) (all []mutate.Mutant) {
	for _, b := range bugs {
		if *with != "" {
			b.by, b.within = "", *seeds
		}
		m := mutate.Mutant{What: b.what, File: b.file, Edits: b.edits, Tests: "rafttest", Verdict: b.verdict}
		flags := []string{"-test.run=^TestScripts$/^" + b.by + "$", "-test.timeout=2m"}
		switch {
		case b.by == "":
			flags = []string{"-test.run=^TestCoded$", fmt.Sprintf("-coded-seeds=%d", b.within), "-stop=1", "-test.timeout=20m"}
		case strings.HasPrefix(b.by, "Test"):
			m.Tests, flags[0] = packageOf(b), "-test.run=^"+b.by+"$"
		}
		if *with != "" {
			flags[0] = "-test.run=^" + *with + "$"
			flags = append(flags, "-test.cpu=1", fmt.Sprintf("-coded-first=%d", *first))
		}
		m.Stages = [][]string{flags}
		all = append(all, m)
	}
	return all
}

var (
	foundSeed = regexp.MustCompile(`seed (\d+): ([a-z ]+) does not hold`)
	violation = regexp.MustCompile(`VIOLATION (.*)`)
)

// verdict reads from the output of a failed run what found the bug.
func (b bug) verdict(out string, _ []string) mutate.Finding {
	f := mutate.Finding{By: b.by, Detail: "the text differs"}
	switch {
	case b.by == "":
		f.By, f.Detail = fmt.Sprintf("one of %d seeds", b.within), "it panics"
	case strings.HasPrefix(b.by, "Test"):
		f.Detail = "it fails"
	}
	if m := foundSeed.FindStringSubmatch(out); m != nil {
		f.By, f.Detail = fmt.Sprintf("seed %s of %d", m[1], b.within), m[2]
	} else if m := violation.FindStringSubmatch(out); m != nil {
		f.Detail = m[1][:min(len(m[1]), 60)]
	}
	if strings.Contains(out, "test timed out") {
		if f.Detail = "it hangs"; b.by == "" {
			f.Err = errors.New("the tests take too long")
		}
	}
	return f
}

// packageOf returns the folder, below the present one, of the test that must find a bug.
func packageOf(b bug) string {
	for _, dir := range []string{path.Dir(b.file), "rawnode", "raft"} {
		files, _ := filepath.Glob(path.Join(dir, "*_test.go")) // no error: the pattern is right
		for _, f := range files {
			if src, err := os.ReadFile(f); err == nil && strings.Contains(string(src), "func "+b.by+"(") {
				return dir
			}
		}
	}
	return ""
}
