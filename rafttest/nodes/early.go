// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// Entries that a state machine applies before the log of its node has them are judged from outside: the
// simulator knows, by itself, which entries a replica has handed to the log and which of them are on
// the disk (the rules E1 to E6 are in raft/early.go).

// unstored is the part of a member's log that is not known to be on the disk, in order.
type unstored []unstoredEntry

type unstoredEntry struct{ index, size, write uint64 }

// hand notes a write. Its entries replace what was there, and its snapshot replaces all.
func (u *unstored) hand(write uint64, w storage.Write) {
	if w.Snapshot != nil {
		*u = unstored{{index: w.Snapshot.GetMetadata().GetIndex(), write: write}}
	}
	if len(w.Entries) > 0 {
		u.cut(w.Entries[0].GetIndex())
	}
	for _, e := range w.Entries {
		*u = append(*u, unstoredEntry{e.GetIndex(), uint64(proto.Size(e)), write})
	}
}

// cut forgets the entries from an index on.
func (u *unstored) cut(from uint64) {
	list := *u
	for len(list) > 0 && list[len(list)-1].index >= from {
		list = list[:len(list)-1]
	}
	*u = list
}

// store notes that the writes up to a number are on the disk.
func (u *unstored) store(write uint64) {
	list := *u
	for len(list) > 0 && list[0].write <= write {
		list = list[1:]
	}
	*u = list
}

// upTo returns the number of entries up to an index, and their bytes.
func (u unstored) upTo(index uint64) (entries, bytes uint64) {
	for _, e := range u {
		if e.index > index {
			break
		}
		entries, bytes = entries+1, bytes+e.size
	}
	return entries, bytes
}

// mostEarly is the bound on early entries at a member.
func (m *member) mostEarly() uint64 {
	if m.n.plain() {
		return 0
	}
	return m.n.w.plan.mostEarly()
}

func (p *plan) mostEarly() uint64 {
	if p.earlyBytes == 0 {
		return replica.DefaultEarlyBytes
	}
	return uint64(max(p.earlyBytes, 0))
}

// appliesEarly checks what a state machine is about to apply (rule E2).
func (m *member) appliesEarly(index uint64) {
	entries, bytes := m.unstored.upTo(index)
	if entries > 0 {
		m.n.w.reach.EarlyApplies++
		m.n.w.loseEarly(m.n)
	}
	if most := m.mostEarly(); bytes > most {
		m.n.w.fail(budgets, "%v, group %d applies up to %d: %d bytes of that are not in its log, the bound is %d", m.n, m.g.id, index, bytes, most)
	}
}

// drops checks what a log is about to drop, and the state that takes its place (rule E4).
func (m *member) drops(c *replica.Compact) {
	index := c.Snapshot.GetIndex()
	if n, _ := m.unstored.upTo(index); n > 0 {
		m.n.w.fail(nothingLost, "%v, group %d: the log is to begin at index %d, and has not stored %d entries before", m.n, m.g.id, index, n)
	}
}

// looksBack compares the log found by a start with what the last process had applied, and with the
// state that survived (rule E3).
func (m *member) looksBack(kept keptState) error {
	last, err := m.log.LastIndex()
	if err != nil {
		return err
	}
	r := &m.n.w.reach
	if m.n.had[m.g.id] > last {
		r.LogsBehind++
	}
	if kept.index > last {
		r.StatesAheadOfLogs++
	}
	return nil
}

// drawEarly draws how much may be applied early, in half of the runs nothing; and how likely power
// fails soon after.
func (p *plan) drawEarly(d world.Draws) {
	p.earlyBytes = world.Pick(d, -1, -1, -1, 200, 8<<10, 0)
	p.fallWhenEarly = world.Pick(d, 0, 0.01, 0.1)
}

// loseEarly lets power fail at a node that is about to apply what its log lacks: at once, or when the
// state has had the time to become durable.
func (w *sim) loseEarly(n *node) {
	if w.plan.fallWhenEarly == 0 || w.calming || !w.rng.Chance(w.plan.fallWhenEarly) {
		return
	}
	w.After(w.rng.Span(100*time.Microsecond, 20*time.Millisecond), func() {
		if !n.up || w.calming {
			return
		}
		w.reach.Crashes++
		n.crash(true)
		w.After(w.outage(), n.start)
	})
}

// plantEarly changes the settings of a core for a planted bug.
func (m *member) plantEarly(rc *raft.Config) {
	if m.n.w.opts.Bug == earlyUnbounded && rc.MaxEarlyApplySize > 0 {
		rc.MaxEarlyApplySize = 1 << 40
	}
}
