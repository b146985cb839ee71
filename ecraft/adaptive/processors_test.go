// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft/internal/rounds"
)

// server commits entries one by one, each after a time that depends on its form.
type server struct {
	p           *processors
	coded, full float64 // seconds an entry
	busy        float64
	clients     int
	every       float64 // seconds between two entries; 0: a closed loop of the clients

	now, free float64
	index     uint64
	done      []float64 // times at which entries commit
	plain     []bool    // by entry
	size      func(index uint64) float64
	noise     func() float64 // if set, factors of the times
	lanes     []lane         // of groups, which propose in turn
}

// group returns the group of an entry, and its index there.
func (s *server) group(entry uint64) (*lane, uint64) {
	n := uint64(len(s.lanes))
	return &s.lanes[entry%n], entry/n + 1
}

func (s *server) propose() {
	s.index++
	lane, index := s.group(s.index)
	size := 1000.0
	if s.size != nil {
		size = s.size(s.index)
	}
	s.p.coded = true
	s.p.proposed(lane, index, size, s.now)
	plain := s.p.wantFull(lane, s.busy, s.now)
	cost := s.coded
	if plain {
		cost = s.full
	}
	if s.noise != nil {
		cost *= s.noise()
	}
	s.free = max(s.free, s.now) + cost*size/1000
	s.done = append(s.done, s.free)
	s.plain = append(s.plain, plain)
}

// run lets time pass, and returns the share of full copies among the entries.
func (s *server) run(seconds float64) (full float64) {
	end, first := s.now+seconds, len(s.plain)
	arrives := s.now
	for s.now < end {
		for len(s.done) < s.clients && s.every == 0 {
			s.propose()
		}
		next := end
		if len(s.done) > 0 {
			next = min(next, s.done[0])
		}
		if s.every > 0 && arrives <= next {
			s.now = arrives
			s.propose()
			arrives += s.every
			continue
		}
		s.now = next
		if len(s.done) > 0 && s.done[0] <= s.now {
			committed := int(s.index) - len(s.done) + 1
			s.done = s.done[1:]
			s.p.at(s.now)
			s.p.committed(s.group(uint64(committed)))
		}
	}
	n := 0.0
	for _, plain := range s.plain[first:] {
		if plain {
			n++
		}
	}
	return n / float64(len(s.plain)-first)
}

// drain lets the entries on their way commit, and proposes no other.
func (s *server) drain() {
	for ; len(s.done) > 0; s.done = s.done[1:] {
		s.now = max(s.now, s.done[0])
		s.p.at(s.now)
		s.p.committed(s.group(s.index + 1 - uint64(len(s.done))))
	}
}

// linksBind is the share of time for which processors are busy, in real runs, where links are what entries wait for.
const linksBind = 0.75

func newServer(coded, full, busy float64) *server {
	p := &processors{}
	p.reset()
	return &server{p: p, coded: coded, full: full, busy: busy, clients: 16, lanes: make([]lane, 1)}
}

func TestFullCopiesAreKeptWhereCodingCostsProcessors(t *testing.T) {
	for _, coded := range []float64{1.1e-3, 1.3e-3, 2e-3} {
		s := newServer(coded, 1e-3, 1)
		s.run(2)
		require.Greater(t, s.run(20), 0.97, coded)
	}
}

func TestCodingIsKeptWhereItPaysThoughProcessorsAreBusy(t *testing.T) {
	for _, full := range []float64{1.3e-3, 2e-3, 3e-3} {
		s := newServer(1e-3, full, 0.9)
		if full < 2e-3 {
			s.busy = linksBind // else full copies have the better start, and it takes more than these seconds
		}
		s.run(2)
		require.Less(t, s.run(20), 0.03, full)
	}
}

func TestLinksDecideWhereProcessorsAreIdle(t *testing.T) {
	s := newServer(2e-3, 1e-3, busyFrom/2)
	require.Zero(t, s.run(10))
}

func TestProcessorsThatAreIdleAgainEndFullCopies(t *testing.T) {
	s := newServer(2e-3, 1e-3, 1)
	s.run(3)
	s.busy = 0
	s.run(3 * busyMemory)
	require.Zero(t, s.run(5))
}

// TestTrialOfFullCopiesEndsBeforeAQueueGrows has the links carry coded entries only.
func TestTrialOfFullCopiesEndsBeforeAQueueGrows(t *testing.T) {
	s := newServer(0.7e-3, 2.1e-3, 0.5)
	s.every = 1e-3
	worst := 0.0
	for range 200 {
		require.Less(t, s.run(0.1), 0.5)
		worst = max(worst, s.free-s.now)
	}
	require.Less(t, worst, 0.2, "seconds of work that wait")
}

