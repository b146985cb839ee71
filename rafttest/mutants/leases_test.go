// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

var (
	ruleOfDoc = regexp.MustCompile(`(?m)^// (L\d+)\. `)
	testName  = regexp.MustCompile(`\bTest[A-Z]\w+`)
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestEveryRuleOfLeasesHasAMutant checks, too, that the tests that are named exist.
func TestEveryRuleOfLeasesHasAMutant(t *testing.T) {
	root, err := mutate.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "leases", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	rules := ruleOfDoc.FindAllSubmatch(doc, -1)
	for i, m := range rules {
		if rule := string(m[1]); rule != fmt.Sprintf("L%d", i+1) {
			t.Errorf("rule %s stands at place %d", rule, i+1)
		} else if !slices.ContainsFunc(leased, func(b leaseBug) bool { return b.rule == rule }) {
			t.Errorf("no mutant takes rule %s out", rule)
		}
	}
	tests := testsOf(t, filepath.Join(root, "leases"))
	for _, name := range testName.FindAllString(string(doc), -1) {
		if !slices.Contains(tests, name) {
			t.Errorf("leases/doc.go names %s, which is not there", name)
		}
	}
	for _, dir := range []string{"raft", "rawnode", "internal/replica"} {
		tests = append(tests, testsOf(t, filepath.Join(root, dir))...)
	}
	for _, b := range slices.Concat(leased, leasedInRaft) {
		if b.by != "" && !slices.Contains(tests, b.by) {
			t.Errorf("%s: %s is not there", b.what, b.by)
		}
	}
}

// testsOf lists the tests of a package.
func testsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	var names []string
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllSubmatch(src, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}
