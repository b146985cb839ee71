// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pacedStage starts a group with some responders: nodes 2 and 3, if none are given. Disks need 2 ms on average.
func pacedStage(t *testing.T, nodes int, wanted ...NodeID) *stage {
	if wanted == nil {
		wanted = []NodeID{2, 3}
	}
	s := newStage(t, nodes, nodes, wanted, func(x *settings) {
		x.sync, x.tick, x.delay = 2*ms, 20*ms, ms/2
		x.cfg.ElectionTimeout, x.cfg.Lease, x.cfg.Fail, x.cfg.Heartbeat = 400*ms, 400*ms, 200*ms, 40*ms
	})
	s.opt.verbose = false
	return s
}

// writes has one client write for a while, who pauses before each write, and returns how many
// of the writes were committed.
func (s *stage) writes(d, pause time.Duration) (n int) {
	s.t.Helper()
	l := s.leader()
	for until := s.now + d; s.now < until; n++ {
		s.pass(pause)
		i := s.write(l.id, 0)
		s.until("the write is committed", s.set.cfg.Fail, func() bool { return s.committed(l.id, i) })
	}
	return n
}

// handOver has node 1 hand leadership over to node 2, which knows nothing of the others' pace.
func (s *stage) handOver() *Node {
	m := s.member(1)
	m.heir, m.handing = 2, m.reading().after(time.Hour)
	m.lease.HandOver(m.reading(), true, false)
	m.flush()
	s.until("the heir leads, and node 3 serves", 5*time.Second, func() bool { return s.member(2).leads && !m.leads && s.serves(3, Span{}) })
	return s.member(2).lease
}

// forgetTrips has links count as ever as long as they are.
func (s *stage) forgetTrips() {
	for _, m := range s.members {
		for _, p := range m.lease.peers {
			p.follow.pace.trips = trips{}
		}
	}
}

// named reports whether the newest roster has a node.
func (s *stage) named(id NodeID) bool { return s.member(1).lease.rosters.newest().names(id) }

// The disk of a responder needs ten times as long as those of others, and then as long as they
// do: the responder is left out within two election timeouts, writes go on at the rate of a
// group in which the responder is stopped, and it returns.
func TestResponderThatLimpsIsLeftOutUntilItIsWell(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			s := pacedStage(t, nodes)
			et, l := s.set.cfg.ElectionTimeout, s.member(1).lease
			healthy := float64(s.writes(20*et, 0))
			require.Zero(t, l.counts.Removed)
			s.member(3).limps = 9
			s.writes(2*et, 0)
			require.False(t, s.named(3))
			require.Equal(t, uint64(1), l.counts.Limped)
			rate := float64(s.writes(20*et, 0))
			require.Equal(t, uint64(1), l.counts.Removed, "it does not return while it limps")
			require.True(t, s.serves(2, Span{}))
			if nodes == 5 {
				require.GreaterOrEqual(t, rate, 0.9*healthy)
			}
			s.member(3).limps = 0
			s.writes(2*et, 0)
			require.True(t, s.serves(3, Span{}))
			require.GreaterOrEqual(t, float64(s.writes(20*et, 0)), 0.9*healthy)
			require.Equal(t, uint64(1), l.counts.Removed)
			s.member(3).stop()
			s.pass(2 * et)
			require.GreaterOrEqual(t, rate, 0.95*float64(s.writes(20*et, 0)))
		})
	}
}

