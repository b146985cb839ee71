// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

// TestMutants checks, without running them, that every mutant of every set can be put in and compiles, that
// the tests that are named for coded replication exist, and that every directed schedule is there because some mutant fails it.
func TestMutants(t *testing.T) {
	var mutants []mutate.Mutant
	for _, set := range sets {
		mutants = append(mutants, set()...)
	}
	if err := mutate.Check(t.Context(), mutants); err != nil {
		t.Error(err)
	}
	all := slices.Concat(table, trials, joints, late, placing, gateways, named, zoned, readers, catchUps)
	for _, b := range all {
		if (b.by == "") == (b.within == 0) {
			t.Errorf("%s: found by %q and within %d seeds; exactly one must be said", b.what, b.by, b.within)
		}
	}
	files, err := filepath.Glob("../testdata/coded/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schedules: %v", err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		if !variant(name) && !slices.ContainsFunc(table, func(b bug) bool { return b.by == name }) {
			t.Errorf("no mutant fails the schedule %s", name)
		}
	}
	t.Chdir("../..")
	for _, b := range all {
		if strings.HasPrefix(b.by, "Test") && packageOf(b) == "" {
			t.Errorf("%s: there is no %s", b.what, b.by)
		}
	}
}

// variant reports whether a schedule is one of several that differ in a setting.
func variant(name string) bool { return strings.HasPrefix(name, "04-two-die-after-commit-") }
