// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"time"

	"github.com/weftraft/weft/ecraft"
)

// maxFollowers bounds the groups that are simulated.
const maxFollowers = 10

// shares is what each follower is assigned of an entry, in units.
type shares [maxFollowers]uint8

// Side is a way to replicate, one column of the report.
type Side struct {
	Name string
	// Detect is when entries in flight are given up for late: 0 hedges by the
	// policy's own prediction.
	Detect time.Duration
	policy func(n int) any // an ecraft.Policy or an ecraft.SetPolicy
}

// Sides returns those of the table, for n nodes: ours, the published chooser,
// and every level that does not change, the first of which is full copies.
func Sides(n int) []Side {
	sides := []Side{Ours()}
	for level := 1; level <= ecraft.Levels(n); level++ {
		sides = append(sides, FixedLevel(level))
	}
	return sides
}

// Ours is the adaptive policy.
func Ours() Side {
	return Side{Name: "ours", policy: func(int) any { return ecraft.NewAdaptive(ecraft.AdaptiveOptions{}) }}
}

// FixedLevel is a level that does not change.
func FixedLevel(level int) Side {
	name := []string{"", "full", "level2", "level3", "level4", "level5"}[level]
	return Side{Name: name, Detect: time.Second, policy: func(int) any { return ecraft.Fixed(level) }}
}
