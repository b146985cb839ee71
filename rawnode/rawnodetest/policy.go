// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weftraft/weft/ecraft"
)

// PolicyFactory describes a coding policy to the suite.
type PolicyFactory struct {
	// New returns a policy of a leader that has just been elected. Required.
	New func() ecraft.Policy
	// Fixed says that the policy ignores the health of followers, as ecraft.Fixed does: an entry
	// may then need more units later than its followers were given at first.
	Fixed bool
}

// Validate returns an error that names the missing field, or nil.
func (f PolicyFactory) Validate() error {
	if f.New == nil {
		return errors.New("rawnodetest: PolicyFactory.New is nil, want a function that returns a policy")
	}
	return nil
}

// TestPolicy checks a policy against the contract of [ecraft.Policy], and of [ecraft.Observer] and
// [ecraft.Pacer] if the policy implements them, with a subtest for each rule.
func TestPolicy(t *testing.T, f PolicyFactory) {
	t.Helper()
	testAll(t, f.Validate(), policyRules, f.trial)
}

// CheckPolicy is TestPolicy outside a test. The error joins a [RuleError] for each broken rule.
func CheckPolicy(f PolicyFactory) error {
	return checkAll(f.Validate(), policyRules, f.trial)
}

func (f PolicyFactory) trial(rule string) *trial { return &trial{f: f, rng: draws(rule)} }

// trial is the state of a test of a rule.
type trial struct {
	f   PolicyFactory
	rng *rand.Rand
	now time.Duration // the leader's clock
}

// policyRules are the promises of a policy.
var policyRules = []rule[*trial]{
	{"every follower gets 0 to D units", (*trial).bounds},
	{"what is assigned can commit", (*trial).enough},
	{"what is assigned can commit with the healthy alone", (*trial).healthy},
	{"small groups get full copies", (*trial).small},
	{"the plan says what was assigned", (*trial).honest},
	{"the round is not changed, nor kept", (*trial).borrowed},
	{"the same inputs give the same assignments", (*trial).repeats},
	{"an observer takes whatever comes", (*trial).observes},
	{"a pacer has room when nothing is on its way", (*trial).paces},
}

// garbage fills units before Assign; Assign must overwrite all of it.
const garbage = -77

// round draws a round of n voters, with slots for some learners behind.
func (t *trial) round(n int) *ecraft.Round {
	learners := 0
	if t.rng.IntN(3) == 0 {
		learners = t.rng.IntN(3)
	}
	sizes := []int{0, 1, 100, 4096, 65536, 1 << 20, 16 << 20}
	r := &ecraft.Round{
		Index: t.rng.Uint64N(1000), Now: t.now, Size: sizes[t.rng.IntN(len(sizes))],
		Voters: n, Layout: ecraft.NewLayout(n, n-1+learners),
	}
	sick := t.rng.IntN(4)
	for i := range n - 1 {
		r.Followers = append(r.Followers, ecraft.Member{
			ID: uint64(i) + 2, Healthy: sick == 0 || t.rng.IntN(4) >= sick, Lags: t.rng.IntN(8) == 0,
		})
	}
	return r
}

func (t *trial) assign(p ecraft.Policy, r *ecraft.Round) ([]int, ecraft.Plan) {
	units := slices.Repeat([]int{garbage}, len(r.Followers))
	plan := p.Assign(r, units)
	return units, plan
}

// each assigns many rounds, for groups of from to 9 voters, by policies that have observed traffic
// with their followers and by new policies.
func (t *trial) each(from int, check func(r *ecraft.Round, units []int, plan ecraft.Plan)) {
	for n := from; n <= 9; n++ {
		for try := range 30 {
			p := t.f.New()
			r := t.round(n)
			if o, ok := p.(ecraft.Observer); ok && try%2 == 0 {
				t.watch(o, r, 40)
			}
			units, plan := t.assign(p, r)
			when(func() { check(r, units, plan) }, "%d voters, D %d, %d bytes, followers %+v, units %v, plan %+v", n, r.Layout.D, r.Size, r.Followers, units, plan)
		}
	}
}

