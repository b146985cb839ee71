// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command cover measures the share of the raft package that the lockstep tests, the package's own
// tests and simulated clusters run together, and fails if the share is below a minimum. The last
// two check the core's invariants at each step.
//
// Run the command in rafttest/lockstep: go run ./cover. With -v the command lists the blocks that
// no test runs.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const target = "github.com/weftraft/weft/raft"

func main() {
	least := flag.Float64("min", 90, "fail below this percentage")
	lockstep := flag.String("lockstep", "", "a profile that the lockstep tests wrote; if empty, a quarter of their seeds run")
	verbose := flag.Bool("v", false, "list the blocks that no test runs")
	flag.Parse()
	if err := run(*lockstep, *least, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "cover:", err)
		os.Exit(1)
	}
}

// suite is tests that run in a directory.
type suite struct {
	name, dir string
	args      []string
}

// run writes a profile.
func (s suite) run(out string) error {
	cmd := exec.Command("go", append([]string{"test", "-count=1", "-vet=off", "-coverpkg=" + target, "-coverprofile=" + out}, s.args...)...)
	cmd.Dir = s.dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", s.name, err, text)
	}
	return nil
}

func run(lockstep string, least float64, verbose bool) error {
	scratch, err := os.MkdirTemp("", "cover")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the system's temporary directory is cleaned anyway
	suites := []suite{
		// More seeds cover no more code.
		{"lockstep", ".", []string{".", "-first", "-seeds=140", "-fresh=0"}},
		// The others check the core's invariants at each step, which takes as long as the run: so
		// a tenth of the seeds, and the schedules.
		{"its own tests", "../..", []string{"-tags=invariants", "./raft/..."}},
		{"clusters", "../..", []string{"-tags=invariants", "./rafttest", "-run=TestScripts|TestSim$|TestCoded|TestJoints$",
			"-seeds=200", "-coded-seeds=150", "-joint-seeds=200"}},
	}
	var all profile
	for i, suite := range suites {
		out := filepath.Join(scratch, fmt.Sprint(i))
		if i == 0 && lockstep != "" {
			out = lockstep
		} else if err := suite.run(out); err != nil {
			return err
		}
		one, err := readProfile(out)
		if err != nil {
			return err
		}
		fmt.Printf("%-14s %5.1f%% of %s\n", suite.name, one.percent(), target)
		all = all.merge(one)
	}
	percent := all.percent()
	fmt.Printf("%-14s %5.1f%%\n", "together", percent)
	if verbose {
		for _, block := range all.missed() {
			fmt.Println("not run:", block)
		}
	}
	if percent < least {
		return fmt.Errorf("%.1f%% is below %.1f%%; go run ./cover -v lists what no test runs", percent, least)
	}
	return nil
}
