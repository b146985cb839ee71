// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A responder whose clock is not fit answers no read from that instant on, and grants
// nothing; the others go on, and so does the responder once its clock is fit.
func TestResponderStandsAsideWhileItsClockIsUnfit(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2, 3}, nil)
	m := s.member(2)
	granted := func() uint64 { return m.lease.counts.Granted }
	m.lease.StandAside(m.reading(), true)
	_, reads := m.lease.ReadIndex(m.reading())
	require.False(t, reads)
	require.False(t, m.lease.MayServe(), "no read waits here")
	require.True(t, m.lease.Status(m.reading()).Aside)
	before := granted()
	i := s.write(1, 0)
	s.until("a write is committed", rounds, func() bool { return s.committed(1, i) })
	s.pass(time.Second)
	require.False(t, s.serves(2, Span{}))
	require.Equal(t, before, granted())
	require.Empty(t, m.lease.Status(m.reading()).Leases, "they were given back")
	require.Empty(t, m.lease.Status(m.reading()).Promises)
	require.True(t, s.serves(1, Span{}))
	require.True(t, s.serves(3, Span{}))
	m.lease.StandAside(m.reading(), false)
	s.until("it answers again", time.Second, func() bool { return s.serves(2, Span{}) })
	require.Greater(t, granted(), before)
}

// What a node has promised by a clock that may have been too fast binds it for longer: for
// twice the quarantine it votes for nobody.
func TestNodeThatStandsAsideHoldsItsPromisesForLonger(t *testing.T) {
	s := newStage(t, 3, 3, []NodeID{2}, nil)
	m := s.member(3)
	require.True(t, m.lease.MayVote(m.reading().after(s.set.cfg.Lease), 2), "its promises end by then")
	m.lease.StandAside(m.reading(), true)
	require.False(t, m.lease.MayVote(m.reading().after(2*s.set.cfg.Lease-1), 2))
	require.True(t, m.lease.MayVote(m.reading().after(2*s.set.cfg.Lease), 2))
	until := m.lease.restart.until
	s.pass(100 * ms)
	m.lease.StandAside(m.reading(), true)
	require.Equal(t, until, m.lease.restart.until, "said again, it is nothing new")
}

// A leader whose clock is not fit does not read by its lease, and goes on leading: a responder
// that fails is removed.
func TestLeaderStandsAsideAndLeads(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
	m := s.member(1)
	m.lease.StandAside(m.reading(), true)
	require.False(t, s.serves(1, Span{}))
	require.True(t, s.serves(3, Span{}))
	s.pass(time.Second)
	s.member(2).stop()
	i := s.write(1, 0)
	s.until("the write is committed", s.set.cfg.Fail+s.set.cfg.Lease+rounds, func() bool { return s.committed(1, i) })
	require.False(t, s.serves(1, Span{}))
	require.True(t, s.serves(3, Span{}))
}

// A permit ends when the clock is found unfit, also where a node needs no lease of another.
func TestNodeThatStandsAsidePermitsNothing(t *testing.T) {
	for voters, asked := range map[int]int{1: 1, 3: 2} {
		s := newStage(t, voters, voters, []NodeID{NodeID(asked)}, nil)
		m := s.member(NodeID(asked))
		require.NotNil(t, m.lease.Permit(nil), "%d voters", voters)
		m.lease.StandAside(m.reading(), true)
		require.Nil(t, m.lease.Permit(nil), "%d voters", voters)
	}
}
