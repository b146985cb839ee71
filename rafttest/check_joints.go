// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// grant is the longest promise that a node has sent another, as seen from outside.
type grant struct {
	term  uint64
	until time.Duration // by the grantor's clock
}

// noteGrant records a grant that leaves.
func (s *sim) noteGrant(m *pb.Message, q *leases.Message) {
	if q.Answer.For == 0 || m.GetTo() > maxNodes {
		return
	}
	g := &s.leased.grants[m.GetFrom()][m.GetTo()]
	until := leaseClock{s.node(m.GetFrom())}.Now() + q.Answer.For
	if g.term == uint64(q.Term) {
		until = max(until, g.until)
	}
	*g = grant{term: uint64(q.Term), until: until}
}

// granted reports whether some node has a grant that has not expired.
func (s *sim) granted() bool {
	if s.plan.leased == nil {
		return false
	}
	for from := range s.leased.grants {
		for _, g := range s.leased.grants[from] {
			if g.until > 0 && g.until > (leaseClock{s.nodes[from-1]}).Now() {
				return true
			}
		}
	}
	return false
}

// servedByLease checks a read that a node answers by its own lease: a majority of each
// set of voters that counts at the node has promised the node its term. What the node has
// got of the promises cannot be seen from outside; so the check takes all that were sent.
func (c *checker) servedByLease(n *node, p *coreProcess, asked lookup) {
	term := p.rn.BasicStatus().GetTerm()
	if c.s.opts.Beyond > 0 {
		return // a lease of too few is what leads to the stale read that such a run is to show
	}
	if asked.switches != p.switches || asked.term != term {
		return // the lease was counted before; the read waited for a commit
	}
	c.s.joints.LeaseReads++
	conf := confOf(p.rn.Status().Config, nil)
	for _, voters := range c.s.countingSets(n, conf) {
		bound, most := holdings.Majority(voters, func(id uint64) bool {
			g := c.s.leased.grants[id][n.id]
			return id == n.id || g.term == term && (g.until > c.s.leaseTime(id, asked.at) || asked.at < c.s.leased.clocks[id].holds)
		})
		if !most {
			c.s.fail(leaseMajority, "node %d answers a read by its lease of term %d; %d of the voters %v are bound to it", n.id, term, bound, voters)
		}
	}
}

// ownEntries checks the entries that a node is about to write: they stand one behind the
// other, and a leader's are behind its last.
func (c *checker) ownEntries(n *node, ents []*pb.Entry) {
	f, now := &c.nodes[n.id], reign{n.id, n.incarnation}
	for i, e := range ents {
		index, term := e.GetIndex(), e.GetTerm()
		if i > 0 && (index != ents[i-1].GetIndex()+1 || term < ents[i-1].GetTerm()) {
			c.s.fail(onePlace, "node %d is to write entry %d of term %d behind entry %d of term %d", n.id, index, term, ents[i-1].GetIndex(), ents[i-1].GetTerm())
			return
		}
		if c.leaders[term] != now || term < f.hard.term { // a later leader may send back what was cut
			continue
		}
		if f.own.term == term && index != f.own.index+1 {
			c.s.fail(onePlace, "node %d, leader of term %d, appends entry %d; its last was %d", n.id, term, index, f.own.index)
			return
		}
		f.own = entryName{index, term}
	}
}

// countingSets returns the sets of voters whose majorities a node needs by what stands
// in its log and is not in force: those in force and, if the node codes and more than one
// change waits, those after each change. In place of the members in force stand those that a
// node has learned from others, if it has.
func (s *sim) countingSets(n *node, conf *pb.ConfState) [][]uint64 {
	p := n.proc
	if p == nil || s.plan.coded == nil || n.uncoded {
		return holdings.Sets(conf)
	}
	from := p.inForce
	if at := p.rn.CodingStatus().MembersAt; at > 0 {
		from, conf = at, s.check.confAt(at)
		s.joints.Learned++
	}
	return holdings.Counting(conf, n.disk.live.entries, from)
}

// wideCommit tells of a commit by the majorities of more sets than are in force.
func (s *sim) wideCommit(n *node, wide bool) {
	if wide {
		s.joints.WideCommits++
		s.faults.meets(n, momentTwoSets)
	}
}
