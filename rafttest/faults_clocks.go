// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"errors"
	"time"

	"github.com/weftraft/weft/internal/world"
)

// Clocks that leave their bound, at nodes that know it: rule L28 of leases. A node hears at a tick that its clock is not fit.
// From then on, and until the node hears otherwise, the clock stands still, or runs at up to twice the rate of time.

// stretch is a clock's rate from an instant on, at which the clock read local.
type stretch struct {
	at    time.Duration
	local float64
	rate  float64
}

// machineClock is what is out of order with the clock of a node's machine.
type machineClock struct {
	stretches []stretch // Invariant: ascending; empty while the clock has never been out of order.
	unfit     bool      // the node is to hear that its clock is not fit
	bent      bool      // and the clock is not
	until     time.Duration
	// holds is an instant up to which the node is bound by all that it had promised, whatever its clock says.
	holds time.Duration
}

// drawClocks has a quarter of the runs with leases have clocks that leave their bound. The draws have a stream of their own.
func (l *leasedPlan) drawClocks(d world.Draws) {
	if d.Chance(0.25) {
		l.clocks, l.unfit = d, d.Span(100*time.Millisecond, time.Second)
	}
}

// read is what the clock reads at an instant, by the rate that it has in order.
func (c *machineClock) read(at time.Duration, rate float64) float64 {
	for i := len(c.stretches) - 1; i >= 0; i-- {
		if x := c.stretches[i]; x.at <= at {
			return x.local + float64(at-x.at)*x.rate
		}
	}
	return float64(at) * rate
}

// bend gives a clock another rate from now on.
func (s *sim) bend(n *node, rate float64) {
	c := &s.leased.clocks[n.id]
	c.stretches = append(c.stretches, stretch{at: s.Now(), local: c.read(s.Now(), s.plan.leased.rates[n.id]), rate: rate})
}

// Fit is asked for by nodes with leases.
func (c leaseClock) Fit() error {
	if c.n.s.leased.clocks[c.n.id].unfit {
		return errUnfit
	}
	return nil
}

var errUnfit = errors.New("the clock runs as it likes")

// misleadLater plans the next fault of a clock, if there are any.
func (f *faults) misleadLater() {
	s, l := f.s, f.s.plan.leased
	if l.unfit == 0 {
		return
	}
	s.After(l.clocks.Wait(l.unfit), func() {
		if !s.calm() {
			f.mislead()
			f.misleadLater()
		}
	})
}

// mislead has the clock of some node's machine leave its bound for a while.
func (f *faults) mislead() {
	s := f.s
	n := s.nodes[s.plan.leased.clocks.IntN(s.plan.voters+s.plan.spares)]
	if c := &s.leased.clocks[n.id]; !c.unfit && n.up() && !n.paused && n.core() != nil && n.core().rn.LeaseStatus().On {
		s.tell(n.id, "clock is unfit")
		c.unfit, c.until = true, s.Now()+s.plan.leased.clocks.Span(time.Millisecond, 2*s.plan.leased.cfg.Lease)
	}
}

// misled looks, after a tick of a node, whether the node stands aside, so that its clock may run as it likes, or may be in
// order again.
func (s *sim) misled(n *node) {
	l := s.plan.leased
	if l == nil || l.unfit == 0 || !s.leased.clocks[n.id].unfit || n.core() == nil || !n.core().rn.LeaseStatus().Aside {
		return
	}
	c := &s.leased.clocks[n.id]
	c.holds = max(c.holds, s.Now()+l.cfg.Lease)
	switch {
	case s.Now() >= c.until || s.calm():
		s.mendClock(n)
	case !c.bent:
		rate := 2 * l.clocks.Float64()
		s.tell(n.id, "clock runs at %.2f", rate)
		s.leased.UnfitClocks++
		s.bend(n, rate)
		c.bent = true
	}
}

// mendClock puts a clock in order, also before a process starts: the quarantine of a process goes by it.
func (s *sim) mendClock(n *node) {
	c := &s.leased.clocks[n.id]
	if c.bent {
		s.bend(n, s.plan.leased.rates[n.id])
	}
	if c.unfit {
		s.tell(n.id, "clock is fit")
	}
	c.unfit, c.bent = false, false
}
