// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/leases/clock"
	"github.com/weftraft/weft/raft"
)

func ExampleLeases() {
	c := &raft.Config{
		ID:              1,
		ElectionTick:    10,
		HeartbeatTick:   1,
		Storage:         raft.NewMemoryStorage(),
		MaxInflightMsgs: 256,
		PreVote:         true,
		CheckQuorum:     true,
		Clock:           clock.Watched{}, // and clock.Watch, once in the process
		Leases: &raft.Leases{
			Tick:   100 * time.Millisecond,                           // how often the host calls Tick
			Wanted: []leases.Want{{Nodes: []leases.NodeID{1, 2, 3}}}, // all keys, at all of three members
		},
	}
	_, err := raft.NewRawNode(c)
	fmt.Println("error:", err)

	c.PreVote, c.Leases.Tick = false, 0
	_, err = raft.NewRawNode(c)
	fmt.Println(err)
	// Output:
	// error: <nil>
	// raft: Config.Leases need PreVote: without it a node that comes back ends all leases
	// raft: Config.Leases.Tick is 0s; it must be the time between two calls of Tick
}
