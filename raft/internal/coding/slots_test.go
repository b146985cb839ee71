// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft/adaptive"
)

// told is a policy that shows which followers it was told of, and whether they vote.
type told struct {
	*adaptive.Policy
	t     *testing.T
	votes map[uint64]bool
}

func (p *told) Joined(id uint64, voter bool, now time.Duration) {
	if was, told := p.votes[id]; told {
		require.Equal(p.t, was, voter)
	}
	p.votes[id] = voter
	p.Policy.Joined(id, voter, now)
}

func (p *told) Left(id uint64) {
	delete(p.votes, id)
	p.Policy.Left(id)
}

// Under another leader a learner gets a vote, and a voter leaves. A policy that took the former for a learner still could not
// choose for it, and one that waited for an answer of the latter would learn nothing of answers any more.
func TestPolicyKnowsTheMembersOfEachLeadership(t *testing.T) {
	p := &told{adaptive.New(adaptive.Options{}), t, map[uint64]bool{}}
	f := newFake(t, func(c *Config) { c.Policy, c.Clock = p, func() time.Duration { return time.Second } })
	f.join(4, true)
	f.leads()
	require.Equal(t, map[uint64]bool{2: true, 3: true, 4: false}, p.votes)

	f.follow(2)
	before := maps.Clone(f.members.Progress)
	f.join(4, false)
	delete(f.members.Voters[0], 3)
	delete(f.members.Progress, 3)
	f.Switched(before)
	f.leads()
	require.Equal(t, map[uint64]bool{2: true, 4: true}, p.votes)
	f.follow(2)
	f.leads()
	require.Equal(t, map[uint64]bool{2: true, 4: true}, p.votes)
}
