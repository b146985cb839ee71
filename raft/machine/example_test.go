// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/raft/machine"
)

// A host that drives package raft gives the adaptive policy what to measure with.
func Example() {
	config := raft.Config{Clock: machine.Clock{}, Coding: &raft.Coding{Busy: machine.Busy}}
	began := config.Clock.Now()
	share := config.Coding.Busy()
	fmt.Println(config.Clock.Now() >= began, 0 <= share && share <= 1)
	// Output: true true
}
