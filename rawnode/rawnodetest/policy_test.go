// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/rawnode/rawnodetest"
)

func TestPoliciesKeepTheContract(t *testing.T) {
	for name, f := range map[string]rawnodetest.PolicyFactory{
		"full":     {New: func() ecraft.Policy { return ecraft.Full{} }},
		"fixed 2":  {New: func() ecraft.Policy { return ecraft.Fixed(2) }, Fixed: true},
		"fixed 9":  {New: func() ecraft.Policy { return ecraft.Fixed(9) }, Fixed: true},
		"levelled": {New: func() ecraft.Policy { return ecraft.Levelled{} }},
		"adaptive": {New: func() ecraft.Policy { return adaptive.New(adaptive.Options{}) }},
	} {
		t.Run(name, func(t *testing.T) { rawnodetest.TestPolicy(t, f) })
	}
}

// odd is ecraft.Levelled with a bug.
type odd struct {
	bug  string
	last []ecraft.Member
	seen map[uint64]*int
	*adaptive.Policy
}

func (o *odd) Assign(r *ecraft.Round, units []int) ecraft.Plan {
	round := *r
	switch o.bug {
	case "goes by the last round":
		if len(o.last) == len(r.Followers) {
			round.Followers = o.last
		}
		o.last = r.Followers
	case "counts learners":
		for slot := len(r.Followers); slot < r.Layout.Slots; slot++ {
			round.Followers = append(slices.Clone(round.Followers), ecraft.Member{ID: uint64(slot) + 2, Healthy: true})
		}
		all := make([]int, len(round.Followers))
		plan := ecraft.Levelled{}.Assign(&round, all)
		copy(units, all)
		return plan
	case "takes the silent for healthy":
		round.Followers = nil
		for _, f := range r.Followers {
			f.Healthy, f.Lags = true, false
			round.Followers = append(round.Followers, f)
		}
	case "changes the round":
		r.Size++
	}
	plan := ecraft.Levelled{}.Assign(&round, units)
	switch last := len(units) - 1; o.bug {
	case "one unit too many":
		units[last] = r.Layout.D + 1
	case "one unit too few":
		for i := range units {
			units[i] = max(units[i]-1, 0)
		}
	case "negative units":
		units[0] = -1
	case "leaves one out":
		units[last] = garbageOfSuite
	case "never full copies":
		if plan.Level == 1 && r.Layout.D > 0 {
			plan.Level = min(2, ecraft.Levels(r.Voters))
			r.Share(plan.Level, units, func(i int) bool { return r.Followers[i].Healthy })
		}
	case "says a lower level":
		plan.Level = max(1, plan.Level-1)
	case "level too high":
		plan.Level = ecraft.Levels(r.Voters) + 1
	case "level 0 for small groups":
		if r.Layout.D == 0 {
			plan.Level = 0
		}
	case "draws":
		if rand.IntN(4) == 0 {
			plan = ecraft.Full{}.Assign(r, units)
		}
	case "time runs back":
		plan.Predicted = -time.Second
	}
	return plan
}

const garbageOfSuite = -77

// Joined, Sent and Room have bugs of observers and pacers.
func (o *odd) Joined(member uint64, voter bool, now time.Duration) {
	o.seen[member] = new(int)
	o.Policy.Joined(member, voter, now)
}

func (o *odd) Sent(to, last uint64, bytes int, now time.Duration) {
	if o.bug == "knows only its members" {
		*o.seen[to] += bytes
	}
	o.Policy.Sent(to, last, bytes, now)
}

func (o *odd) Room(to, next uint64, lagging time.Duration) int {
	if o.bug == "no room" {
		return 0
	}
	return o.Policy.Room(to, next, lagging)
}

func odds(bug string) rawnodetest.PolicyFactory {
	return rawnodetest.PolicyFactory{New: func() ecraft.Policy {
		return &odd{bug: bug, seen: map[uint64]*int{}, Policy: adaptive.New(adaptive.Options{})}
	}}
}

func TestPolicySuiteFindsBugs(t *testing.T) {
	require.NoError(t, rawnodetest.CheckPolicy(odds("")))
	for bug, rule := range map[string]string{
		"one unit too many":            "every follower gets 0 to D units",
		"negative units":               "every follower gets 0 to D units",
		"leaves one out":               "every follower gets 0 to D units",
		"level too high":               "every follower gets 0 to D units",
		"one unit too few":             "what is assigned can commit",
		"counts learners":              "what is assigned can commit with the healthy alone",
		"takes the silent for healthy": "what is assigned can commit with the healthy alone",
		"never full copies":            "what is assigned can commit with the healthy alone",
		"level 0 for small groups":     "small groups get full copies",
		"says a lower level":           "the plan says what was assigned",
		"time runs back":               "the plan says what was assigned",
		"goes by the last round":       "the round is not changed, nor kept",
		"changes the round":            "the round is not changed, nor kept",
		"draws":                        "the same inputs give the same assignments",
		"knows only its members":       "an observer takes whatever comes",
		"no room":                      "a pacer has room when nothing is on its way",
	} {
		t.Run(bug, func(t *testing.T) {
			err := rawnodetest.CheckPolicy(odds(bug))
			require.Contains(t, rawnodetest.Broken(err), rule, "%v", err)
		})
	}
}
