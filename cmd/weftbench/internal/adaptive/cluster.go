// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import "time"

// Cluster is a leader and its followers in virtual time.
type Cluster interface {
	// Now is the time, and Schedule plans a call of do at a later time.
	Now() time.Duration
	Schedule(at time.Duration, do func())
	// Step runs the next event.
	Step() bool

	// Propose makes the leader append an entry now, and returns the entry's index; the function
	// passed to OnCommit is called for each entry that commits.
	Propose(size int) (index uint64)
	OnCommit(func(index uint64, now time.Duration))
	Usage() Usage
	// Err is the error of the run, or nil.
	Err() error

	// Change changes the network, Pause and Kill stop a follower.
	Change(func(net *Network))
	Pause(follower int, until time.Duration)
	Kill(follower int)
}

// Usage is the bytes that a run has sent, and the entries that it has acknowledged.
type Usage struct {
	Payload int64 // bytes proposed
	Egress  int64 // bytes sent by the leader
	Hedged  int64 // the part of Egress in riders
	Hedges  int   // carriers
	// Acked is the entries acknowledged, and AtRisk those that the failure of a minority, at that moment, could have
	// lost. Of real cores they are not counted: their cluster checks more.
	Acked, AtRisk int
}
