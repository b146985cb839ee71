// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/replica"
)

// TestOverload offers more than the nodes can take, whatever the bottleneck is.
// Calls are refused or end within their deadlines; no queue is over its budget,
// which is checked in each turn; and what is done stays near the most that can
// be done.
func TestOverload(t *testing.T) {
	t.Parallel()
	const deadline = 5 * electionTime
	for _, tt := range []struct {
		name    string
		padding int
		rates   []int // calls a second
		tune    func(*plan)
	}{
		{"cpu", 16, []int{200, 2000, 8000, 32000}, func(p *plan) { p.costs = measured.scaled(40) }},
		{"link", 8 << 10, []int{100, 500, 2000, 8000}, func(p *plan) { p.costs.LinkKiB = 100 * time.Microsecond }},
		{"disk", 8 << 10, []int{100, 500, 2000, 8000}, func(p *plan) { p.costs.DiskKiB = 200 * time.Microsecond }},
		{"sync", 16, []int{200, 1000, 8000}, func(p *plan) { p.costs.Sync = 40 * time.Millisecond; p.batches, p.batchBytes = 4, 512 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			most := 0.0
			for i, rate := range tt.rates {
				s := newScenario(t, 1, func(p *plan) {
					p.deadline, p.largest = deadline, float64(tt.padding)
					p.calls, p.queueBytes = 400, 256<<10
					p.uncommitted, p.inflightBytes, p.appendBytes = 256<<10, 128<<10, 32<<10
					p.receiveBytes, p.linkBytes, p.logBytes, p.applyBytes = 256<<10, 256<<10, 256<<10, 64<<10
					tt.tune(p)
				})
				got := s.offer(rate, tt.padding, 2*time.Second)
				t.Logf("offered %5d/s: done %6.0f/s, refused %5d, unknown %d, slowest %v, %d leaders", rate, got.perSecond, got.refused, got.unknown, got.slowest.Round(time.Millisecond), len(s.groups[0].leaders))
				require.Zero(t, got.open, "calls that did not end")
				require.LessOrEqual(t, s.late, 5*tickTime, "a call ends late")
				if i == 0 {
					require.Zero(t, got.refused+got.unknown, "there is room for all of it")
				}
				if i == len(tt.rates)-1 {
					require.NotZero(t, got.refused, "this is no overload")
				}
				most = max(most, got.perSecond)
				require.GreaterOrEqual(t, got.perSecond, most/2, "overload has the work collapse")
				s.end()
			}
		})
	}
}

type offered struct {
	open, done, refused, unknown int
	perSecond                    float64
	slowest                      time.Duration
}

// offer makes calls at a fixed rate, spread over the nodes, whatever becomes of
// them.
func (s *scenario) offer(rate, padding int, d time.Duration) *offered {
	got := &offered{}
	g := s.groups[0]
	begun := s.Now()
	var next func()
	next = func() {
		if s.Now() >= begun+d {
			return
		}
		s.After(time.Second/time.Duration(rate), next)
		s.history.operations++
		op := &operation{id: s.history.operations, verb: verbPut, session: 0, seq: 1, padding: padding}
		m := s.node(1 + uint64(s.history.operations)%uint64(s.plan.voters)).members[g.id]
		got.open++
		at := s.Now()
		m.propose(op, s.plan.deadline, func(_ answer, err error) {
			got.open--
			got.slowest = max(got.slowest, s.Now()-at)
			switch {
			case err == nil:
				if s.Now() < begun+d {
					got.done++
				}
			case errors.Is(err, replica.ErrRefused):
				got.refused++
			default:
				got.unknown++
			}
		})
	}
	next()
	s.pass(d)
	got.perSecond = float64(got.done) / d.Seconds()
	s.reaches(3*s.plan.deadline, "the end of all calls", func() bool { return got.open == 0 })
	return got
}