// TestFullCopiesEndAnOverloadOfProcessors has processors carry full copies only: the queue grows until
// full copies are tried.
func TestFullCopiesEndAnOverloadOfProcessors(t *testing.T) {
	s := newServer(1.4e-3, 0.8e-3, 1)
	s.every = 1e-3
	s.run(10)
	require.Greater(t, s.run(20), 0.97)
	require.Less(t, s.free-s.now, 0.1, "seconds of work that wait")
}

func TestFewLargeEntriesDoNotDecideByChance(t *testing.T) {
	s := newServer(1.3e-3, 1e-3, 1)
	s.size = func(index uint64) float64 {
		if index*2654435761>>8%10 == 0 {
			return 100_000
		}
		return 1000
	}
	s.run(60)
	require.Greater(t, s.run(200), 0.9)
}

func TestBusiestIsThatOfTheMajority(t *testing.T) {
	r := rounds.Of(5, 0, 0)
	a := joined(r)
	a.look(r)
	for i, share := range []float64{0.9, 0.2, 0.3, 1} {
		a.Busy(r.Followers[i].ID, share)
	}
	require.Equal(t, 0.3, a.busiest(r), "two followers make a majority with the leader")
	a.Busy(0, 0.5)
	require.Equal(t, 0.5, a.busiest(r), "the leader is needed")
	a.Busy(0, 7)
	require.Equal(t, 1.0, a.busiest(r), "a share")
	a.Busy(99, 1)
	require.Nil(t, a.link(99), "no member")
}

func TestTurnOfFewLargeEntriesIsNotWhole(t *testing.T) {
	with := func(large int) *turn {
		u := &turn{from: 1}
		for i := range 100 {
			size := 1000.0
			if i < large {
				size = 100_000
			}
			u.add(waiting{order: 1, size: size}, 0, 1e-3)
		}
		return u
	}
	require.True(t, with(0).whole(1))
	require.False(t, with(5).whole(1), "next time there may be three, or eight")
	require.True(t, with(90).whole(1))
	require.False(t, with(0).whole(turnTime/2), "too short")
}

func TestEntriesFromBeforeDoNotCountForATurn(t *testing.T) {
	p, l := &processors{count: true, turns: new(turns)}, &lane{large: true}
	for index := uint64(1); index <= 4; index++ {
		p.proposed(l, index, 1000, 1)
	}
	p.begin()
	for index := uint64(5); index <= 8; index++ {
		p.proposed(l, index, 1000, 2)
	}
	p.at(3)
	p.committed(l, 1)
	p.proposed(l, 9, 1000, 3)
	p.committed(l, 9)
	require.Zero(t, p.turn.n, "entries 5 to 9 waited behind entries from before")
	p.proposed(l, 10, 1000, 4)
	p.at(5)
	p.committed(l, 10)
	require.Equal(t, 1.0, p.turn.n)
	require.Equal(t, 1.0, p.turn.sum)
}

// TestTrialEndsAfterFewEntriesThatTakeLonger has full copies take three times as long in a closed loop,
// where no entry waits much longer than the longest before it.
func TestTrialEndsAfterFewEntriesThatTakeLonger(t *testing.T) {
	s := newServer(7e-3, 21e-3, 0.9)
	s.run(30)
	longest, n := 0, 0
	for _, plain := range s.plain {
		if n++; !plain {
			n = 0
		}
		longest = max(longest, n)
	}
	require.Positive(t, longest, "full copies are tried")
	require.LessOrEqual(t, longest, s.clients+2*fewEntries, "entries of a trial")
}

// TestAnotherLoadIsTriedAtOnce changes the load when trials have become rare.
func TestAnotherLoadIsTriedAtOnce(t *testing.T) {
	s := newServer(1e-3, 1.3e-3, 0.9)
	s.run(120)
	require.EqualValues(t, longestGap, s.p.gap)
	s.coded, s.full = 4e-3, 1e-3
	s.run(1)
	require.Greater(t, s.run(1), 0.9)
}

// TestAnotherLoadIsTriedSoonAtTheSamePace has full copies win, and then entries that are four times as large, four times as many
// clients, or processors that rest, for which coding is better.
func TestAnotherLoadIsTriedSoonAtTheSamePace(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *server)
		within float64 // seconds
	}{
		"larger entries":  {func(s *server) { s.size, s.full, s.coded = func(uint64) float64 { return 4000 }, 0.5e-3, 0.25e-3 }, 6},
		"more clients":    {func(s *server) { s.clients, s.coded = 4*s.clients, 0.5e-3 }, 8},
		"processors rest": {func(s *server) { s.coded, s.busy = 0.5e-3, 0.6 }, 4},
	} {
		s := newServer(1.3e-3, 1e-3, 1)
		s.run(120)
		require.True(t, s.p.full)
		c.change(s)
		s.run(c.within)
		require.Less(t, s.run(1), 0.5, name)
	}
}

