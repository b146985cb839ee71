// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// predicting assigns half of a payload to each of two followers, whose answers it expects
// after a time.
type predicting time.Duration

// Assign implements [ecraft.Policy].
func (p predicting) Assign(_ *ecraft.Round, units []int) ecraft.Plan {
	for i := range units {
		units[i] = 1
	}
	return ecraft.Plan{Level: 2, Predicted: time.Duration(p)}
}

// Both followers have answered, and their halves need the leader's own copy to commit. While
// the leader's disk gets on, the entry waits for it like for a follower with a queue; a disk
// that hangs is not waited for: the followers get the other half.
func TestLateEntryWaitsForOwnDiskThatGetsOn(t *testing.T) {
	const predicted = 10 * time.Millisecond
	now := time.Second
	f := newFake(t, func(c *Config) {
		c.Policy, c.Clock = predicting(predicted), func() time.Duration { return now }
	})
	l := f.leads()
	f.proposes(text(800))
	l.hedger.credit = maxCredit
	for _, id := range []uint64{2, 3} {
		f.members.Progress[id].Match = 1
	}
	now += ecraft.HedgeAfter(ecraft.Plan{Predicted: predicted})
	f.Stored() // an earlier entry
	f.Poll()
	f.perform()
	require.Len(t, f.entries, 1, "the own disk gets on")

	now += 2 * predicted
	f.Poll()
	f.perform()
	require.Len(t, f.entries, 2, "the own disk hangs")
	rec := f.ledger.find(1)
	require.True(t, l.enoughWith(rec, func(id uint64) bool { return id != 1 }), "without the leader")
}

// losing is predicting, and says after which silence a follower whose answer is due is lost.
type losing struct {
	predicting
	silence time.Duration
}

// Assign implements [ecraft.Policy].
func (l losing) Assign(r *ecraft.Round, units []int) ecraft.Plan {
	plan := l.predicting.Assign(r, units)
	plan.Silence = l.silence
	return plan
}

// A link that is busy with a large entry is silent for long, and its follower is well. The follower is
// lost when the predicted time is over and nothing, not even an answer to an earlier entry, has come
// for the time of the plan: then the entry is raised, long before the entry is late.
func TestSilenceBeginsWhenTheAnswerIsDue(t *testing.T) {
	const predicted, silence = 100 * time.Millisecond, 6 * time.Millisecond
	now := time.Second
	f := newFake(t, func(c *Config) {
		c.Policy, c.Clock = losing{predicting(predicted), silence}, func() time.Duration { return now }
	})
	l := f.leads()
	f.proposes(text(800))
	l.hedger.credit = maxCredit
	f.members.Progress[1].Match, f.members.Progress[2].Match = 1, 1
	f.accounts.account(3).acked.at = now
	pass := func(d time.Duration) {
		now += d
		f.Poll()
		f.perform()
	}
	pass(predicted + silence/2)
	l.hedger.hedge() // as each tick does
	f.perform()
	require.Len(t, f.entries, 1, "the link may have been busy until a moment ago")

	f.accounts.account(3).acked.at = now // an earlier entry
	pass(silence / 2)
	require.Len(t, f.entries, 1, "the follower answers")
	pass(silence / 2)
	require.Len(t, f.entries, 2, "the follower is lost")
	require.True(t, l.enoughWith(f.ledger.find(1), func(id uint64) bool { return id != 3 }), "without the follower")
}

// While leadership is handed over, a late entry stays as it is, because a carrier would make this
// log longer than the heir's. Once the transfer has failed, the entry is raised.
func TestNothingIsRaisedWhileLeadershipIsHandedOver(t *testing.T) {
	f := newFake(t)
	f.leads()
	f.proposes(text(800))
	for _, id := range []uint64{2, 3} { // this leader's disk hangs
		f.members.Progress[id].Match = 1
	}
	tick := func() {
		f.heard(2)
		f.heard(3)
		f.Tick()
		f.perform()
	}
	f.heir = 2
	for range 2 * f.cfg.ElectionTick {
		tick()
	}
	require.Len(t, f.entries, 1, "node 2 is to win with the log that it has")
	f.heir = 0
	tick()
	require.Len(t, f.entries, 2, "the transfer has failed")
}
