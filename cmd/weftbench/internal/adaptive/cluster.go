// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"time"

	"github.com/weftraft/weft/ecraft"
)

// Cluster is a leader and its followers in virtual time.
type Cluster interface {
	// Now is the time, and Schedule has something done at a later one.
	Now() time.Duration
	Schedule(at time.Duration, do func())
	// Step runs what comes next.
	Step() bool

	// Propose has the leader append an entry now, and returns its index;
	// OnCommit is told of each that commits.
	Propose(size int) (index uint64)
	OnCommit(func(index uint64, now time.Duration))
	// Plan is what was chosen for an entry.
	Plan(index uint64) ecraft.Plan
	Usage() Usage
	// Err is what went wrong in the run.
	Err() error

	// Change changes the network, Pause and Kill stop a follower.
	Change(func(net *Network))
	Pause(follower int, until time.Duration)
	Kill(follower int)
}

// Usage is what a run has sent.
type Usage struct {
	Payload int64 // bytes proposed
	Egress  int64 // bytes that the leader sent
	Hedged  int64 // of them in riders
	Hedges  int   // carriers
}
