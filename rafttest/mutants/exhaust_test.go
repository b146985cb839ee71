// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// A mutant on which the exploration does not end in time may be one that nothing finds.
func TestExplorationThatTakesTooLongFindsNothing(t *testing.T) {
	if f := exploredVerdict("panic: test timed out after 1h0m0s\n", nil); f.Err == nil {
		t.Errorf("found by %s", f)
	}
	found := "=== RUN   TestNothingIsWrongInAnyScenario\n--- FAIL: TestNothingIsWrongInAnyScenario/votes (1.00s)\n    VIOLATION election safety\n"
	if f := exploredVerdict(found, nil); f.Err != nil || f.By != "votes" || f.Detail != "election safety" {
		t.Errorf("found by %s, %s", f, f.Detail)
	}
}
