// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// This file is changes of the members that several clients propose at the same moment, at
// the leader and at followers. None knows of the others, so a change may fit no more when
// it is applied. Hosts then refuse, equally at each member: the etcd-like host by
// ApplyConfChange with a change of node 0, the other one in silence.

// rush is what a seed draws of changes at once.
type rush struct {
	// every is the mean time between two moments; 0: changes come one after the other.
	every time.Duration
	// reportsFirst is set where an etcd-like leader reports a change before it applies the
	// change, as etcd's does.
	reportsFirst bool
	// whole is set where power tears no write. Without coding, no log whose commit index is
	// lost may have two changes.
	whole bool
	draws world.Draws
}

func drawRush(d world.Draws, opts options) (r rush) {
	if !opts.Rush {
		return rush{}
	}
	return rush{
		every: d.Span(100*time.Millisecond, 500*time.Millisecond), reportsFirst: d.Chance(0.5),
		whole: !opts.Library.Coded, draws: d,
	}
}

// beginRush has clients propose changes of the members at the same moments.
func (w *sim) beginRush() {
	w.repeat(w.rush.every, func() {
		p := w.leader()
		if p == nil || !w.changesAreKnown(p.common()) {
			return
		}
		for range w.rush.draws.Between(2, 3) {
			m := p.common().m
			if w.rush.draws.Chance(0.4) {
				m = world.Pick(w.rush.draws, w.live()...)
			}
			if m.proc == nil || m.paused {
				continue
			}
			if cc := w.someChange(m.proc.common(), p.common()); cc != nil {
				w.propose(m.proc.common(), cc)
			}
		}
	})
}

// someChange draws a change that fits the members as r knows them, or nil.
func (w *sim) someChange(r, leader *replica) pb.ConfChangeI {
	d, conf := w.rush.draws, r.state.conf
	single := func(typ pb.ConfChangeType, id uint64) *pb.ConfChange {
		return &pb.ConfChange{Type: typ.Enum(), NodeId: &id, Context: w.view(r)}
	}
	others := slices.DeleteFunc(slices.Clone(conf.GetVoters()), func(id uint64) bool { return id == leader.m.id })
	var choices []pb.ConfChangeI
	if len(conf.GetVoters()) > w.plan.founders {
		choices = append(choices, single(pb.ConfChangeRemoveNode, world.Pick(d, others...)))
	}
	if len(conf.GetLearners()) > 0 {
		id := world.Pick(d, conf.GetLearners()...)
		if w.caughtUp(leader, id) && len(conf.GetVoters()) <= w.plan.founders+1 {
			choices = append(choices, w.promotion(r, id, others))
		}
	}
	switch m := w.newcomer(conf); {
	case len(conf.GetVotersOutgoing()) > 0:
		if conf.GetAutoLeave() {
			return nil
		}
		return &pb.ConfChangeV2{Context: w.view(r)}
	case m != nil && len(conf.GetLearners()) < 2:
		choices = append(choices, single(pb.ConfChangeAddLearnerNode, m.id))
	}
	if len(choices) == 0 {
		return nil
	}
	return choices[d.IntN(len(choices))]
}

// promotion lets a learner vote, at a cockroach-like host often in another's place.
func (w *sim) promotion(r *replica, id uint64, others []uint64) pb.ConfChangeI {
	d := w.rush.draws
	w.reach.Promotions++
	if w.opts.Kind == etcdLike || d.Chance(0.3) {
		return &pb.ConfChange{Type: pb.ConfChangeAddNode.Enum(), NodeId: &id, Context: w.view(r)}
	}
	w.reach.Joints++
	victim := world.Pick(d, others...)
	return &pb.ConfChangeV2{
		Transition: world.Pick(d, pb.ConfChangeTransitionJointImplicit, pb.ConfChangeTransitionJointExplicit).Enum(),
		Changes: []*pb.ConfChangeSingle{
			{Type: pb.ConfChangeAddNode.Enum(), NodeId: &id},
			{Type: pb.ConfChangeRemoveNode.Enum(), NodeId: &victim},
		},
		Context: w.view(r),
	}
}

// view is the members for which a cockroach-like host made a change, as the change carries them.
func (w *sim) view(r *replica) []byte {
	if w.opts.Kind == etcdLike {
		return nil
	}
	return viewOf(r.state.conf)
}

func viewOf(conf *pb.ConfState) []byte {
	var lists [][]uint64
	for _, ids := range [][]uint64{conf.GetVoters(), conf.GetVotersOutgoing(), conf.GetLearners(), conf.GetLearnersNext()} {
		lists = append(lists, slices.Sorted(slices.Values(ids)))
	}
	return fmt.Append(nil, lists)
}

// fits reports whether a committed change fits the members in force. Each member answers alike.
func (r *replica) fits(cc pb.ConfChangeI) bool {
	v2 := cc.AsV2()
	if r.w.opts.Kind == cockroachLike {
		return len(v2.GetContext()) == 0 || string(v2.GetContext()) == string(viewOf(r.state.conf))
	}
	votes := func(id uint64) bool { return slices.Contains(r.state.conf.GetVoters(), id) }
	for _, c := range v2.GetChanges() {
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

// decodeChange returns the change of an entry.
func decodeChange(e *pb.Entry) pb.ConfChangeI {
	var err error
	v1, v2 := &pb.ConfChange{}, &pb.ConfChangeV2{}
	if e.GetType() == pb.EntryConfChange {
		if err = proto.Unmarshal(e.GetData(), v1); err == nil {
			return v1
		}
	} else if err = proto.Unmarshal(e.GetData(), v2); err == nil {
		return v2
	}
	die("change %d: %w", e.GetIndex(), err)
	return nil
}
