// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"github.com/weftraft/weft/internal/replica"
)

// Step gives the state machine its next piece of work.
func (m *member) Step() {
	if lag := m.n.w.applyLag(); lag > 0 {
		m.n.after(lag, m.takeSteps)
		return
	}
	m.takeSteps()
}

// takeSteps does the work that waits for the state machine.
func (m *member) takeSteps() {
	c := &m.n.w.plan.costs
	if in := m.drive.Restoring(); in != nil {
		m.drive.Take()
		m.n.cpu.Add(func() (time.Duration, func()) {
			return per(len(in.Body), c.ApplyKiB), func() { m.restore(in) }
		})
		return
	}
	// The stage has the processor until all waiting work is done.
	m.n.cpu.Add(func() (cost time.Duration, effect func()) {
		steps := m.drive.TakeApplies()
		for _, s := range steps {
			m.passes(s.Apply)
			m.appliesEarly(s.Apply.Batch.Index)
			cost += c.Apply + time.Duration(len(s.Apply.Batch.Commands))*c.Command + per(s.Bytes(), c.ApplyKiB)
		}
		return cost, func() {
			for _, s := range steps {
				m.apply(*s.Apply)
			}
			m.drive.Stepped()
		}
	})
}

// apply applies a step unless the state is beyond it.
func (m *member) apply(a replica.Apply) {
	w := m.n.w
	var results []any
	if a.Batch.Index > m.applied {
		for _, data := range a.Batch.Commands {
			c, err := decodeCommand(data)
			var got answer
			if err == nil {
				got, err = m.state.apply(c)
			}
			if err != nil {
				w.fail(sameCommands, "%v, group %d, up to index %d: %v", m.n, m.g.id, a.Batch.Index, err)
				return
			}
			m.g.took(m.n, m.state.applied, c, got)
			results = append(results, got)
		}
		m.applied = a.Batch.Index
		m.local.Applied(m.applied)
		if a.Batch.Host != nil {
			m.host = a.Batch.Host
		}
		m.keep()
	}
	m.drive.Post(0, func(r *replica.Replica) { r.ApplyDone(a, results) })
}

// keep writes a copy of the state to the disk now and then, in its own files.
func (m *member) keep() {
	n, w := m.n, m.n.w
	if m.keeping || m.applied < n.kept[m.g.id].index+w.plan.keepEvery || n.disk.Full() {
		return
	}
	m.keeping = true
	kept := keptState{index: m.applied, host: m.host, encoded: m.state.encode()}
	durable := func() {
		m.keeping = false
		m.drive.Post(0, func(r *replica.Replica) { r.Durable(kept.index) })
	}
	life := n.life
	n.disk.Do(n.disk.takes(m.state.size(), true), func() {
		if n.life != life || !n.up {
			return
		}
		if w.opts.Bug == applyAgain {
			kept.encoded = m.state.encode() // by now the state has more in it
		}
		if kept.index > n.kept[m.g.id].index { // else a snapshot was restored meanwhile
			n.kept[m.g.id] = kept
		}
		w.reach.StatesKept++
		n.bound(durable)()
	})
}
