// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"time"

	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/world"
)

// repeat lets something happen once in mean on average, until the calm.
func (w *sim) repeat(mean time.Duration, f func()) {
	if mean == 0 {
		return
	}
	wait := w.faults.Wait(mean)
	if w.Now() > runTime {
		wait *= 4 // the group is on the move, and must get somewhere
	}
	w.After(wait, func() {
		if !w.calm && w.err == nil {
			f()
			w.repeat(mean, f)
		}
	})
}

// someone returns a machine on which a process runs, or nil.
func (w *sim) someone() *machine {
	m := world.Pick(w.faults, w.live()...)
	if m.proc == nil {
		return nil
	}
	return m
}

func (w *sim) beginFaults() {
	p := w.plan
	w.repeat(p.crashEvery, func() { w.down(w.someone(), (*machine).crash, &w.reach.Crashes) })
	w.repeat(p.killEvery, func() { w.down(w.someone(), (*machine).stop, &w.reach.Kills) })
	w.repeat(p.pauseEvery, func() {
		if m := w.someone(); m != nil && !m.paused {
			w.reach.Pauses++
			d := w.faults.Span(50*time.Millisecond, 2500*time.Millisecond)
			w.say(m.id, "pauses for %v", d)
			m.pause(d)
		}
	})
	w.repeat(p.cutEvery, w.cut)
	w.repeat(p.breakEvery, func() {
		n := len(w.machines)
		from, to := uint64(w.faults.Between(1, n)), uint64(w.faults.Between(1, n))
		w.reach.StreamBreaks++
		w.breakStream(from, to)
	})
	w.repeat(p.transferEvery, w.transfer)
	w.beginSlowFaults()
}

// beginSlowFaults plans the faults that report no error.
func (w *sim) beginSlowFaults() {
	p := &w.plan
	for _, f := range []struct {
		mean   time.Duration
		what   string
		happen func(m *machine, lasting time.Duration)
	}{
		{p.hangEvery, "has a disk that hangs", func(m *machine, d time.Duration) { w.reach.HungDisks++; m.spindle.Hang(d) }},
		{p.slowDiskEvery, "has a slow disk", func(m *machine, d time.Duration) { w.reach.SlowDisks++; m.spindle.Slow(10, d) }},
		{p.slowMachineEvery, "is slow", func(m *machine, d time.Duration) {
			w.reach.SlowMachines++
			w.Stutter(d, func(still time.Duration) {
				if m.proc != nil && !m.paused && !w.calm {
					m.pause(still)
				}
			})
		}},
		{p.slowLinkEvery, "has slow links", func(m *machine, d time.Duration) { w.links.Slow(m.id, d) }},
		{p.holdEvery, "has held connections", func(m *machine, d time.Duration) {
			w.links.Link(m.id, uint64(w.faults.Between(1, len(w.machines)))).Hold(w.faults.IntN(streamLane+1), d)
		}},
	} {
		w.repeat(f.mean, func() {
			if m := w.someone(); m != nil {
				d := w.faults.Span(20*time.Millisecond, 1500*time.Millisecond)
				w.say(m.id, "%s for %v", f.what, d)
				f.happen(m, d)
			}
		})
	}
}

// down takes a process down for a while.
func (w *sim) down(m *machine, how func(*machine), count *uint64) {
	if m == nil || m.proc == nil {
		return
	}
	*count++
	how(m)
	w.After(w.faults.Span(20*time.Millisecond, 1500*time.Millisecond), func() {
		if m.proc == nil && !m.gone && !w.calm {
			m.start()
		}
	})
}

// cut blocks links for a while: all of a machine, in one direction or both.
func (w *sim) cut() {
	m := w.someone()
	if m == nil {
		return
	}
	w.reach.Cuts++
	out, in := true, true
	switch w.faults.IntN(4) {
	case 0:
		in = false
	case 1:
		out = false
	}
	w.say(m.id, "is cut off, out %v in %v", out, in)
	mends := w.links.Isolate(m.id, in, out)
	w.After(w.faults.Span(50*time.Millisecond, 1500*time.Millisecond), func() {
		for _, mend := range mends {
			mend()
		}
	})
}

// transfer hands leadership to a member with all committed entries.
func (w *sim) transfer() {
	p := w.leader()
	if p == nil {
		return
	}
	r := p.common()
	commit := r.core.State().Commit
	var to []uint64
	r.visit(func(id uint64, learner bool, pr tracker.Progress) {
		if !learner && pr.Match >= commit {
			to = append(to, id)
		}
	})
	if len(to) > 0 {
		w.reach.Transfers++
		r.m.run(func() { r.core.TransferLeader(world.Pick(w.faults, to...)); p.work() })
	}
}
