// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import "testing"

// TestLeadsATermOnce crashes nodes that lead a term before it is on their disk.
// If they could, they would be elected for the same term again, with the votes
// they got the first time, and write other entries of the same index and term.
func TestLeadsATermOnce(t *testing.T) {
	for _, p := range []processKind{processCore, processHost} {
		runSeeds(1, 400, options{Process: p, Depose: true}, func(r runResult) bool {
			if r.Err != nil {
				t.Errorf("with Options.Depose: %s", report(r))
			}
			return r.Err == nil
		})
	}
}
