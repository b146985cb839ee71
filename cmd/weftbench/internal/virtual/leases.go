// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"time"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// The settings of leases where a tick is [tick]: the proportions are those of kvdemo, whose
// leases last for two election timeouts.
const (
	leaseTime = 20 * tick
	failTime  = 10 * tick
)

// LeaseSides returns Raft with leases off, on with every node a responder, on with early
// accept notes as well, and on with no responder, where the messages of leases are all that
// differs from leases off.
func LeaseSides() []Side {
	return []Side{
		{Name: "leases off", About: "PreVote and CheckQuorum, no leases", Configure: func(*raft.Config) {}},
		leased("leases", "every node is a responder", true, false),
		leased("leases, notes", "every node is a responder, with early accept notes", true, true),
		leased("leases, nobody named", "no node is a responder; the leader has its own lease", false, false),
	}
}

func leased(name, about string, responders, notes bool) Side {
	return Side{Name: name, About: about, Configure: func(c *raft.Config) {
		c.Leases = &raft.Leases{Tick: tick, Boot: 1, Lease: leaseTime, Fail: failTime, Resolution: 100 * time.Microsecond, Notes: notes}
		if responders {
			c.Leases.Wanted = []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}
		}
	}}
}
