// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
)

// beginOperator lets an operator replace members one after the other: a new
// member learns, votes, and an old member goes.
func (w *sim) beginOperator() {
	w.repeat(w.plan.churnEvery, func() {
		if p := w.leader(); p != nil && w.changesAreKnown(p.common()) {
			w.changeMembers(p.common())
		}
	})
	var reap func()
	reap = func() {
		if p := w.leader(); p != nil && p.common().state.at.index >= w.confAt { // a new leader may know less
			s := &p.common().state
			w.confAt = max(w.confAt, s.confAt)
			w.reap(s)
		}
		if w.err == nil {
			w.After(100*time.Millisecond, reap)
		}
	}
	w.After(100*time.Millisecond, reap)
}

// changesAreKnown reports whether all members know durably that the last change
// is committed, and have applied it. With less, two changes could be unapplied
// at once after a torn write.
func (w *sim) changesAreKnown(leader *replica) bool {
	in, at := members(leader.state.conf), leader.state.confAt
	return !slices.ContainsFunc(w.live(), func(m *machine) bool {
		return in[m.id] && (m.proc == nil || m.proc.common().state.at.index < at || m.disk.durable.hard.commit < at)
	})
}

// changeMembers takes the next step of a replacement.
func (w *sim) changeMembers(leader *replica) {
	conf := leader.state.conf
	change := func(typ pb.ConfChangeType, id uint64) *pb.ConfChangeSingle {
		return &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: &id}
	}
	switch {
	case len(conf.GetVotersOutgoing()) > 0:
		if !conf.GetAutoLeave() {
			w.propose(leader, &pb.ConfChangeV2{})
		}
	case len(conf.GetLearners()) > 0:
		id := conf.GetLearners()[0]
		if !w.caughtUp(leader, id) {
			return
		}
		w.reach.Promotions++
		if w.opts.Kind == etcdLike {
			w.propose(leader, &pb.ConfChange{Type: pb.ConfChangeAddNode.Enum(), NodeId: &id})
			return
		}
		w.reach.Joints++
		w.propose(leader, &pb.ConfChangeV2{
			Transition: world.Pick(w.faults, pb.ConfChangeTransitionJointImplicit, pb.ConfChangeTransitionJointExplicit).Enum(),
			Changes: []*pb.ConfChangeSingle{
				change(pb.ConfChangeAddNode, id), change(pb.ConfChangeRemoveNode, w.victim(leader))},
		})
	case len(conf.GetVoters()) > w.plan.founders:
		id := w.victim(leader)
		w.propose(leader, &pb.ConfChange{Type: pb.ConfChangeRemoveNode.Enum(), NodeId: &id})
	default:
		if m := w.newcomer(conf); m != nil {
			w.propose(leader, &pb.ConfChange{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: &m.id})
		}
	}
}

// propose proposes a change of the members, marshalled by the host. Where the core does not
// forward proposals, a host that does not lead does.
func (w *sim) propose(r *replica, cc pb.ConfChangeI) {
	typ, data, err := pb.MarshalConfChange(cc)
	if err != nil {
		w.fail("change does not marshal: %w", err)
		return
	}
	// A field unknown to all: marshalling again does not keep its place.
	data = append(protowire.AppendVarint(protowire.AppendTag(nil, oddField, protowire.VarintType), uint64(len(w.check.changes))), data...)
	w.check.changes = append(w.check.changes, string(data))
	r.m.run(func() {
		to := r.m.id
		if lead := r.core.State().Lead; w.opts.Kind == cockroachLike && lead != 0 {
			to = lead
		}
		m := &pb.Message{Type: pb.MsgProp.Enum(), From: &r.m.id, To: &to,
			Entries: []*pb.Entry{{Type: typ.Enum(), Data: data}}}
		if to != r.m.id {
			w.send(r.m.id, to, frame{laneMessage, marshal(m)}, nil, nil)
			return
		}
		r.countProposal(m)
		if err := r.core.Step(m); err != nil {
			w.say(r.m.id, "does not change the members: %v", err)
		}
		r.m.proc.work()
	})
}

