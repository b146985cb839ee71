// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"time"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// The settings of leases where a tick is [Tick]: the proportions are those of kvdemo, whose
// leases last for two election timeouts.
const (
	LeaseTime = 20 * Tick
	FailTime  = 10 * Tick
)

// LeaseSides returns Raft with leases off, on with every node a responder, and on with
// early accept notes as well.
func LeaseSides() []Side {
	return []Side{
		{Name: "leases off", About: "PreVote and CheckQuorum, no leases", Configure: func(*raft.Config) {}},
		leased("leases", "every node is a responder", false),
		leased("leases, notes", "every node is a responder, with early accept notes", true),
	}
}

func leased(name, about string, notes bool) Side {
	return Side{Name: name, About: about, Configure: func(c *raft.Config) {
		_, cs, _ := c.Storage.InitialState() // a cluster's storage has one
		var all []leases.NodeID
		for _, id := range cs.GetVoters() {
			all = append(all, leases.NodeID(id))
		}
		c.Leases = &raft.Leases{
			Tick: Tick, Boot: 1, Lease: LeaseTime, Fail: FailTime, Resolution: 100 * time.Microsecond, Notes: notes,
			Wanted: []leases.Want{{Nodes: all}},
		}
	}}
}
