// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

// TestMutants checks, without running them, that every mutant can be put in.
func TestMutants(t *testing.T) {
	if err := mutate.Check(t.Context(), mutants()); err != nil {
		t.Error(err)
	}
}
