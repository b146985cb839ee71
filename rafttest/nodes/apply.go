// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"github.com/weftraft/weft/internal/replica"
)

// Step gives the state machine its next piece of work.
func (m *member) Step() {
	if lag := m.applyLag(); lag > 0 {
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

// applyLag returns how long a step waits before the state machine takes it.
func (m *member) applyLag() time.Duration {
	w := m.n.w
	if left := m.n.lateUntil - w.Now(); left > 0 {
		return w.homes.Within(0, left)
	}
	j := w.plan.joints
	if j == nil || w.calming || !j.draws.Chance(j.lag) {
		return 0
	}
	w.joints.LateApplies++
	return j.draws.Within(0, j.lagMost)
}

// passes counts repeated changes in a step of the state machine that its state has
// passed already.
func (m *member) passes(a *replica.Apply) {
	if a.Batch.Index > m.applied {
		return
	}
	w := m.n.w
	w.reach.StatesAhead++
	for context, first := range m.g.repeated {
		for _, at := range m.changesInLog(a.First, a.Batch.Index, []byte(context)) {
			if at > first {
				w.reach.RepeatsPassed++
			}
		}
	}
}

// mostEarly is the bound on early entries at a member.
func (m *member) mostEarly() uint64 {
	if m.n.plain() {
		return 0
	}
	return m.n.w.plan.mostEarly()
}

// appliesEarly checks what a state machine is about to apply (rule E2).
func (m *member) appliesEarly(index uint64) {
	entries, bytes := m.unstored.upTo(index)
	if entries > 0 {
		m.n.w.reach.EarlyApplies++
		m.n.w.faults.early(m.n)
	}
	if most := m.mostEarly(); bytes > most {
		m.n.w.fail(budgets, "%v, group %d applies up to %d: %d bytes of that are not in its log, the bound is %d", m.n, m.g.id, index, bytes, most)
	}
}
