// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/ecraft/papers"
)

// maxFollowers bounds the size of simulated groups.
const maxFollowers = 10

// shares is the number of units of an entry assigned to each follower.
type shares [maxFollowers]uint8

// Side is a way to replicate, a column of the report.
type Side struct {
	Name string
	// Detect is the time after which entries in flight are late; 0 hedges by the policy's own
	// prediction.
	Detect time.Duration

	level  int        // of a fixed level
	always bool       // payloads below the threshold are coded, too
	spares bool       // followers known to be lost are sent no payload, as a leader of Raft probes
	hints  bool       // the policy is told the bytes that wait at the leader
	policy func() any // an ecraft.Policy or an papers.SetPolicy
}

// general reports whether a side's units overlap: the core does not run such sides.
func (s Side) general() bool {
	_, ok := s.policy().(papers.SetPolicy)
	return ok
}

// sides returns the sides of the table, for n nodes: ours without and with hints from the host, the
// published chooser, and every fixed level, the first of which is full copies.
func sides(n int) []Side { return append([]Side{ours(), hinted(), published()}, fixedLevels(n)...) }

// fixedLevels returns every fixed level.
func fixedLevels(n int) (sides []Side) {
	for level := 1; level <= ecraft.Levels(n); level++ {
		sides = append(sides, fixedLevel(level))
	}
	return sides
}

// ours is the adaptive policy.
func ours() Side {
	return Side{Name: "ours", policy: func() any { return adaptive.New(adaptive.Options{}) }}
}

// hinted is the adaptive policy of a leader whose host, as package rawnode does, tells the policy
// the bytes that wait for each follower.
func hinted() Side {
	s := ours()
	s.Name, s.hints = "ours, hints", true
	return s
}

// published is Crossword's chooser and commit rule.
func published() Side {
	return Side{Name: "published", Detect: time.Second, policy: func() any { return papers.NewCrosswordAdaptive() }}
}

// fixedLevel is a level that does not change.
func fixedLevel(level int) Side {
	s := Side{Name: fmt.Sprintf("level %d", level), Detect: time.Second, level: level, policy: func() any { return ecraft.Fixed(level) }}
	if level == 1 {
		s.Name = "full copies"
	}
	return s
}
