// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"math"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/raft"
)

// This file checks the invariants of coded entries only; see truth and view.

// looked reads an entry that a node appends: the copy must be the header's
// assignment to the node, and the header must agree with other copies.
func (c *checker) looked(n *node, e *pb.Entry, before uint64) {
	if err := c.truth.Look(n.id, e, before); err != nil {
		c.s.fail(logMatching, "node %d: %v", n.id, err)
		return
	}
	if c.truth.Coded(entryName{e.GetIndex(), e.GetTerm()}.id()) {
		c.s.coded.CodedAppends++
		c.lastCoded = max(c.lastCoded, e.GetIndex())
	}
	if err := c.truth.Complete(n.id, e, c.releasedAnywhere()); err != nil {
		c.s.fail(assignedHeld, "%v", err)
	}
}

// releasedAnywhere returns the highest index that some node has released.
func (c *checker) releasedAnywhere() uint64 {
	most := uint64(0)
	for _, n := range c.s.nodes {
		if n.disk != nil {
			most = max(most, released(&n.disk.durable))
		}
	}
	return most
}

// durableView looks at all disks as they would be after a loss of power.
func (c *checker) durableView(upTo uint64) *view {
	v := newView(c.truth, upTo)
	for _, n := range c.s.nodes {
		if n.disk != nil {
			v.add(n.id, &n.disk.durable)
		}
	}
	return v
}

// covers checks what a leader has just committed: entry by entry, enough units
// are on the disks.
func (c *checker) covers(n *node, count [][]uint64, old, commit uint64) {
	if c.truth == nil {
		return
	}
	v, f := c.durableView(commit), &c.nodes[n.id]
	for i := max(old, f.base.index) + 1; i <= commit; i++ {
		term, ok := f.termOf(i)
		e := entryName{i, term}
		if !ok || c.truth.Fact(e.id()) == nil {
			continue
		}
		c.countCommit(v, count, e)
		if err := v.Covered(count, e.id()); err != nil {
			c.s.fail(coverage, "node %d, leader of term %d: %v", n.id, f.hard.term, err)
			return
		}
	}
}

// plainLeads checks a new leader without coding: the leader changes the members
// by majorities alone, so no member may need a coded entry any more.
func (c *checker) plainLeads(n *node) {
	if c.truth == nil || !n.uncoded {
		return
	}
	for _, m := range c.s.nodes {
		if m.disk == nil || !members.Has(c.newestConf().conf, m.id) {
			continue
		}
		for _, e := range m.disk.durable.entries {
			i := e.GetIndex()
			committed := i < uint64(len(c.committed)) && c.committed[i] == e.GetTerm()
			if committed && i > released(&m.disk.durable) && c.truth.Coded(entryName{i, e.GetTerm()}.id()) {
				c.s.fail(recoverability, "node %d leads without coding, and node %d may need entry %d, which is committed and coded", n.id, m.id, i)
				return
			}
		}
	}
	c.s.coded.PlainLeaders++
}

// countCommit counts an entry committed coded, and whether the commit took
// riders.
func (c *checker) countCommit(v *view, count [][]uint64, e entryName) {
	if !c.truth.Coded(e.id()) {
		return
	}
	c.s.coded.CodedCommits++
	if v.UpTo == e.index {
		return
	}
	bare := v.View
	bare.UpTo = e.index
	if bare.Covered(count, e.id()) != nil {
		c.s.coded.RidersDecided++
	}
}

// watchEvery is the time between looks at everything that is committed.
const watchEvery = 200 * time.Millisecond

// watch looks at everything now and then.
func (c *checker) watch() {
	c.recoverable()
	c.budgets()
	if !c.s.end.done {
		c.s.After(watchEvery, c.watch)
	}
}

// lookClosely looks at every committed entry after a change: in runs brief enough
// for the cost.
func (c *checker) lookClosely() {
	if c.s.plan.coded != nil && c.s.plan.coded.brief != nil {
		c.recoverable()
	}
}

// budgets checks that followers' memory stays within the budget, but for one entry:
// the oldest unapplied entry always has room. (Units for a leader to send on, and
// for a new leader to restore, are kept at any size.)
func (c *checker) budgets() {
	if c.truth == nil || c.s.plan.coded.memory == 0 {
		return
	}
	most := c.s.plan.coded.memory + 2*(commandSize+c.s.plan.padding) + bookkeeping
	for _, n := range c.s.nodes {
		f := &c.nodes[n.id]
		since := f.led
		f.led = f.role != raft.StateFollower
		if !n.up() || n.paused || since || f.led {
			continue
		}
		if bytes := n.proc.rn.CodingStatus().Memory; bytes > most {
			c.s.fail(budget, "node %d, a follower, keeps %d bytes of units and payloads; its budget is %d", n.id, bytes, c.s.plan.coded.memory)
		}
		c.s.coded.BudgetLooks++
	}
}

// bookkeeping bounds what an entry costs beside its payload.
const bookkeeping = 6000

// recoverable checks that any possible later leader can restore every committed
// entry from the disks of now.
func (c *checker) recoverable() {
	if c.truth == nil || c.s.opts.Outside || c.s.failure != nil {
		return
	}
	v, live := c.durableView(math.MaxUint64), [maxNodes + 1]confAt{}
	first := uint64(math.MaxUint64)
	for _, n := range c.s.nodes {
		if n.disk == nil {
			continue
		}
		first = min(first, released(&n.disk.durable))
		if n.up() {
			live[n.id] = confAt{n.proc.applied, n.proc.conf}
		}
	}
	c.s.coded.RecoveryLooks++
	if first+1 >= uint64(len(c.committed)) {
		return // all is released everywhere
	}
	cands := v.candidacies(live[:])
	for i := first + 1; i < uint64(len(c.committed)); i++ {
		if c.committed[i] == 0 {
			continue
		}
		if err := v.recoverable(cands, entryName{i, c.committed[i]}); err != nil {
			c.s.fail(recoverability, "%v", err)
			return
		}
	}
}

// tellCoding shows a listener each node's report of coding.
func (s *sim) tellCoding() {
	for _, n := range s.nodes {
		if p := n.proc; p != nil && s.plan.coded != nil && p.rn != nil {
			s.story.Aside(n.id, "log %d..%d commit %d applied %d, coding: %+v", n.disk.live.baseIndex+1, n.disk.live.last(),
				s.check.nodes[n.id].commit, p.applied, p.rn.CodingStatus())
			if st := p.rn.LeaseStatus(); st.On && st.Roster != nil {
				s.story.Aside(n.id, "leases: roster %+v, adopted %d, stable %v, held %v, promised %v", *st.Roster, st.Adopted, st.Stable, st.Leases, st.Promises)
			}
		}
	}
}
