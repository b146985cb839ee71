// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	sparedSeeds = flag.Uint64("spared-seeds", 250, "how many seeds TestWritesWaitNoLongerThanTheySay runs")
	sparedFirst = flag.Uint64("spared-first", 1, "the first of these seeds")
)

// spared is a run in which all goes wrong at some nodes, and nothing at the others: a majority of the voters, the
// leader among them, and the links between these. There a write waits for no responder for longer than for Fail and a
// lease, whatever the responders do, one after the other.
type spared struct {
	*world
	draws    *rand.Rand
	weak     []*member
	appended map[Index]time.Duration // at the leader
	bound    time.Duration
	longest  time.Duration
}

// TestWritesWaitNoLongerThanTheySay runs groups with a majority that is well.
func TestWritesWaitNoLongerThanTheySay(t *testing.T) {
	var total reached
	waited, count := 0, *sparedSeeds
	if testing.Short() {
		count = min(count, 40)
	}
	for seed := *sparedFirst; seed < *sparedFirst+count; seed++ {
		s := runSpared(seed, false)
		total.add(s.reached)
		if s.failure != "" {
			s = runSpared(seed, true)
			for _, line := range s.trace {
				t.Log(line)
			}
			t.Fatalf("%s\nrepeat with: go test ./leases -run TestWritesWaitNoLonger -spared-first %d -spared-seeds 1", s.failure, seed)
		}
		if s.longest > s.set.cfg.Fail {
			waited++
		}
	}
	t.Logf("in %d of %d runs a write waited for Fail; reached %+v", waited, count, total)
	if count >= 100 {
		require.Greater(t, 2*waited, int(count))
		require.Positive(t, total.Silent)
		require.Positive(t, total.Stuck)
		require.Positive(t, total.Confirmed)
	}
}

func runSpared(seed uint64, verbose bool) *spared {
	s := &spared{world: newWorld(seed, options{verbose: verbose}), draws: rand.New(rand.NewPCG(seed, 19)), appended: map[Index]time.Duration{}}
	x := &s.set
	x.loss, x.dup, x.late, x.forced, x.ambush = 0, 0, 0, false, 0
	x.sync = min(x.sync, time.Millisecond)
	x.jitter = min(x.jitter, 3*time.Millisecond)
	x.cfg.Tuner = nil
	x.meek, x.bounds = true, map[NodeID]ClockBound{}
	for id := NodeID(1); int(id) <= x.nodes; id++ {
		if s.draws.IntN(2) == 0 { // a clock that is better than others, and says so: rule L31
			x.bounds[id] = ClockBound{DriftPPM: 1 + s.draws.IntN(x.cfg.DriftPPM), Resolution: max(x.cfg.Resolution/time.Duration(1+s.draws.IntN(4)), time.Microsecond)}
		}
	}
	rho := float64(x.cfg.DriftPPM) / 1e6
	long := func(d time.Duration) time.Duration { return time.Duration(float64(d) / (1 - rho)) }
	step := x.delay + x.jitter
	s.bound = long(x.cfg.Fail+2*x.tick+min(x.cfg.Lease, x.cfg.ElectionTimeout)+x.cfg.Resolution) + 4*(step+2*x.sync) + 2*long(x.tick)
	s.begin()
	s.run(200 * time.Millisecond)
	healthy := map[NodeID]bool{x.first: true}
	for id := NodeID(1); len(healthy) <= x.voters/2; id++ {
		healthy[id] = true
	}
	for _, m := range s.members {
		if !healthy[m.id] {
			s.weak = append(s.weak, m)
		}
	}
	if len(s.weak) == 0 {
		return s
	}
	s.after(0, s.write)
	s.after(0, s.disturb)
	s.run(s.between(time.Second, 3*time.Second))
	for _, m := range s.members {
		m.count()
	}
	return s
}

func (s *spared) within(d time.Duration) time.Duration {
	return time.Duration(s.draws.Int64N(int64(d)))
}

// write has the leader write, and looks at what waits.
func (s *spared) write() {
	l := s.member(s.set.first)
	if !l.leads {
		s.fail("Spared", "node %d leads no more", l.id)
		return
	}
	if s.draws.IntN(4) == 0 {
		l.propose(entry{keys: 1 << s.draws.IntN(keyCount), told: s.set.spans})
		s.appended[l.last()] = s.now
		l.flush()
	}
	for i, at := range s.appended {
		if i > l.commit {
			continue
		}
		s.longest = max(s.longest, s.now-at)
		delete(s.appended, i)
	}
	for i, at := range s.appended {
		if s.now-at > s.bound {
			s.fail("Held", "entry %d has waited for %v, and at most %v are said", i, s.now-at, s.bound)
		}
	}
	s.ask(s.pick())
	s.askByPermit(s.pick())
	s.after(time.Millisecond+s.within(4*time.Millisecond), s.write)
}

// disturb does something to a weak node, and plans the next.
func (s *spared) disturb() {
	m := s.weak[s.draws.IntN(len(s.weak))]
	d := s.within(2 * (s.set.cfg.Fail + s.set.cfg.Lease))
	switch s.draws.IntN(12) {
	case 0:
		s.pauseFor(m, d)
	case 1:
		if !m.misled { // its quarantine would go by a clock beyond the bound
			s.restart(m, d/4, s.draws.IntN(2))
		}
	case 2:
		s.isolate(m, d)
	case 3, 4:
		s.deafen(m, d)
		if s.draws.IntN(2) == 0 { // and another, while leases run out
			s.after(s.set.cfg.Fail+s.within(s.set.cfg.Lease), func() { s.deafen(s.weak[s.draws.IntN(len(s.weak))], d) })
		}
	case 5:
		s.cutFor(s.set.first, m.id, d)
	case 6:
		s.cutFor(m.id, s.set.first, d)
	case 7:
		o := s.pick()
		s.logf("node %d sends slowly to %d", o.id, m.id)
		s.slow[o.id][m.id] = d / 4
		s.after(d, func() { s.slow[o.id][m.id] = 0 })
	case 8:
		s.stick(m, d)
	case 9:
		s.mislead(m, d)
	case 10:
		s.drift(m)
	case 11:
		s.rename()
	}
	s.after(s.within(s.set.cfg.Fail+s.set.cfg.Lease/2), s.disturb)
}

func (s *spared) deafen(m *member, d time.Duration) {
	s.logf("node %d is deaf", m.id)
	for _, o := range s.members {
		s.cutFor(o.id, m.id, d)
	}
}

// mislead has a node's clock stand still, or run up to twice as fast as time, for a while in which the node knows: rule L28.
func (s *spared) mislead(m *member, d time.Duration) {
	if !m.alive || m.paused || m.misled {
		return
	}
	m.misled = true
	life := m.life
	stand := func(aside bool) {
		if m.life == life {
			m.receive(func() { m.lease.StandAside(m.reading(), aside) })
		}
	}
	stand(true)
	s.reached.Asides++
	s.drift(m)
	m.clock.rate = 2 * s.draws.Float64()
	s.logf("the clock of node %d runs at %.2f", m.id, m.clock.rate)
	s.after(d, func() {
		s.drift(m)
		m.misled = false
		stand(false)
	})
}
