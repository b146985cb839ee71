// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"fmt"
	"math"
	"time"

	"github.com/weftraft/weft/ecraft"
)

// Config is the settings of a node's coding. The fields up to Zone are the fields of
// raft.Coding, described there, with defaults filled in.
type Config struct {
	Threshold   int
	Policy      ecraft.Policy
	ClearPrefix int
	Veto        func(data []byte) bool
	Memory      int
	GossipGap   int
	GossipDelay int
	LateSeal    bool
	Plain       bool
	Busy        func() float64
	Zone        func(id uint64) string

	// Logger is raft.Logger.
	Logger interface {
		Warningf(format string, args ...any)
	}
	// Record hears of the events of coding.
	Record func(Event)
	// Clock is monotonic; nil: there is none.
	Clock func() time.Duration
	// ElectionTick, HeartbeatTick and MaxSizePerMsg are raft.Config's.
	ElectionTick, HeartbeatTick int
	MaxSizePerMsg               uint64
}

// Event is raft.CodingEvent.
type Event struct {
	Kind                Kind
	Index, Peer         uint64
	Level, Bytes, Count int
}

// Kind is raft.CodingEventKind, where the kinds are described.
type Kind int

// The kinds of events.
const (
	Encoded Kind = iota
	Whole
	Sent
	Pushed
	Asked
	Answered
	Completed
	HeldBack
	Rejected
	Fallback
	Hedged
	RiderCommit
	Recovery
	Recovered
	Cut
	Stuck
	Snapshot
	HandOver
	LeftOut
	Checked
	Delayed
)

const noLimit = math.MaxUint64

// maxTerm is beyond any term that counting elections leads to.
const maxTerm = 1 << 62

// fault reports an entry that cannot be read as its header says.
func fault(id ecraft.ID, err error) error {
	return fmt.Errorf("entry %d/%d: %w", id.Term, id.Index, err)
}
