// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"math"
	"time"
)

// NodeID names a member of the group; 0 names none.
type NodeID uint64

// Term is a term of Raft.
type Term uint64

// Index is the index of a log entry; the first entry has index 1.
type Index uint64

// Seq numbers the rosters that the leader of a term made, from 1; 0 stands for
// none.
type Seq uint64

// Boot names one run of a node's process. No two runs of a node have the same.
type Boot uint64

// Instant is a reading of a node's own clock: nanoseconds since some origin, more
// than 0. The origin is this node's own and may change when the node restarts;
// readings of two nodes are never compared.
type Instant int64

// after returns the instant d later; the last instant, if the sum is beyond the
// last.
func (t Instant) after(d time.Duration) Instant {
	if d > 0 && t > math.MaxInt64-Instant(d) {
		return math.MaxInt64
	}
	return t + Instant(d)
}

// since returns how long after earlier t is.
func (t Instant) since(earlier Instant) time.Duration { return time.Duration(t - earlier) }

// A Nonce names one request for a lease. The asker never uses a nonce twice: Boot
// differs between its runs, and Counter grows from 1 within a run. The zero value
// names no request.
type Nonce struct {
	Boot    Boot
	Counter uint64
}

func (x Nonce) isNone() bool { return x.Counter == 0 }

func (x Nonce) String() string { return fmt.Sprintf("%x/%d", uint64(x.Boot), x.Counter) }

// RosterID orders rosters: by the term of their leader, then by number.
type RosterID struct {
	Term Term
	Seq  Seq
}

// before reports whether id was made before other.
func (id RosterID) before(other RosterID) bool {
	return id.Term < other.Term || id.Term == other.Term && id.Seq < other.Seq
}

func (id RosterID) String() string { return fmt.Sprintf("%d.%d", id.Term, id.Seq) }
