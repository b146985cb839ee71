// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/internal/catchup"
)

// CatchUp bounds the bytes under way to members that catch up, over all groups of a node that share it
// ([Config].CatchUp): those that the node sends, and, beside them, those that it takes. A node that restarts with many
// groups would otherwise be sent as many snapshots and logs at once, and the calls of other groups would wait behind
// all of them.
//
// What waits for room goes on in the order of its urgency: a voter without which one more failure stops its group,
// then other voters, then learners. Of the same urgency, the member with the fewest bytes left is first, as far as
// these are known. Each fourth turn belongs to the one that has waited longest, so that each has its turn. A quarter
// of the bytes is spared for the first urgency.
//
// What is sent has a turn for each window of 16 chunks ([Config].ChunkBytes) that its receiver asks for, so that an urgent
// snapshot passes one that is under way. What is taken has a place for a window until it is restored. A window that
// is larger than what there is for all goes when no other does. A nil CatchUp bounds nothing.
//
// Committed entries that a follower has missed count from the first 256 KiB of them on, in windows of four appends
// ([ReplicaConfig].MaxAppendBytes), until the follower has acknowledged them; not if the group can commit nothing
// without the follower, and not with the core [Upstream]. New entries never wait.
//
// The methods may be called from several goroutines.
type CatchUp struct{ budget *catchup.Budget }

// NewCatchUp returns a budget of so many bytes in each direction, 1 or more.
func NewCatchUp(bytes int64) (*CatchUp, error) {
	if bytes < 1 {
		return nil, fmt.Errorf("%w: the bytes of NewCatchUp are %d, want 1 or more", ErrInvalid, bytes)
	}
	start := time.Now()
	return &CatchUp{catchup.New(bytes, func() time.Duration { return time.Since(start) })}, nil
}

// CatchUpStats says what is under way in one direction, and what waits.
type CatchUpStats struct {
	// LimitBytes is the bound, and UsedBytes the bytes under way; they exceed the bound only by a window that is larger
	// than three quarters of it.
	LimitBytes, UsedBytes int64
	// Waiting counts the snapshots that wait for room, and Urgent those of them without which one more failure stops a
	// group. Oldest is for how long the oldest has waited.
	Waiting, Urgent int
	Oldest          time.Duration
	// Turns counts the windows that were let go on, and Delayed those of them that had to wait: Delays is
	// the sum of their waits.
	Turns, Delayed uint64
	Delays         time.Duration
}

// Sending returns what the node sends.
func (c *CatchUp) Sending() CatchUpStats { return CatchUpStats(c.shared().Statistics(catchup.Sending)) }

// Taking returns what the node takes.
func (c *CatchUp) Taking() CatchUpStats { return CatchUpStats(c.shared().Statistics(catchup.Taking)) }

// shared returns the budget, nil without one.
func (c *CatchUp) shared() *catchup.Budget {
	if c == nil {
		return nil
	}
	return c.budget
}
