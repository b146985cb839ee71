// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build invariants

package raft

import (
	"fmt"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
)

// checkInvariants panics if an invariant documented on a field is broken. Simulations
// are built with the tag "invariants".
func (r *raft) checkInvariants() {
	if r.log.err != nil {
		return // answers of a failed storage are made up
	}
	l, t := r.log, &r.log.tail
	last := l.last().Index
	holds := func(ok bool, what string, operands ...any) {
		if !ok {
			r.cfg.Logger.Panicf("raft: node %x at term %d: invariant broken: %s (applied %d, applying %d, committed %d, base %v, last %d, handed %d)",
				r.id, r.term, fmt.Sprintf(what, operands...), l.applied, l.applying, l.committed, t.base, last, t.handed)
		}
	}
	holds(l.applied <= l.applying && l.applying <= l.committed, "applied <= applying <= committed")
	holds(l.committed <= last, "committed <= last")
	holds(0 <= t.handed && t.handed <= len(t.entries), "0 <= handed <= len(entries)")
	holds(t.snapshot == nil || snapshotID(t.snapshot).Index <= t.base.Index, "snapshot <= base")
	if e := r.early; e != nil && e.bytes > 0 {
		holds(t.base.Index < e.index && e.index <= l.committed && e.bytes <= e.limit && e.bytes == encodingSize(t.slice(t.base.Index+1, e.index+1)), "entries that may be applied early are counted")
	}
	holds(!r.cfg.AsyncStorageWrites || l.applying <= max(t.base.Index, l.applicable()), "applying <= written, or early within the bound")
	prev := t.base
	for _, e := range t.entries {
		id := idOf(e)
		holds(id.Index == prev.Index+1 && id.Term >= prev.Term && id.Term <= r.term, "entries are consecutive, terms do not fall")
		prev = id
	}
	ld := r.leading()
	holds(ld == nil || r.lead == r.id && r.vote == r.id, "a leader follows itself and has voted for itself")
	holds(ld == nil || l.last().Term == r.term, "a leader's log ends in its term")
	_, campaigning := r.role.(*candidate)
	holds(!campaigning || r.lead == None, "a candidate has no leader")
	if c := r.coding(); c != nil {
		err := c.Broken()
		holds(err == nil, "coding: %v", err)
	}
	if x := r.leases(); x != nil {
		err := x.Broken()
		holds(err == nil, "%v", err)
		r.checkLease(holds)
	}
	if ld != nil {
		for _, id := range r.members.Everyone() {
			holds(r.members.Progress(id) != nil, "a leader follows %x, who counts", id)
		}
	}
	at := r.members.LearnedAt()
	holds(at == 0 || r.members.FirstPending() <= at && at <= l.committed, "members are learned for changes to apply, up to an entry that is committed")
	for _, m := range r.vouching {
		holds(vouches(m) || m.GetType() == MsgUnits || m.GetType() == MsgLeases, "only votes, acknowledgements, units and notes wait for durability")
	}
	for _, m := range r.outbox {
		holds(m.GetTo() != r.id && !vouches(m), "messages to this node, votes and acknowledgements wait for durability")
	}
}

// checkLease recounts who has granted a lease that is in use: a majority of each set that counts.
func (r *raft) checkLease(holds func(ok bool, what string, operands ...any)) {
	s, _, _ := r.leases().Status()
	if !s.Stable {
		return
	}
	bound := map[uint64]bool{r.id: s.Adopted > 0}
	for _, l := range s.Leases {
		bound[uint64(l.Peer)] = true
	}
	for _, v := range r.members.Sets() {
		holds(v.VoteResult(bound) == quorum.VoteWon, "a majority of %s has granted the lease in use", v)
	}
}

// vouches reports whether a message vouches for durable state.
func vouches(m *pb.Message) bool {
	t := m.GetType()
	return t == pb.MsgAppResp || t == pb.MsgVoteResp || t == pb.MsgPreVoteResp
}
