// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"math/rand/v2"
	"time"
)

// doubt has members of a third of the seeds stand aside for a while, as if their clocks
// were found unfit. The draws have a stream of their own.
func (w *world) doubt() {
	if w.seed%3 != 1 {
		return
	}
	r := rand.New(rand.NewPCG(w.seed, 13))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	var next func()
	next = func() {
		m := w.members[r.IntN(len(w.members))]
		if w.calm || !m.alive {
			w.after(upTo(time.Second), next)
			return
		}
		m.receive(func() {
			w.logf("node %d stands aside", m.id)
			w.reached.Asides++
			m.lease.StandAside(m.reading(), true)
		})
		m.later(upTo(2*w.set.cfg.Lease), func() { m.lease.StandAside(m.reading(), false) })
		w.after(upTo(time.Second), next)
	}
	w.after(upTo(time.Second), next)
}
