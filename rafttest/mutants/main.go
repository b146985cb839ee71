// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants shows that tests find bugs: it takes rules out of the sources, one at a time, runs
// on each the test that needs the rule, or seeds, and prints which found it. It fails if a bug is not
// found, or can no longer be put in.
//
// Run it at the root of the module, with the name of a set of bugs behind all flags:
//
//	go run ./rafttest/mutants               coded replication, by the directed schedules of rafttest and seeds
//	go run ./rafttest/mutants plain         plain Raft, by the lockstep tests
//	go run ./rafttest/mutants joints        where coding, leases and changes of the members meet
//	go run ./rafttest/mutants late          disks that hang, and slow nodes
//	go run ./rafttest/mutants compartments  gateways, names and zones
//	go run ./rafttest/mutants catchup       the budget in which groups catch up
//	go run ./rafttest/mutants leases        roster leases
//	go run ./rafttest/mutants exhaust       coding, leases and changes, by the exploration of small groups
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

func main() { mutate.Main(mutants) }

var (
	with  = flag.String("with", "", "look for every bug with seeds of this test of rafttest, on one processor: TestCoded, TestCodedFalls or TestCodedBrief")
	seeds = flag.Int("seeds", 0, "with how many seeds: with -with 1000, and of leases 4000, if it is 0")
	first = flag.Uint64("first", 1, "the first of the seeds, with -with or of leases")
)

// sets has the bugs by the name of their set.
var sets = map[string]func() []mutate.Mutant{
	"plain":        plainMutants,
	"coded":        func() []mutate.Mutant { return mutantsOf(table, trials) },
	"joints":       func() []mutate.Mutant { return mutantsOf(joints) },
	"late":         func() []mutate.Mutant { return mutantsOf(late, placing) },
	"compartments": compartments,
	"catchup":      func() []mutate.Mutant { return mutantsOf(catchUps) },
	"leases":       leaseMutants,
	"exhaust":      exhaustMutants,
}

// mutants returns those of the set that the command line names.
func mutants() ([]mutate.Mutant, error) {
	name := cmp.Or(flag.Arg(0), "coded")
	set := sets[name]
	if set == nil || flag.NArg() > 1 {
		return nil, fmt.Errorf("%q, want one of %s", flag.Args(), strings.Join(slices.Sorted(maps.Keys(sets)), ", "))
	}
	return set(), nil
}

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

func mutantsOf(bugs ...[]bug) (all []mutate.Mutant) {
	for _, b := range slices.Concat(bugs...) {
		if *with != "" {
			b.by, b.within = "", cmp.Or(*seeds, 1000)
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
	foundSeed = regexp.MustCompile(`seed (\d+): ([A-Za-z ]+) does not hold`)
	violation = regexp.MustCompile(`VIOLATION (.*)`)
)

// violated returns what a test says of the rule that does not hold, in short.
func violated(out string) (detail string, ok bool) {
	m := violation.FindStringSubmatch(out)
	if m == nil {
		return "", false
	}
	return m[1][:min(len(m[1]), 60)], true
}

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
	} else if detail, ok := violated(out); ok {
		f.Detail = detail
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
