// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest_test

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/rawnode/rawnodetest"
)

// A leader is cut off; the other nodes elect a new leader, and no acknowledged command is lost. In
// a test, t is the *testing.T.
func ExampleCluster() {
	t := &record{}
	c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{Seed: 3, StateMachine: ledgersOf("")})
	leader := c.WaitLeader()
	fmt.Println(c.MustPropose(leader, []byte("a")))

	c.Partition([]uint64{leader}) // nodes on no side are alone, too
	cut := c.Propose(leader, []byte("a"))
	c.Run(5 * time.Second)
	fmt.Println("acknowledged:", cut.Ended())

	c.Heal()
	c.Crash(leader, false)
	node := leader%3 + 1
	c.MustPropose(node, []byte("b"))
	c.Start(leader)
	c.Agree(time.Minute, readLedger)
	fmt.Println(readLedger(c.StateMachine(node)))
	// Output:
	// 1
	// acknowledged: false
	// {"a":1,"b":1} <nil>
}