// watch shows an observer some traffic with the followers of a round, and with others.
func (t *trial) watch(o ecraft.Observer, r *ecraft.Round, events int) {
	for _, f := range r.Followers {
		o.Joined(f.ID, true, t.now)
	}
	for slot := len(r.Followers); slot < r.Layout.Slots; slot++ {
		o.Joined(uint64(slot)+2, false, t.now)
	}
	index := r.Index
	for range events {
		t.now += time.Duration(t.rng.Int64N(int64(20 * time.Millisecond)))
		now := t.now
		id := uint64(1 + t.rng.IntN(r.Layout.Slots+3)) // learners too, and some ids are no members
		switch t.rng.IntN(10) {
		case 0, 1:
			index++
			o.Proposed(index, 1+t.rng.IntN(1<<20), now)
			o.Sent(id, index, 1+t.rng.IntN(1<<20), now)
		case 2, 3:
			o.Acked(id, t.rng.Uint64N(index+1), time.Duration(t.rng.Int64N(int64(time.Millisecond))), now)
		case 4:
			o.Committed(t.rng.Uint64N(index + 1))
		case 5:
			o.HeartbeatSent(id, now)
		case 6:
			o.HeartbeatAnswered(id, now)
		case 7:
			o.QueueHint(id, t.rng.IntN(1<<24), t.rng.Float64()*1e8, now)
		case 8:
			o.Sent(id, index, t.rng.IntN(1000), now)
		case 9:
			if w, ok := o.(ecraft.ProcessorObserver); ok {
				w.Busy(id-1, t.rng.Float64())
			}
		}
	}
	// Here the silent followers have been silent for long, and the healthy followers have just
	// answered.
	t.now += time.Minute
	for _, f := range r.Followers {
		if f.Healthy {
			o.Acked(f.ID, index, 0, t.now)
			o.HeartbeatAnswered(f.ID, t.now)
		}
	}
	r.Index, r.Now = index+1, t.now
}

func (t *trial) bounds() {
	t.each(1, func(r *ecraft.Round, units []int, plan ecraft.Plan) {
		for i, n := range units {
			if n == garbage {
				breaks("method Assign has left out follower %d", r.Followers[i].ID)
			}
			if n < 0 || n > r.Layout.D {
				breaks("follower %d gets %d units, want 0 to %d", r.Followers[i].ID, n, r.Layout.D)
			}
		}
		if plan.Level < 0 || plan.Level > ecraft.Levels(r.Voters) {
			breaks("level %d, want 0 to %d", plan.Level, ecraft.Levels(r.Voters))
		}
	})
}

func (t *trial) enough() {
	t.each(1, func(r *ecraft.Round, units []int, _ ecraft.Plan) {
		if !ecraft.Enough(r, units) {
			breaks("the entry cannot commit although all that have units answer: see ecraft.Enough")
		}
	})
}

// healthy checks the assignment without the units of followers that are silent.
func (t *trial) healthy() {
	if t.f.Fixed {
		return
	}
	t.each(3, func(r *ecraft.Round, units []int, _ ecraft.Plan) {
		answer, voters := slices.Clone(units), 1
		for i, f := range r.Followers {
			switch {
			case !f.Healthy || f.Lags:
				answer[i] = 0
			default:
				voters++
			}
		}
		if voters > r.Voters/2 && !ecraft.Enough(r, answer) {
			breaks("%d voters are healthy and do not lag, and the entry cannot commit with these alone", voters)
		}
	})
}

func (t *trial) small() {
	for n := 1; n <= 2; n++ {
		for range 20 {
			r := t.round(n)
			units, plan := t.assign(t.f.New(), r)
			if plan.Level != 1 || !ecraft.Enough(r, units) {
				breaks("%d voters: units %v and level %d, want level 1, as nothing can be coded", n, units, plan.Level)
			}
		}
	}
}