// The links or the disk of a leader take ten times as long, so that it hands over. The next leader does
// not name it, and writes go on at the rate of a group in which the former leader is stopped. A former
// leader that is well, again or all along, is named soon.
func TestFormerLeaderThatIsSlowIsNotNamed(t *testing.T) {
	for name, slow := range map[string]struct {
		links time.Duration
		limps int
	}{"links": {links: 9 * ms / 2}, "disk": {limps: 9}, "nothing": {}} {
		t.Run(name, func(t *testing.T) {
			s := pacedStage(t, 3, 1, 2, 3)
			f, rate := s.set.cfg.Fail, 0
			links := func(d time.Duration) {
				for _, id := range []NodeID{2, 3} {
					s.slow[1][id], s.slow[id][1] = d, d
				}
			}
			s.writes(10*f, 0)
			links(slow.links)
			s.member(1).limps = slow.limps
			l := s.handOver()
			named := func() bool { return l.rosters.newest().names(1) }
			if name != "nothing" {
				before := l.rosters.newest().ID
				rate = s.writes(20*f, 0)
				require.False(t, named())
				require.Equal(t, before, l.rosters.newest().ID, "rosters do not change")
				links(0)
				s.member(1).limps = 0
			}
			s.writes(2*f, 0)
			require.True(t, named())
			require.Zero(t, l.counts.Removed)
			if name != "nothing" {
				s.member(1).stop()
				s.pass(4 * f)
				require.GreaterOrEqual(t, float64(rate), 0.95*float64(s.writes(20*f, 0)))
			}
		})
	}
}

// A leader that is new does not know how fast a responder once was. A disk that was slow all
// along is found all the same, because the responder needs longer than its distance.
func TestResponderThatLimpsFromTheStartIsLeftOut(t *testing.T) {
	s := pacedStage(t, 3)
	s.member(3).limps = 9
	l := s.handOver()
	s.writes(3*s.set.cfg.ElectionTimeout, 0)
	require.False(t, l.rosters.newest().names(3))
	require.Equal(t, uint64(1), l.counts.Limped)
}

// A responder is far away on purpose: thirty times as far as the majority. It stays, also while
// its distance varies by a quarter, and also if the leader alone is far from all.
func TestFarResponderStays(t *testing.T) {
	for name, others := range map[string][]NodeID{"one": {3}, "all": {1, 3, 4, 5}} {
		t.Run(name, func(t *testing.T) {
			s := pacedStage(t, 5)
			far := func(d time.Duration) {
				for _, id := range others {
					s.slow[2][id], s.slow[id][2] = d, d
				}
			}
			far(30 * ms)
			s.forgetTrips()
			l := s.handOver()
			for n := range 100 {
				far(30*ms + time.Duration(n%4)*5*ms/2)
				s.writes(50*ms, 0)
			}
			require.Zero(t, l.counts.Removed)
			require.True(t, s.serves(3, Span{}))
		})
	}
}

// The disk of a far responder is slow: it limps, by more than its distance.
func TestFarResponderThatLimpsIsLeftOut(t *testing.T) {
	s := pacedStage(t, 3)
	s.set.sync = ms
	s.slow[2][3], s.slow[3][2] = 3*ms, 3*ms
	s.forgetTrips()
	l := s.handOver()
	s.writes(time.Second, 0)
	require.Zero(t, l.counts.Removed)
	s.member(3).limps = 19
	s.writes(3*s.set.cfg.ElectionTimeout, 0)
	require.False(t, l.rosters.newest().names(3))
	require.Equal(t, uint64(1), l.counts.Limped)
}

// A leader knows how far away its members are, whenever they would ask by themselves.
func TestDistancesAreKnownWhateverThePhaseOfAMember(t *testing.T) {
	s := pacedStage(t, 3)
	a := &s.member(1).lease.peer(3).follow.pace
	for k := range 5 {
		s.member(3).stop()
		s.pass(s.set.cfg.ElectionTimeout + time.Duration(8*k)*ms)
		s.member(3).start(false)
		s.until("it serves again", 64*s.set.cfg.Fail, func() bool { return s.serves(3, Span{}) })
		*a = pace{}
		s.pass(4 * s.set.cfg.Heartbeat)
		require.Equal(t, 2*s.set.delay, a.trip().Round(100*time.Microsecond))
	}
}

