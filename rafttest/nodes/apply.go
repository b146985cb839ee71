// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"github.com/weftraft/weft/internal/replica"
)

// step is work for the apply stage: one of its fields.
type step struct {
	apply   *replica.Apply
	restore *incoming
}

func (s step) bytes() (n int) {
	if s.apply != nil {
		for _, c := range s.apply.Batch.Commands {
			n += len(c)
		}
	}
	return n
}

func (m *member) addStep(s step) {
	m.steps = append(m.steps, s)
	m.stepLen += s.bytes()
	m.nextStep()
}

// nextStep gives the state machine its next piece of work. An incomplete
// snapshot delays the work behind.
func (m *member) nextStep() {
	if m.stepped || len(m.steps) == 0 {
		return
	}
	s := m.steps[0]
	if s.restore != nil && !s.restore.whole && s.restore.err == nil {
		return
	}
	m.stepped = true
	if lag := m.n.w.applyLag(); lag > 0 {
		m.n.after(lag, m.takeSteps)
		return
	}
	m.takeSteps()
}

// takeSteps does the work that waits for the state machine.
func (m *member) takeSteps() {
	s, c := m.steps[0], &m.n.w.plan.costs
	if s.restore != nil {
		m.steps = m.steps[1:]
		m.n.cpu.Add(func() (time.Duration, func()) {
			return per(s.restore.size, c.ApplyKiB), func() { m.restore(s.restore) }
		})
		return
	}
	// The stage has the processor until all waiting work is done.
	m.n.cpu.Add(func() (cost time.Duration, effect func()) {
		var steps []step
		for len(m.steps) > 0 && m.steps[0].restore == nil {
			s := m.steps[0]
			m.steps = m.steps[1:]
			m.stepLen -= s.bytes()
			cost += c.Apply + time.Duration(len(s.apply.Batch.Commands))*c.Command + per(s.bytes(), c.ApplyKiB)
			steps = append(steps, s)
		}
		return cost, func() {
			m.stepped = false
			for _, s := range steps {
				m.apply(*s.apply)
			}
			m.nextStep()
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
				w.fail(SameCommands, "%v, group %d, up to index %d: %v", m.n, m.g.id, a.Batch.Index, err)
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
	m.post(0, func(r *replica.Replica) { r.ApplyDone(a, results) })
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
		m.post(0, func(r *replica.Replica) { r.Durable(kept.index) })
	}
	life := n.life
	n.disk.Do(n.disk.takes(m.state.size(), true), func() {
		if n.life != life || !n.up {
			return
		}
		if w.opts.Bug == ApplyAgain {
			kept.encoded = m.state.encode() // by now the state has more in it
		}
		if kept.index > n.kept[m.g.id].index { // else a snapshot was restored meanwhile
			n.kept[m.g.id] = kept
		}
		w.reach.StatesKept++
		n.bound(durable)()
	})
}
