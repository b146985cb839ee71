// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

// Turn is when a voter that has lost its leader campaigns, beside the other voters that could lead. A voter with a
// larger weight goes first; no voter waits for another without end.
type Turn struct {
	id      uint64
	weight  int
	heavier bool // a voter has a larger weight
	before  int  // how many voters go first: those, and those with the same weight and a smaller id
}

// TurnStep is the wait of each voter for the voter before, in ticks.
const TurnStep = 2

// NewTurn returns the turn of a voter beside no other.
func NewTurn(id uint64, weight int) Turn { return Turn{id: id, weight: weight} }

// Beside adds another voter.
func (t *Turn) Beside(id uint64, weight int) {
	if weight > t.weight || weight == t.weight && id < t.id {
		t.before++
	}
	t.heavier = t.heavier || weight > t.weight
}

// Wait returns how long the leader must have been silent before the voter's first campaign, at least: an election
// timeout. A voter beside one with a larger weight waits for two, which is as long as the slowest of the others waits, and
// TurnStep longer for each voter before, so that votes are not split; at most three.
func (t *Turn) Wait(timeout uint64) uint64 {
	if !t.heavier {
		return timeout
	}
	return timeout + min(timeout+uint64(TurnStep*t.before), 2*timeout)
}
