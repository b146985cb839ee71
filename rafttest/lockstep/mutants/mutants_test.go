// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
)

// TestMutants checks, without running them, that every mutant can be put in,
// and that there are enough of each kind.
func TestMutants(t *testing.T) {
	source, err := sourceDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	areas, seen := map[string]int{}, map[string]bool{}
	for _, m := range table {
		if _, err := m.apply(source); err != nil {
			t.Errorf("%s: %s: %v", m.area, m.what, err)
		}
		if name := m.area + ": " + m.what; seen[name] || m.old == m.new {
			t.Errorf("%s: it is there twice, or changes nothing", name)
		} else {
			seen[name] = true
		}
		areas[m.area]++
	}
	for _, area := range []string{"election", "votes", "append", "commit", "snapshot", "read index", "transfer",
		"joint configuration", "limits", "async writes", "Node", "MemoryStorage"} {
		if areas[area] < 3 {
			t.Errorf("%s has %d mutants, want at least 3", area, areas[area])
		}
	}
	if len(table) < 36 {
		t.Errorf("%d mutants, want at least 36", len(table))
	}
}
