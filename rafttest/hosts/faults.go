// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weftraft/weft/internal/world"
)

// repeat lets something happen once in mean on average, until the calm.
func (w *sim) repeat(mean time.Duration, f func()) {
	if mean == 0 {
		return
	}
	wait := w.faults.Wait(mean)
	if w.Now() > runTime {
		wait *= 4 // the group is on the move, and must get somewhere
	}
	w.After(wait, func() {
		if !w.calm && w.err == nil {
			f()
			w.repeat(mean, f)
		}
	})
}

// someone returns a machine on which a process runs, or nil.
func (w *sim) someone() *machine {
	m := world.Pick(w.faults, w.live()...)
	if m.proc == nil {
		return nil
	}
	return m
}

func (w *sim) beginFaults() {
	p := w.plan
	w.repeat(p.crashEvery, func() { w.down(w.someone(), (*machine).crash, &w.reach.Crashes) })
	w.repeat(p.killEvery, func() { w.down(w.someone(), (*machine).stop, &w.reach.Kills) })
	w.repeat(p.pauseEvery, func() {
		if m := w.someone(); m != nil && !m.paused {
			w.reach.Pauses++
			d := w.faults.Span(50*time.Millisecond, 2500*time.Millisecond)
			w.say(m.id, "pauses for %v", d)
			m.pause(d)
		}
	})
	w.repeat(p.cutEvery, w.cut)
	w.repeat(p.breakEvery, func() {
		n := len(w.machines)
		from, to := uint64(w.faults.Between(1, n)), uint64(w.faults.Between(1, n))
		w.reach.StreamBreaks++
		w.breakStream(from, to)
	})
	w.repeat(p.transferEvery, w.transfer)
	w.beginSlowFaults()
}

// beginSlowFaults plans the faults that report no error.
func (w *sim) beginSlowFaults() {
	p := &w.plan
	for _, f := range []struct {
		mean   time.Duration
		what   string
		happen func(m *machine, lasting time.Duration)
	}{
		{p.hangEvery, "has a disk that hangs", func(m *machine, d time.Duration) { w.reach.HungDisks++; m.spindle.Hang(d) }},
		{p.slowDiskEvery, "has a slow disk", func(m *machine, d time.Duration) { w.reach.SlowDisks++; m.spindle.Slow(10, d) }},
		{p.slowMachineEvery, "is slow", func(m *machine, d time.Duration) {
			w.reach.SlowMachines++
			w.Stutter(d, func(still time.Duration) {
				if m.proc != nil && !m.paused && !w.calm {
					m.pause(still)
				}
			})
		}},
		{p.slowLinkEvery, "has slow links", func(m *machine, d time.Duration) { w.links.Slow(m.id, d) }},
		{p.holdEvery, "has held connections", func(m *machine, d time.Duration) {
			w.links.Link(m.id, uint64(w.faults.Between(1, len(w.machines)))).Hold(w.faults.IntN(streamLane+1), d)
		}},
	} {
		w.repeat(f.mean, func() {
			if m := w.someone(); m != nil {
				d := w.faults.Span(20*time.Millisecond, 1500*time.Millisecond)
				w.say(m.id, "%s for %v", f.what, d)
				f.happen(m, d)
			}
		})
	}
}

// down takes a process down for a while.
func (w *sim) down(m *machine, how func(*machine), count *uint64) {
	if m == nil || m.proc == nil {
		return
	}
	*count++
	how(m)
	w.After(w.faults.Span(20*time.Millisecond, 1500*time.Millisecond), func() {
		if m.proc == nil && !m.gone && !w.calm {
			m.start()
		}
	})
}

// cut blocks links for a while: all of a machine, in one direction or both.
func (w *sim) cut() {
	m := w.someone()
	if m == nil {
		return
	}
	w.reach.Cuts++
	out, in := true, true
	switch w.faults.IntN(4) {
	case 0:
		in = false
	case 1:
		out = false
	}
	w.say(m.id, "is cut off, out %v in %v", out, in)
	mends := w.links.Isolate(m.id, in, out)
	w.After(w.faults.Span(50*time.Millisecond, 1500*time.Millisecond), func() {
		for _, mend := range mends {
			mend()
		}
	})
}

// transfer hands leadership to a member with all committed entries.
func (w *sim) transfer() {
	p := w.leader()
	if p == nil {
		return
	}
	r := p.common()
	commit := r.core.State().Commit
	var to []uint64
	r.visit(func(id uint64, learner bool, pr tracker.Progress) {
		if !learner && pr.Match >= commit {
			to = append(to, id)
		}
	})
	if len(to) > 0 {
		w.reach.Transfers++
		r.m.run(func() { r.core.TransferLeader(world.Pick(w.faults, to...)); p.work() })
	}
}

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

// changesAreKnown reports whether all members know durably that the last change
// is committed, and have applied it. With less, two changes could be unapplied
// at once after a torn write.
func (w *sim) changesAreKnown(leader *replica) bool {
	in, at := members(leader.state.conf), leader.state.confAt
	for _, m := range w.live() {
		if in[m.id] && (m.proc == nil || m.proc.common().state.at.index < at || m.disk.durable.hard.commit < at) {
			return false
		}
	}
	return true
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