// TestWhatIsSuggestedAndInForceIsTriedLater has processors rest while entries wait for links.
func TestWhatIsSuggestedAndInForceIsTriedLater(t *testing.T) {
	s := newServer(1e-3, 2e-3, 0.6)
	require.Zero(t, s.run(3))
	s.clients *= 4
	require.Zero(t, s.run(7), "more clients wait longer for links, too")
	require.Positive(t, s.run(40))

	s = newServer(1e-3, 2e-3, 0)
	s.run(1)
	s.busy = 0.6
	require.Zero(t, s.run(10), "the first turn was before processors counted")
	s.busy = 1
	require.Positive(t, s.run(0.1), "they rest no more")
}

// TestTrialThatPrefersWhatIsSuggestedIsRepeatedLate has processors that are spent, and then rest a little.
func TestTrialThatPrefersWhatIsSuggestedIsRepeatedLate(t *testing.T) {
	s := newServer(1.5e-3, 1e-3, 1)
	s.run(2)
	require.Equal(t, 1.0, s.run(8), "16 lengths of a trial are 2 seconds")
	s.busy = 0.75
	require.Equal(t, 1.0, s.run(2), "that suggests nothing")
	require.Less(t, s.run(20), 1.0)
}

func TestFullCopiesThatWonAreTheFirstChoiceNextTime(t *testing.T) {
	s := newServer(1.5e-3, 1e-3, 1)
	s.run(3)
	s.busy = 0
	s.run(5 * busyMemory)
	require.False(t, s.p.full)
	s.busy = 1
	s.run(busyMemory)
	require.Greater(t, s.run(0.5), 0.9)
}

// TestGroupsThatShareTrialsTryTogether has many groups fill one link, which full copies fill three times as much.
func TestGroupsThatShareTrialsTryTogether(t *testing.T) {
	for _, full := range []float64{1.5e-3, 3e-3} {
		s := newServer(1e-3, full, 0.9)
		s.lanes, s.clients = make([]lane, 10), 50
		s.run(3)
		require.Less(t, s.run(30), 0.03, full)
	}
	s := newServer(1.5e-3, 1e-3, 0.9)
	s.lanes, s.clients = make([]lane, 10), 50
	s.run(2)
	require.Greater(t, s.run(30), 0.95)
}

// TestGroupThatLeadsNoMoreHoldsNoTrial has a group propose, and hear of nothing again.
func TestGroupThatLeadsNoMoreHoldsNoTrial(t *testing.T) {
	s := newServer(1.5e-3, 1e-3, 0.9)
	s.run(0.05)
	gone := &lane{large: true}
	s.p.proposed(gone, 7, 1000, s.now)
	require.Greater(t, s.p.open, 0)
	s.run(3)
	require.Greater(t, s.run(20), 0.97)
	s.drain()
	require.Zero(t, s.p.open)
	require.Len(t, s.p.lanes, 1)
	s.p.proposed(gone, 9, 1000, s.now)
	require.Len(t, s.p.lanes, 2, "the group leads again")
}

func TestGroupsOfSmallEntriesTellNothing(t *testing.T) {
	s := newServer(1e-3, 2e-3, 0.9)
	small := &lane{}
	s.p.proposed(small, 7, 16, s.now)
	s.run(1)
	s.p.committed(small, 7)
	require.Len(t, s.p.lanes, 1)
	s.drain()
	require.Zero(t, s.p.open)
	s.p.proposed(small, 8, 1<<20, s.now)
	s.p.wantFull(small, 1, s.now)
	require.Len(t, s.p.lanes, 2)
	require.Equal(t, 1, s.p.open)
	s.p.committed(small, 8)
	require.Zero(t, s.p.open)
}

// TestSharedTrialsAreSafeForConcurrentUse has groups propose at once; the race detector looks on.
func TestSharedTrialsAreSafeForConcurrentUse(t *testing.T) {
	start := time.Now()
	m := NewTrials(func() time.Duration { return time.Since(start) })
	var all sync.WaitGroup
	for group := range 4 { // the first has small entries
		all.Go(func() {
			r := rounds.Of(3, 0, 0)
			a := New(Options{Trials: m})
			a.Reset(0)
			for _, f := range r.Followers {
				a.Joined(f.ID, true, 0)
			}
			units := make([]int, len(r.Followers))
			for index := uint64(1); index <= 200; index++ {
				now := time.Duration(index) * time.Millisecond
				r.Index, r.Size, r.Now = index, 64<<10, now
				a.Busy(0, 0.9)
				a.Proposed(index, r.Size, now)
				if group > 0 {
					a.Assign(r, units)
				}
				a.Sent(r.Followers[0].ID, index, r.Size, now)
				a.Acked(r.Followers[0].ID, index, 0, now)
				a.Committed(index)
				if index%50 == 0 {
					a.Reset(now)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, m.open)
}