// oddField is no field of a change.
const oddField = 100

// victim returns a voter beside the leader.
func (w *sim) victim(leader *replica) uint64 {
	var ids []uint64
	for _, id := range leader.state.conf.GetVoters() {
		if id != leader.m.id {
			ids = append(ids, id)
		}
	}
	return world.Pick(w.faults, ids...)
}

// caughtUp reports whether a learner may vote: the learner has all committed
// entries.
func (w *sim) caughtUp(leader *replica, id uint64) (ok bool) {
	commit := leader.core.State().Commit
	leader.visit(func(member uint64, _ bool, pr tracker.Progress) {
		if member == id {
			ok = pr.Match >= commit
		}
	})
	return ok
}

// newcomer returns a machine outside the group, with an empty disk: its process
// begins at the leader's first message.
func (w *sim) newcomer(conf *pb.ConfState) *machine {
	in := members(conf)
	for _, m := range w.live() {
		if m.lazy && m.proc == nil && !in[m.id] {
			return m
		}
	}
	if len(w.machines) >= maxMachines {
		return nil
	}
	m := w.addMachine(newDisk(nil))
	m.lazy = true
	return m
}

// reap shuts down who is no member any more.
func (w *sim) reap(s *state) {
	in := members(s.conf)
	for _, m := range w.live() {
		if in[m.id] {
			m.member = true
		} else if m.member || s.removed>>m.id&1 == 1 {
			w.reach.Removals++
			w.say(m.id, "is removed")
			m.gone = true
			m.stop()
		}
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

// beginLeases has an operator choose responders now and then, and retire leases for a while.
func (w *sim) beginLeases() {
	if !w.opts.Library.Leased {
		return
	}
	w.repeat(probeEvery, w.probe)
	w.repeat(w.plan.rosterEvery, func() {
		p := w.leader()
		if p == nil {
			return
		}
		r, c := p.common(), p.common().core.(leasedCore)
		r.m.run(func() {
			switch {
			case w.faults.Chance(0.2) && c.RetireLeases(true) == nil:
				w.leases.Retired++
				w.After(w.faults.Within(0, 2*leaseTime), w.leasesOn)
			case c.SetResponders(w.someResponders()) == nil:
				w.leases.Renamed++
			}
			p.work()
		})
	})
}

// leasesOn has the operator switch leases on again, at the node that leads by now. A node that
// leads without the news goes by the wish to retire leases, so the operator asks again when
// all is calm: a host that drops the contexts of heartbeats reads by leases or not at all.
func (w *sim) leasesOn() {
	p := w.leader()
	if p == nil || !w.opts.Library.Leased {
		return
	}
	r := p.common()
	r.m.run(func() {
		if err := r.core.(leasedCore).RetireLeases(false); err != nil {
			die("leases are not switched on: %w", err)
		}
		p.work()
	})
}

// probeEvery is the mean time between two reads that nobody waits for.
const probeEvery = 8 * time.Millisecond

// probe reads somewhere, to look at the index alone. Clients wait for their answers, so they
// would not read again and again at a member that is cut off.
func (w *sim) probe() {
	if m := w.someone(); m != nil {
		m.run(func() {
			m.proc.common().ask(command{key: byte(w.faults.IntN(keys))}, func(uint32) {})
			m.proc.work()
		})
	}
}

// someResponders draws the nodes to answer reads: all voters, or some members,
// possibly learners or gone.
func (w *sim) someResponders() []leases.Want {
	if w.faults.Chance(0.5) {
		return []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}
	}
	some := func() (ids []leases.NodeID) {
		for _, m := range w.live() {
			if w.faults.Chance(0.6) {
				ids = append(ids, leases.NodeID(m.id))
			}
		}
		return ids
	}
	if w.opts.Kind == etcdLike {
		return []leases.Want{{Nodes: some()}}
	}
	middle := keySpan(byte(w.faults.IntN(keys))).Start
	return []leases.Want{{Span: leases.Span{End: middle}, Nodes: some()}, {Span: leases.Span{Start: middle}, Nodes: some()}}
}
