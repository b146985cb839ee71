// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// disturbed returns a server on a machine that also does other things: every entry takes its own time,
// and all entries of 150 ms take longer or shorter by a factor.
func disturbed(coded, full float64, seed uint64) *server {
	s := newServer(coded, full, linksBind)
	if coded > full {
		s.busy = 1
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	slice, factor := -1.0, 0.0
	s.noise = func() float64 {
		if at := math.Floor(s.now / 0.15); at != slice {
			slice, factor = at, math.Exp(0.3*rng.NormFloat64())
		}
		return factor * math.Exp(0.5*rng.NormFloat64()-0.125)
	}
	return s
}

// halting is the same on a machine that stands still twice a second, for 80 ms in the mean.
func halting(coded, full float64, seed uint64) *server {
	s := disturbed(coded, full, seed)
	rng := rand.New(rand.NewPCG(seed, 8))
	next, noise := rng.ExpFloat64()*0.5, s.noise
	s.noise = func() float64 {
		f := noise()
		if s.now > next {
			next = s.now + rng.ExpFloat64()*0.5
			f += (0.02 + 0.06*rng.ExpFloat64()) / min(coded, full)
		}
		return f
	}
	return s
}

// lost returns which part more than with the better form alone the processors work for an entry, in the
// mean of some seeds: loads of some seconds, with rests between them.
func lost(machine func(coded, full float64, seed uint64) *server, coded, full float64, loads int, seconds float64) (more float64) {
	const seeds = 40
	for seed := range uint64(seeds) {
		s := machine(coded, full, seed)
		for range loads {
			s.run(seconds)
			s.drain()
			s.now += 5
		}
		plain := 0.0
		for _, p := range s.plain {
			if p {
				plain++
			}
		}
		share := plain / float64(len(s.plain))
		more += ((share*full+(1-share)*coded)/min(full, coded) - 1) / seeds
	}
	return more
}

func TestNoiseDecidesLittle(t *testing.T) {
	for _, coded := range []float64{1.05e-3, 1.15e-3, 1.3e-3, 1.5e-3} {
		require.Less(t, lost(disturbed, coded, 1e-3, 15, 1.3), 0.025, coded)
		require.Less(t, lost(disturbed, coded, 1e-3, 1, 20), 0.025, coded)
		require.Less(t, lost(disturbed, coded, 1e-3, 1, 2), 0.06, "the first trial included")
	}
	for _, full := range []float64{2e-3, 3e-3} {
		require.Less(t, lost(disturbed, 1e-3, full, 15, 1.3), 0.04, full)
		require.Less(t, lost(disturbed, 1e-3, full, 1, 2), 0.1, full)
	}
}

// TestWrongSuggestionCostsLittle has processors that are always busy, with work of others, and links that bind.
func TestWrongSuggestionCostsLittle(t *testing.T) {
	busy := func(coded, full float64, seed uint64) *server {
		s := disturbed(coded, full, seed)
		s.busy = 1
		return s
	}
	for _, full := range []float64{2e-3, 3e-3} {
		require.Less(t, lost(busy, 1e-3, full, 15, 1.3), 0.06, full)
		require.Less(t, lost(busy, 1e-3, full, 1, 2), 0.21, full)
	}
}

func TestMachineThatStandsStillDecidesLittle(t *testing.T) {
	const coded, full = 1.5e-3, 3e-3
	require.Less(t, lost(halting, coded, 1e-3, 15, 1.3), 0.06, "full copies are better")
	require.Less(t, lost(halting, coded, 1e-3, 1, 2), 0.08, "the first trial included")
	require.Less(t, lost(halting, 1e-3, full, 15, 1.3), 0.08, "coding is better")
	require.Less(t, lost(halting, 1e-3, full, 1, 2), 0.12, "the first trial included")
}

// TestEntryThatIsStuckDecidesNoTrial has entries of a trial commit twice as fast as before, until one is stuck.
func TestEntryThatIsStuckDecidesNoTrial(t *testing.T) {
	p := &processors{turns: &turns{turn: turn{n: 8, busy: 8e-3}, known: turn{n: 8, busy: 16e-3}}}
	require.InDelta(t, math.Log(0.5), p.tell(false, true), 1e-9)
	p.turn.n = fewEntries - 1
	require.InDelta(t, math.Log(trialWait), p.tell(false, true), 1e-9, "too few to tell")
}

// TestPauseIsLeftOut has a turn of entries that take a millisecond, and one that commits with the next one 80 ms later.
func TestPauseIsLeftOut(t *testing.T) {
	p, l := &processors{count: true, turns: new(turns)}, &lane{large: true}
	p.begin()
	for index := uint64(1); index <= 10; index++ {
		p.proposed(l, index, 1000, float64(index)*1e-3)
		p.at(float64(index+1) * 1e-3)
		p.committed(l, index)
	}
	p.proposed(l, 11, 1000, 11e-3)
	p.proposed(l, 12, 1000, 50e-3)
	p.at(91e-3)
	p.committed(l, 12)
	require.InDelta(t, 1e-3, p.turn.pace(), 1e-9)
	require.InDelta(t, 10e-3/12, p.turn.mean(), 1e-9)
	p.proposed(l, 13, 1000, 91e-3)
	p.at(191e-3)
	p.committed(l, 13)
	require.InDelta(t, 110e-3/11, p.turn.pace(), 1e-9, "not far longer than the wait before")
}

// until runs the server until a trial begins or ends.
func (s *server) until(trying bool) {
	for s.p.trying != trying {
		s.run(1e-3)
	}
}

func TestWhereBothAreAboutAsGoodFullCopiesWin(t *testing.T) {
	s := newServer(0.95e-3, 1e-3, 1)
	require.Greater(t, s.run(2), 0.5)
	require.True(t, s.p.full)
}

func TestProofGrowsWithTrials(t *testing.T) {
	proven := func(full bool, ratio, trials float64) bool {
		p := processors{full: full, ratio: ratio, trials: trials}
		return p.proven()
	}
	require.False(t, proven(false, -0.2, 1), "one trial of coding is by chance")
	require.True(t, proven(false, -0.2, 4))
	require.True(t, proven(true, 0.1, 1), "full copies need less")
	require.False(t, proven(true, -0.1, trialMemory))
	require.False(t, proven(true, 0, 2))
	require.True(t, proven(true, 0, trialMemory))
}

// TestFirstTrialIsRepeatedSoonIfItTellsLittle slows the machine down during the first trial.
func TestFirstTrialIsRepeatedSoonIfItTellsLittle(t *testing.T) {
	for _, slowed := range []float64{1.15, 1.25, 1.4} {
		s := newServer(1.3e-3, 1.3e-3*slowed, linksBind)
		s.until(true)
		s.until(false)
		require.False(t, s.p.full)
		s.full = 1e-3
		s.run(1)
		require.True(t, s.p.full, slowed)
	}
}

func TestTrialAgainstWhatIsInForceIsRepeatedSoon(t *testing.T) {
	s := newServer(1.3e-3, 1e-3, 0.9)
	s.run(5)
	require.True(t, s.p.full)
	s.coded = 0.5e-3
	s.until(true)
	s.until(false)
	require.True(t, s.p.full, "one trial is no proof")
	ended := s.now
	s.until(true)
	require.Less(t, s.now-ended, 0.5)
	s.run(3)
	require.False(t, s.p.full)
}

func TestPauseIsNoPartOfATrial(t *testing.T) {
	s := newServer(1e-3, 2e-3, 0.9)
	s.until(true)
	s.drain()
	s.now += 100
	s.until(false)
	require.False(t, s.p.full)
	require.Positive(t, s.run(10), "full copies are tried again")
}

func TestTrialGoesOnAfterAPause(t *testing.T) {
	s := newServer(20e-3, 60e-3, 0.9)
	for range 120 {
		s.run(0.2)
		s.drain()
		s.now += 5
		s.busy = 0
		s.propose()
		s.busy = 0.9
	}
	require.True(t, s.p.count, "processors that rest in a pause are not idle")
	require.Contains(t, s.plain, true)
	require.GreaterOrEqual(t, s.p.trials, 2.0, "a trial that takes longer than a load ended")
}

// becomeBusy makes processors busy, and runs the server until they count.
func (s *server) becomeBusy() {
	for s.busy = 1; !s.p.count; {
		s.run(1e-3)
	}
}

func TestFirstTrialBeginsAsSoonAsProcessorsCount(t *testing.T) {
	s := newServer(1.3e-3, 1e-3, 0)
	s.run(1)
	require.False(t, s.p.trying)
	s.becomeBusy()
	s.run(2e-3)
	require.True(t, s.p.trying, "how coding fares was measured before")
	s.run(0.2)
	require.True(t, s.p.full)
	require.False(t, s.p.trying)
}

func TestEntriesOnTheirWayAtAChangeOfFormAreOfNoTurn(t *testing.T) {
	s := newServer(50e-3, 30e-3, 1)
	for !s.p.full || s.p.trying {
		s.run(1e-3)
	}
	for s.busy = 0; s.p.count; {
		s.run(1e-3)
	}
	require.False(t, s.p.full)
	require.Zero(t, s.p.turn.from, "full copies still wait")
	s.run(1)
	require.Positive(t, s.p.turn.from)
	s.becomeBusy()
	require.True(t, s.p.full, "full copies have won")
	require.Zero(t, s.p.turn.from, "coded entries still wait")
	s.run(1)
	require.Positive(t, s.p.turn.from)
}

func TestTrialsStayRareWhenProcessorsCountAgain(t *testing.T) {
	s := newServer(1.3e-3, 1e-3, 1)
	s.run(120)
	require.EqualValues(t, longestGap, s.p.gap)
	s.busy = 0
	s.run(5 * busyMemory)
	require.False(t, s.p.count)
	s.busy = 1
	s.run(busyMemory)
	require.True(t, s.p.count)
	require.EqualValues(t, longestGap, s.p.gap)
}

func TestBurstOfAnswersEndsNoTrial(t *testing.T) {
	known := &turn{from: 1}
	for i := range 50 {
		known.add(waiting{order: 1, size: 1}, 0.2+float64(i)*4e-3, 0.2+float64(i+1)*4e-3)
	}
	tried := &turn{from: 1}
	for range fewEntries {
		tried.add(waiting{order: 1, size: 1}, 0, 0.03)
	}
	require.False(t, tried.slower(known, 0.12), "more may come at the same time")
	require.True(t, tried.slower(known, 0.5))
}

func TestTurnLastsAsLongAsAnEntryTakes(t *testing.T) {
	u := &turn{from: 1}
	for range 2 * turnEntries {
		u.add(waiting{order: 1, size: 1}, 0, 2.5)
	}
	require.False(t, u.whole(2*longestTurn), "the entries may be one burst of several")
	require.True(t, u.whole(3*longestTurn))
}
