// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestPlainMutantsAreOfEachKind(t *testing.T) {
	areas := map[string]int{}
	for _, b := range plain {
		areas[b.area]++
	}
	for _, area := range []string{"election", "votes", "append", "commit", "snapshot", "read index", "transfer",
		"joint configuration", "limits", "async writes", "Node", "MemoryStorage"} {
		if areas[area] < 3 {
			t.Errorf("%s has %d mutants, want at least 3", area, areas[area])
		}
	}
	if len(plain) < 36 {
		t.Errorf("%d mutants, want at least 36", len(plain))
	}
}
