// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests of this file run published rules, up to a stale read.

// Five members, 2 and 3 are responders. A rule that counts acknowledgements, as many
// as the leader, its responders and one more, lets a write commit without 3.
func TestCountOfRespondersLetsAReadBeStale(t *testing.T) {
	for _, published := range []bool{true, false} {
		s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
		s.opt.only = "Fresh" // what clients see
		s.bulk[1][3] = time.Hour
		l := s.member(1)
		if published {
			l.published = func(upTo Index) Index {
				acks := []Index{l.durable}
				for _, v := range []NodeID{2, 3, 4, 5} {
					acks = append(acks, l.match[v])
				}
				slices.Sort(acks)
				return min(upTo, acks[1]) // four of five have that
			}
		}
		i := s.write(1, 0)
		s.pass(20 * ms)
		require.Equal(t, published, s.committed(1, i))
		require.True(t, s.serves(3, keyOf(0)))
		require.Less(t, s.member(3).last(), i, "node 3 answers without the write")
	}
}

// Three members, 2 is a responder, and loses its links. The others remove 2 and go on. By
// published rules, leases at 2 last longer than the promises of the others, so 2 answers
// without the others' writes.
func TestLeasesThatCountTooLongLetAReadBeStale(t *testing.T) {
	for name, rule := range map[string]struct {
		set func(*settings)
		// longer is what the published rule counts of a grantor's lease beyond ours.
		longer func(s *stage, g NodeID) time.Duration
	}{
		"from the arrival of the answer": {
			set:    func(*settings) {},
			longer: func(s *stage, g NodeID) time.Duration { return s.slow[g][2] },
		},
		"without a margin for drift": {
			set: func(x *settings) {
				x.cfg.DriftPPM = 100_000
				x.rates = []float64{1.1, 0.9, 1.1}
			},
			longer: func(s *stage, _ NodeID) time.Duration { return s.member(2).lease.delta },
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, published := range []bool{true, false} {
				s := newStage(t, 3, 3, []NodeID{2}, rule.set)
				s.opt.only = "Fresh"
				if name == "from the arrival of the answer" {
					s.slow[1][2] = 150 * ms
				}
				s.pass(600 * ms)
				require.True(t, s.serves(2, keyOf(0)))
				s.sever([]NodeID{2}, []NodeID{1, 3})
				i := s.write(1, 0)
				s.pass(200 * ms) // what was under way has arrived
				if p := s.member(2); published {
					for _, g := range []NodeID{1, 3} {
						h := &p.lease.peer(g).holding
						h.until = h.until.after(rule.longer(s, g))
					}
				}
				s.until("the write is committed", 3*time.Second, func() bool { return s.committed(1, i) })
				require.Less(t, s.member(2).last(), i)
				require.Equal(t, published, s.serves(2, keyOf(0)), "node 2 answers without the write")
			}
		})
	}
}

// A responder whose disk is stuck goes on to renew its leases, and is heard. The published
// detector removes a node not heard for F, so the stuck node is never removed, and the write
// waits without end; our detector removes the node, because the write waits for the node.
func TestDetectorByHeartbeatsNeverRemovesAStuckResponder(t *testing.T) {
	s := newStage(t, 5, 5, []NodeID{2, 3}, nil)
	l := s.member(1)
	s.member(3).stuck = true
	i := s.write(1, 0)
	silent := time.Duration(0)
	s.until("the write is committed", 3*time.Second, func() bool {
		silent = max(silent, l.reading().since(l.lease.peer(3).follow.answered))
		return s.committed(1, i)
	})
	require.Less(t, silent, s.set.cfg.Fail, "node 3 was heard all the time, and would not have been removed")

	s = newStage(t, 5, 5, []NodeID{2, 3}, nil)
	s.member(1).deafToTicks = true // nothing else removes a responder
	s.member(3).stuck = true
	i = s.write(1, 0)
	s.pass(10 * time.Second)
	require.False(t, s.committed(1, i))
	require.True(t, s.serves(3, keyOf(0)), "it still renews its leases")
}
