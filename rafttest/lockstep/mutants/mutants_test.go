// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

// TestMutants checks, without running the tests, that every mutant can be put in and compiles, and that there
// are enough mutants of each kind.
func TestMutants(t *testing.T) {
	if err := mutate.Check(t.Context(), mutants()); err != nil {
		t.Error(err)
	}
	areas := map[string]int{}
	for _, b := range table {
		areas[b.area]++
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
