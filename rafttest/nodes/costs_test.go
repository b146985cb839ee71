// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCosts compares simulated nodes with real ones: what a command costs at one
// size, against another. The figures were measured together with the table
// [measured], in microseconds of processor time a command over three nodes. Only
// the shape is to agree, over a factor of a hundred from one end of the table to the
// other: a machine with other work to do is off by a factor itself.
func TestCosts(t *testing.T) {
	t.Parallel()
	simulated := func(size, clients int) float64 {
		s := newScenario(t, 1, func(p *plan) {
			p.deadline, p.largest = 100*electionTime, float64(size)
			p.batchBytes, p.queueBytes, p.uncommitted = 256<<10, 64<<20, 64<<20
			p.inflightBytes, p.linkBytes, p.receiveBytes = 32<<20, 64<<20, 64<<20
			p.logBytes, p.segmentBytes, p.logCache, p.appendBytes = 64<<20, 256<<10, 64<<20, 1<<20
		})
		done := 0
		var propose func(m *member)
		propose = func(m *member) {
			s.history.operations++
			op := &operation{id: s.history.operations, verb: verbPut, seq: 1, padding: size}
			m.propose(op, s.plan.deadline, func(_ answer, err error) {
				require.NoError(t, err)
				done++
				propose(m)
			})
		}
		for i := range clients {
			propose(s.node(uint64(1 + i%3)).members[1])
		}
		s.pass(20 * time.Millisecond)
		spent := func() (all time.Duration) {
			for _, n := range s.nodes[:3] {
				all += n.cpu.Spent
			}
			return all
		}
		before, was := spent(), done
		s.pass(100 * time.Millisecond)
		return float64((spent() - before).Microseconds()) / float64(done-was)
	}
	for _, tt := range measuredPerCommand {
		got := simulated(tt.size, tt.clients)
		t.Logf("%7d bytes, %2d clients: simulated %7.1f us, measured %7.1f us", tt.size, tt.clients, got, tt.micros)
		require.Greater(t, got, tt.micros/4, "%d bytes, %d clients", tt.size, tt.clients)
		require.Less(t, got, tt.micros*2, "%d bytes, %d clients", tt.size, tt.clients)
	}
}

// measuredPerCommand was measured together with the table.
var measuredPerCommand = []struct {
	size, clients int
	micros        float64
}{
	{16, 16, 138.6}, {16, 64, 65.0},
	{1 << 10, 16, 151.0}, {1 << 10, 64, 52.2},
	{16 << 10, 16, 320.1}, {16 << 10, 64, 231.6},
	{64 << 10, 16, 480.6}, {64 << 10, 64, 368.2},
	{1 << 20, 16, 6407.3},
}
