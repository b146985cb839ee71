// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/leases/clock"
	"github.com/weftraft/weft/raft"
)

// A host that drives package raft looks at its clock before it turns leases on, and has the clock
// watched while it runs. rawnode.Host does so by itself.
func Example() {
	if err := clock.Check(100 * time.Millisecond); err != nil {
		fmt.Println(err)
		return
	}
	stop := clock.Watch()
	defer stop()
	config := raft.Config{Clock: clock.Watched{}, Leases: &raft.Leases{Tick: 100 * time.Millisecond}}
	before := config.Clock.Now()
	fmt.Println("the clock falls:", config.Clock.Now() < before)
	// Output: the clock falls: false
}