func (t *trial) honest() {
	t.each(3, func(r *ecraft.Round, units []int, plan ecraft.Plan) {
		if plan.Predicted < 0 || plan.Silence < 0 {
			breaks("a time is negative")
		}
		var holders []int
		for _, n := range units {
			if n > 0 {
				holders = append(holders, n)
			}
		}
		slices.Sort(holders)
		sum := 0
		for _, n := range holders[:min(plan.Level, len(holders))] {
			sum += n
		}
		if plan.Level > 0 && len(holders) >= plan.Level && sum < r.Layout.D {
			breaks("level %d, and the %d followers that hold least have %d units together, want %d", plan.Level, plan.Level, sum, r.Layout.D)
		}
	})
}

func (t *trial) borrowed() {
	kept, fresh := t.f.New(), t.f.New()
	for range 200 {
		r := t.round(3 + t.rng.IntN(7))
		before := *r
		before.Followers = slices.Clone(r.Followers)
		units, plan := t.assign(kept, r)
		if !reflect.DeepEqual(*r, before) {
			breaks("method Assign has changed the round: it was %+v, and is %+v", before, *r)
		}
		same, again := t.assign(fresh, &before)
		if !slices.Equal(units, same) || plan != again {
			breaks("units %v and plan %+v, where another policy, whose rounds stay as they are, has %v and %+v: what Assign gets must not be kept", units, plan, same, again)
		}
		for i := range r.Followers { // the caller may use the memory again
			r.Followers[i] = ecraft.Member{ID: 99}
			units[i] = garbage
		}
		r.Voters, r.Layout, r.Size = 1, ecraft.Layout{}, 0
	}
}

func (t *trial) repeats() {
	for n := 3; n <= 9; n++ {
		seed := t.rng.Uint64()
		var first []string
		for try := range 3 {
			x := &trial{f: t.f, rng: rand.New(rand.NewPCG(seed, 1))}
			p := t.f.New()
			var got []string
			for range 20 {
				r := x.round(n)
				if o, ok := p.(ecraft.Observer); ok {
					o.Reset(x.now)
					x.watch(o, r, 20)
				}
				units, plan := x.assign(p, r)
				got = append(got, fmt.Sprint(units, plan))
			}
			if try == 0 {
				first = got
			} else if !slices.Equal(got, first) {
				breaks("%d voters: a second policy that gets the same assigns something else", n)
			}
		}
	}
}

// observes mixes all calls, also calls about nodes that are no members.
func (t *trial) observes() {
	if _, ok := t.f.New().(ecraft.Observer); !ok {
		return
	}
	for range 50 {
		p := t.f.New()
		o := p.(ecraft.Observer)
		for range 30 {
			r := t.round(3 + t.rng.IntN(7))
			switch t.rng.IntN(4) {
			case 0:
				o.Left(uint64(t.rng.IntN(12)))
			case 1:
				o.Reset(t.now)
			case 2:
				o.Joined(uint64(t.rng.IntN(12)), t.rng.IntN(2) == 0, t.now)
			}
			t.watch(o, r, 10)
			t.now += time.Second
			if units, plan := t.assign(p, r); !ecraft.Enough(r, units) {
				breaks("units %v and plan %+v of round %+v: the entry cannot commit", units, plan, *r)
			}
		}
	}
}

func (t *trial) paces() {
	if _, ok := t.f.New().(ecraft.Pacer); !ok {
		return
	}
	for range 50 {
		p := t.f.New()
		pacer := p.(ecraft.Pacer)
		r := t.round(5)
		if o, ok := p.(ecraft.Observer); ok {
			o.Reset(0)
			for _, f := range r.Followers {
				o.Joined(f.ID, true, 0)
			}
		}
		for _, f := range r.Followers {
			if room := pacer.Room(f.ID, 1+t.rng.Uint64N(100), time.Duration(t.rng.Int64N(int64(time.Minute)))); room <= 0 {
				breaks("method Room for follower %d is %d although nothing is on its way: it would never catch up", f.ID, room)
			}
		}
	}
}
