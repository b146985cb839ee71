// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// This file is changes of the members that several clients propose at the same moment, at
// the leader and at followers. None knows of the others, so a change may fit no more when
// it is applied. Hosts then refuse, equally at each member: the etcd-like host by
// ApplyConfChange with a change of node 0, the other one in silence.

func viewOf(conf *pb.ConfState) []byte {
	var lists [][]uint64
	for _, ids := range [][]uint64{conf.GetVoters(), conf.GetVotersOutgoing(), conf.GetLearners(), conf.GetLearnersNext()} {
		lists = append(lists, slices.Sorted(slices.Values(ids)))
	}
	return fmt.Append(nil, lists)
}

// fits reports whether a committed change fits the members in force. Each member answers alike.
func (r *replica) fits(cc *pb.ConfChangeV2) bool {
	if r.w.opts.Kind == cockroachLike {
		return len(cc.GetContext()) == 0 || string(cc.GetContext()) == string(viewOf(r.state.conf))
	}
	votes := func(id uint64) bool { return slices.Contains(r.state.conf.GetVoters(), id) }
	for _, c := range cc.GetChanges() {
		id, removed := c.GetNodeId(), r.state.removed>>c.GetNodeId()&1 == 1
		switch c.GetType() {
		case pb.ConfChangeAddNode:
			if removed || votes(id) {
				return false
			}
		case pb.ConfChangeAddLearnerNode:
			if removed || members(r.state.conf)[id] {
				return false
			}
		case pb.ConfChangeRemoveNode:
			if !votes(id) || len(r.state.conf.GetVoters()) <= r.w.plan.founders {
				return false
			}
		}
	}
	return true
}

// refuse does not put a change into force.
func (r *replica) refuse(e *pb.Entry) {
	r.w.reach.ChangesRefused++
	r.w.say(r.m.id, "refuses the change at %d", e.GetIndex())
	if r.w.opts.Kind == etcdLike {
		none := uint64(0)
		r.core.ApplyConfChange(&pb.ConfChange{Type: pb.ConfChangeRemoveNode.Enum(), NodeId: &none})
	}
}

// forget notes the nodes that are members before a change and not behind the change.
func (s *state) forget(before map[uint64]bool) {
	now := members(s.conf)
	for id := range before {
		if !now[id] {
			s.removed |= 1 << id
		}
	}
}

// countProposal counts changes that arrive at a leader before the leader has applied another change.
func (r *replica) countProposal(m *pb.Message) {
	isChange := func(e *pb.Entry) bool { return e.GetType() != pb.EntryNormal }
	if m.GetType() != pb.MsgProp || r.core.State().Role != raft.StateLeader || !slices.ContainsFunc(m.GetEntries(), isChange) {
		return
	}
	pending := func(e *pb.Entry) bool { return e.GetIndex() > r.state.at.index && isChange(e) }
	if r.proposedAt == r.w.Now() || slices.ContainsFunc(r.m.disk.live.entries, pending) {
		r.w.reach.ChangesPending++
	}
	r.proposedAt = r.w.Now()
}

// members lists the members of a configuration.
func members(conf *pb.ConfState) map[uint64]bool {
	ids := map[uint64]bool{}
	for _, list := range [][]uint64{conf.GetVoters(), conf.GetLearners(), conf.GetVotersOutgoing(), conf.GetLearnersNext()} {
		for _, id := range list {
			ids[id] = true
		}
	}
	return ids
}
