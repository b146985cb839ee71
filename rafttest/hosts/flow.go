// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// charge is the bytes of an entry.
type charge struct {
	index uint64
	bytes int
}

// quota is what a leader has proposed and not all members in touch have.
type quota struct {
	taken   int
	charges []charge
}

// allows reports whether a command fits. One always does.
func (q *quota) allows(bytes, most int) bool { return q.taken == 0 || q.taken+bytes <= most }

// release returns the charges up to an index.
func (q *quota) release(index uint64) {
	n := 0
	for n < len(q.charges) && q.charges[n].index <= index {
		q.taken -= q.charges[n].bytes
		n++
	}
	q.charges = q.charges[n:]
}

// countQuota charges the entries appended by a leader.
func (h *cockroach) countQuota(entries []*pb.Entry) {
	if h.core.State().Role != raft.StateLeader {
		return
	}
	for _, e := range entries {
		h.quota.taken += len(e.GetData())
		h.quota.charges = append(h.quota.charges, charge{e.GetIndex(), len(e.GetData())})
	}
}

// tokens is the bytes sent by a leader to a member, and not yet admitted by the
// member to its store, of one term.
type tokens struct {
	term uint64
	// sent is the last entry that was charged: a retransmission is free.
	sent    uint64
	charges []charge
	// bytes is the sum of the charges.
	bytes int
}

// takeTokens charges an append by the bytes that travel.
func (h *cockroach) takeTokens(m *pb.Message) {
	t := h.tokens[m.GetTo()]
	if t == nil || t.term != m.GetTerm() {
		t = &tokens{term: m.GetTerm()}
		h.tokens[m.GetTo()] = t
	}
	for _, e := range m.GetEntries() {
		if e.GetIndex() <= t.sent {
			continue
		}
		t.sent = e.GetIndex()
		if h.look(e).encoding == admitted {
			h.w.reach.TokensTaken++
			t.bytes += len(e.GetData())
			t.charges = append(t.charges, charge{e.GetIndex(), len(e.GetData())})
		}
	}
}

// report tells the leader of the entries admitted here: all durable entries.
func (h *cockroach) report() {
	s := h.core.State()
	if s.Lead == 0 || s.Lead == h.m.id {
		return
	}
	h.w.send(h.m.id, s.Lead, frame{laneAdmitted, append(word(s.Term), word(h.m.disk.durable.last())...)}, nil, nil)
}

// giveTokens takes a member's report.
func (h *cockroach) giveTokens(from, term, index uint64) {
	t := h.tokens[from]
	if t == nil || t.term != term {
		return
	}
	for len(t.charges) > 0 && t.charges[0].index <= index {
		t.charges = t.charges[1:]
		h.w.reach.TokensGiven++
	}
}

// allReturned reports whether nothing is taken, of the quota or of the tokens.
func (h *cockroach) allReturned() bool {
	if h.core.State().Role != raft.StateLeader {
		return true
	}
	taken := h.quota.taken
	h.visit(func(id uint64, _ bool, _ tracker.Progress) {
		if t := h.tokens[id]; t != nil {
			taken += len(t.charges)
		}
	})
	return taken == 0
}
