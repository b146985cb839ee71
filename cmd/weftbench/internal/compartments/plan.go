// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/replica"
)

// Bed is what all runs share.
type Bed struct {
	Costs costs.Costs
	Delay time.Duration // of a frame, in one direction
	Rate  float64       // of a link, bytes a second
	// ZoneDelay is Delay between zones.
	ZoneDelay time.Duration
	Sync      time.Duration // until a write to a log is durable; not the processor's time
	Time      time.Duration // that is measured, of each run
	Value     int           // bytes of a command
	Seed      uint64
	// Processors, unless 0, is the number of processors of the one machine on which all processes run, with the clients', whose
	// calls cost them what they cost the servers. Else each process has a machine with one processor, and clients cost nothing.
	Processors int
}

// Plan is a deployment and its load.
type Plan struct {
	Members  int // machines with voters
	Replicas int // voters of each group; 0 means Members
	Groups   int // each begins Members/Groups machines behind the one before, with its leader
	Readers  int // learners of each group, which serve reads
	Gateways int // processes without a replica, at which clients call
	// Batches has commands share entries, and entries share messages.
	Batches bool
	// Spread has clients call at all members, and not at the leader of their group alone.
	Spread bool

	Way     hostnode.Kind // of clients to their processes
	Clients int           // a closed loop each, spread evenly over groups
	// Reads is the share of calls that are linearizable reads; readers serve them, if there are any, and else the
	// process at which the client writes.
	Reads float64
	// Policy is how these reads come about; nil is ReadIndex.
	Policy replica.ReadPolicy
	// Leases has all voters be responders of roster leases, which answer reads without asking anybody.
	Leases bool
	// ReadClients are clients that only read, at each reader.
	ReadClients int
	// Names has leaders send names in the place of batches that the receiver forwarded.
	Names bool
	// Coded has large commands travel in units.
	Coded bool
	// Zones is over how many zones members and readers are spread evenly, ZoneDelay apart; 0: not at all. Relays has
	// leaders know the zones.
	Zones  int
	Relays bool
	// Upstream has members run upstream's library.
	Upstream bool
}

// zone returns the zone of a process, from 1.
func (p Plan) zone(id uint64) int {
	if p.Zones == 0 {
		return 1
	}
	return 1 + int(id-1)%p.Zones
}

// Machines returns the number of machines, without those of clients.
func (p Plan) Machines() int { return p.Members + p.Readers + p.Gateways }

// ticks of replicas.
const (
	leaseTime     = 4 * tick
	tick          = 50 * time.Millisecond
	electionTicks = 10
)
