// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"math/rand/v2"
	"slices"
	"time"
)

// drawTuner has a third of the seeds run with a tuner, which an operator switches. The
// draws have a stream of their own, so that the other seeds stay as they are.
func (w *world) drawTuner() {
	if w.seed%3 != 0 {
		return
	}
	r := rand.New(rand.NewPCG(w.seed, 11))
	w.tuning = r
	w.set.cfg.Tuner = &TunerConfig{Window: time.Duration(20+r.IntN(200)) * time.Millisecond, Spans: 1 + r.IntN(6), Least: 1 + r.IntN(8)}
	w.set.cfg.Wanted = w.uncovered(w.set.cfg.Wanted)
}

// uncovered leaves out one of the wishes or all, because the tuner takes only keys
// that no operator has spoken of.
func (w *world) uncovered(wanted []Want) []Want {
	if at := w.tuning.IntN(3); at < len(wanted) {
		return slices.Delete(slices.Clone(wanted), at, at+1)
	}
	return nil
}

// retune has an operator switch the tuner, and choose responders by the same call.
func (w *world) retune() {
	if w.tuning == nil || w.calm {
		return
	}
	if l := w.leader(); l != nil && !l.paused {
		mode, wanted := TunerMode(w.tuning.IntN(4)), w.uncovered(w.someWanted())
		w.logf("node %d: tuner %v, wanted %v", l.id, mode, wanted)
		if err := l.lease.SetWanted(l.reading(), wanted, mode); err != nil {
			w.fail("Messages", "%v", err)
		}
		w.reached.Retuned++
		l.flush()
	}
	w.after(time.Duration(w.tuning.Int64N(int64(600*time.Millisecond))), w.retune)
}

// checkTuner checks that a leader wants and names by its tuner only while the tuner is on,
// and that a member counts only while the tuner is not off.
func (w *world) checkTuner(m *member) {
	mode := m.lease.tunerMode()
	if m.lease.Tunes() != (mode != TunerOff) {
		w.fail("Tuned", "node %d counts: %t, and its tuner is %v", m.id, m.lease.Tunes(), mode)
	}
	if !m.leads {
		return
	}
	r := m.lease.rosters.newest()
	on := r.Tuner == TunerOn || r.Tuner == TunerConfigured && w.set.cfg.Tuner != nil
	for _, want := range r.Wanted {
		if !want.Tuned {
			continue
		}
		if !on {
			w.fail("Tuned", "roster %v has the tuner's wish for %v, and the tuner is %v", r.ID, want.Span, r.Tuner)
		}
		if slices.ContainsFunc(r.Spans, func(a Assignment) bool { return a.Span == want.Span }) {
			w.reached.TunedSpans++
		}
	}
	for _, a := range r.Spans {
		if !slices.ContainsFunc(r.Wanted, func(want Want) bool { return want.Span == a.Span }) {
			w.fail("Tuned", "roster %v names responders of %v, which nobody wants", r.ID, a.Span)
		}
	}
}

// agreesOnTuner reports whether all members that are in the configuration of a leader have
// its operator's word.
func (w *world) agreesOnTuner(l *member) bool {
	return !slices.ContainsFunc(w.members, func(m *member) bool {
		return l.conf.has(m.id) && m.lease.wish.tuner != l.lease.wish.tuner
	})
}
