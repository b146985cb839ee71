// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// TestNamesSaveWhatTheFollowersHave measures the bytes that a leader sends for a byte of its log, with
// clients that are spread evenly over N nodes: N-1 without names, and (N-1)(1-1/N) with names. The
// figures are of encoded messages, and include all of the leader's other messages.
func TestNamesSaveWhatTheFollowersHave(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4 << 10, 64 << 10} {
		for _, voters := range []int{3, 5, 7} {
			n := float64(voters)
			without, with := leaderEgress(t, voters, size, false), leaderEgress(t, voters, size, true)
			t.Logf("N=%d, %2d KiB: %.3f bytes without names, %.3f with names, of %.3f", voters, size>>10, without, with, (n-1)*(1-1/n))
			require.InEpsilon(t, n-1, without, 0.02)
			require.InEpsilon(t, (n-1)*(1-1/n), with, 0.02)
		}
	}
}

func leaderEgress(t *testing.T, voters, size int, on bool) float64 {
	s := newScenario(t, 1, func(p *plan) {
		p.voters, p.naming.on = voters, on
		p.deadline, p.largest = 100*electionTime, float64(size)
		p.batchBytes, p.queueBytes, p.uncommitted = 256<<10, 64<<20, 64<<20
		p.inflightBytes, p.linkBytes, p.receiveBytes = 32<<20, 64<<20, 64<<20
		p.logBytes, p.segmentBytes, p.logCache, p.appendBytes = 64<<20, 256<<10, 64<<20, 1<<20
		p.retainBytes = 1 << 20
	})
	leader := s.groups[0].leading()
	const every, burst = 8 * time.Millisecond, 64 << 10 // 8 MB/s a node, in bursts, of which batches are made
	sent := 0
	s.net.watch = func(m wire.Message) {
		if m.From == leader.n.id {
			var f wire.Frame
			f.AppendMessage(m)
			sent += f.Len() - wire.HeaderLen
		}
	}
	var propose func(m *member, after time.Duration)
	propose = func(m *member, after time.Duration) {
		s.After(after, func() {
			for range burst / size {
				s.history.operations++
				op := &operation{id: s.history.operations, verb: verbPut, seq: 1, padding: size}
				m.propose(op, s.plan.deadline, func(_ answer, err error) { require.NoError(t, err) })
			}
			propose(m, every)
		})
	}
	for _, n := range s.nodes[:voters] {
		propose(n.members[1], every*time.Duration(n.id)/time.Duration(voters))
	}
	s.pass(50 * time.Millisecond)
	sent = 0
	before := leader.r.Status().Counters.AppendedBytes
	s.pass(128 * time.Millisecond)
	appended := leader.r.Status().Counters.AppendedBytes - before
	require.Equal(t, leader, s.groups[0].leading(), fmt.Sprint("the leader of ", voters))
	return float64(sent) / float64(appended)
}
