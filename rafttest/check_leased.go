// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// leaseVouched checks a message of leases that a node sends: a grant and the word that a
// roster is adopted vouch for the term, a note vouches for the log.
func (c *checker) leaseVouched(n *node, m *pb.Message) {
	d, text := &n.disk.durable, m.GetContext()
	term, index := uint64(0), uint64(0)
	switch text[0] {
	case 'l':
		if q, err := leases.ParseMessage(text[1:]); err == nil && (q.Answer.For > 0 || q.Report.Adopted > 0) {
			term = uint64(q.Term)
		}
	case 'n':
		if x, err := leases.ParseNote(text[1:]); err == nil {
			term, index = uint64(x.Term), uint64(x.Index)
		}
	}
	switch {
	case c.s.opts.Outside:
	case d.state.term < term:
		c.s.fail(durableFirst, "node %d sends%s; on disk it is at term %d", n.id, appendMessage(nil, m), d.state.term)
	case d.state.term == term && d.last() < index:
		c.s.fail(durableFirst, "node %d sends%s; on disk its log ends at %d", n.id, appendMessage(nil, m), d.last())
	}
}

// noteCommits checks that an entry which some node is the first to commit, and which no
// leader has committed, is on the disks of a majority, as if a leader had.
func (c *checker) noteCommits(n *node, conf *pb.ConfState, st sight) {
	first := st.commit > c.mostCommitted
	c.mostCommitted = max(c.mostCommitted, st.commit)
	term, known := c.nodes[n.id].termOf(st.commit)
	if first && c.s.plan.leased != nil && st.role != raft.StateLeader && known && term == st.term && !c.s.opts.Outside {
		c.s.leased.FirstByNotes++
		c.majorityHolds(n, holdings.Sets(conf), entryName{st.commit, term})
	}
}
