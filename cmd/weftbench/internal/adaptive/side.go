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

// maxFollowers bounds the groups that are simulated.
const maxFollowers = 10

// shares is what each follower is assigned of an entry, in units.
type shares [maxFollowers]uint8

// Side is a way to replicate, one column of the report.
type Side struct {
	Name string
	// Detect is when entries in flight are given up for late; 0 hedges by the
	// policy's own prediction.
	Detect time.Duration

	level  int        // of a fixed one
	hints  bool       // its policy is told what waits at the leader
	policy func() any // an ecraft.Policy or an papers.SetPolicy
}

// general reports whether a side's units overlap: the core does not run those.
func (s Side) general() bool {
	_, ok := s.policy().(papers.SetPolicy)
	return ok
}

// Sides returns those of the table, for n nodes: ours without and with a host
// that tells it what waits, the published chooser, and every level that does not
// change, the first of which is full copies.
func Sides(n int) []Side { return append([]Side{Ours(), Hinted(), Published()}, fixedLevels(n)...) }

// fixedLevels returns every level that does not change.
func fixedLevels(n int) (sides []Side) {
	for level := 1; level <= ecraft.Levels(n); level++ {
		sides = append(sides, FixedLevel(level))
	}
	return sides
}

// Ours is the adaptive policy.
func Ours() Side {
	return Side{Name: "ours", policy: func() any { return adaptive.New(adaptive.Options{}) }}
}

// Hinted is the adaptive policy of a leader whose host tells it what waits to be
// sent to each follower, as package rawnode's does.
func Hinted() Side {
	s := Ours()
	s.Name, s.hints = "ours, hints", true
	return s
}

// Published is Crossword's chooser and commit rule.
func Published() Side {
	return Side{Name: "published", Detect: time.Second, policy: func() any { return papers.NewCrosswordAdaptive() }}
}

// FixedLevel is a level that does not change.
func FixedLevel(level int) Side {
	s := Side{Name: fmt.Sprintf("level %d", level), Detect: time.Second, level: level, policy: func() any { return ecraft.Fixed(level) }}
	if level == 1 {
		s.Name = "full copies"
	}
	return s
}