// A responder knows how far away the others are, also long after it was named, and whoever leads.
func TestRespondersKnowHowFarAwayOthersAre(t *testing.T) {
	s := pacedStage(t, 3)
	s.pass((2*tripFails + promptFails) * s.set.cfg.Fail)
	for _, m := range s.members {
		for _, p := range m.lease.peers {
			require.Equal(t, 2*s.set.delay, p.follow.pace.trip().Round(100*time.Microsecond), "from node %d to node %d", m.id, p.id)
		}
	}
	require.True(t, s.member(1).leads)
}

// A link has become slower, and stays so. The responder behind it limps, and is as far away as
// the link is long after a while.
func TestLinkThatStaysSlowIsALongerLink(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2, 3}, nil)
	s.opt.verbose = false
	f := s.set.cfg.Fail
	s.writes(time.Second, 5*ms)
	s.slow[1][3], s.slow[3][1] = 10*ms, 10*ms
	s.writes(10*f, 5*ms)
	require.False(t, s.named(3))
	s.writes(tripFails*f/2, 15*ms)
	require.False(t, s.named(3))
	for s.now < (2*tripFails+maxBackoff)*f && !s.named(3) {
		s.writes(f, 15*ms)
	}
	s.writes(100*f, 5*ms)
	require.True(t, s.named(3))
	require.Equal(t, uint64(1), s.member(1).lease.counts.Removed)
}

// All disks but the leader's are slow, so that a majority has to wait: nobody is to blame.
func TestMajorityThatIsSlowRemovesNobody(t *testing.T) {
	s := pacedStage(t, 5)
	s.writes(time.Second, 0)
	for id := NodeID(2); id <= 5; id++ {
		s.member(id).limps = 9
	}
	s.writes(10*s.set.cfg.ElectionTimeout, 0)
	require.Zero(t, s.member(1).lease.counts.Removed)
}

// A write now and then that takes long, and a disk that is busy with other work for as long as
// Fail, remove nobody.
func TestHiccupsOfAResponderRemoveNobody(t *testing.T) {
	s := pacedStage(t, 3)
	f := s.set.cfg.Fail
	for range 25 {
		s.member(3).stuck = true
		i := s.write(1, 0)
		s.pass(f / 3)
		s.member(3).stuck = false
		s.member(3).flush()
		s.until("the write is committed", f, func() bool { return s.committed(1, i) })
		s.writes(3*f, 5*ms)
		s.member(3).limps = 9
		s.writes(f, 0)
		s.member(3).limps = 0
		s.writes(3*f, 5*ms)
	}
	require.Zero(t, s.member(1).lease.counts.Removed)
}

// A responder limps and is well in turns, from a tenth of an election timeout to ten. It is
// removed fewer and fewer times: at most once for each doubling of the time for which it has to
// keep up, up to the length of its good times, and once for each redemption.
func TestResponderThatLimpsInTurnsDoesNotFlap(t *testing.T) {
	for _, tenths := range []int{1, 3, 10, 20, 50, 100} {
		t.Run(fmt.Sprintf("%d tenths", tenths), func(t *testing.T) {
			s := pacedStage(t, 3)
			l, f := s.member(1).lease, s.set.cfg.Fail
			half := time.Duration(tenths) * s.set.cfg.ElectionTimeout / 20
			began := s.now
			for s.now-began < 200*f {
				s.member(3).limps = 9
				s.writes(half, 5*ms)
				s.member(3).limps = 0
				s.writes(half, 5*ms)
			}
			bound := uint64(2)
			for b := f; b < half; b *= 2 {
				bound++
			}
			t.Logf("removed %d times in %v, bound %d", l.counts.Removed, s.now-began, bound)
			require.LessOrEqual(t, l.counts.Removed, bound)
		})
	}
}

// Nobody writes any more while a responder is left out. It returns: nobody waits for it.
func TestResponderThatLimpedReturnsToAnIdleGroup(t *testing.T) {
	s := pacedStage(t, 3)
	s.member(3).limps = 9
	s.writes(3*s.set.cfg.ElectionTimeout, 0)
	require.False(t, s.named(3))
	s.until("it serves", (windowFails+5)*s.set.cfg.Fail, func() bool { return s.serves(3, Span{}) })
}
