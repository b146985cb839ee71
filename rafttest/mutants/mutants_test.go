// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMutants checks, without running them, that every mutant can be put in, and
// that every directed schedule is there because some mutant fails it.
func TestMutants(t *testing.T) {
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, m := range table {
		if _, err := m.apply(root); err != nil {
			t.Errorf("%s: %v", m.what, err)
		}
		if slices.Contains(seen, m.what) {
			t.Errorf("%s: it is there twice", m.what)
		}
		seen = append(seen, m.what)
		if (m.by == "") == (m.within == 0) {
			t.Errorf("%s: found by %q and within %d seeds; exactly one must be said", m.what, m.by, m.within)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "rafttest/testdata/coded/*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no schedules: %v", err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		if !variant(name) && !slices.ContainsFunc(table, func(m mutant) bool { return m.by == name }) {
			t.Errorf("no mutant fails the schedule %s", name)
		}
	}
}

// variant reports whether a schedule is one of several that differ in a setting.
func variant(name string) bool { return strings.HasPrefix(name, "04-two-die-after-commit-") }
