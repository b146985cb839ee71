// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"math/rand/v2"
	"time"
)

// limp makes the disks of members of a third of the seeds slow for a while, again and again, while
// clients write without pause. The draws have a stream of their own.
func (w *world) limp() {
	if w.seed%3 != 2 {
		return
	}
	r := rand.New(rand.NewPCG(w.seed, 17))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	var next, write func()
	write = func() {
		if l := w.leader(); !w.calm && l != nil && !l.paused {
			l.propose(entry{keys: 1})
			l.flush()
		}
		w.after(time.Millisecond+upTo(8*time.Millisecond), write)
	}
	next = func() {
		m, times := w.members[r.IntN(len(w.members))], 1+r.IntN(20)
		if !w.calm && m.limps == 0 {
			w.logf("disk of node %d is %d times as slow", m.id, 1+times)
			m.limps = times
			w.after(upTo(16*w.set.cfg.Fail), func() { m.limps = 0 })
		}
		w.after(upTo(8*w.set.cfg.Fail), next)
	}
	w.after(upTo(time.Second), next)
	w.after(upTo(time.Second), write)
}
