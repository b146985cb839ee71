// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// stalled lets the leader of some group fall, now that a node's log has stalled,
// and the log have no room, for longer than the others stand by that leader.
func (f faults) stalled(full *node) {
	if f.plan.fallWhenFull == 0 || f.calming || !f.rng.Chance(f.plan.fallWhenFull) {
		return
	}
	if m := f.anyGroup().leading(); m != nil && m.n != full {
		outage := f.rng.Span(2*electionTime, 6*electionTime)
		f.reach.Crashes++
		f.After(0, func() { m.n.crash(true) })
		f.After(outage, m.n.start)
		full.disk.fillUp(outage)
	}
}

// early lets power fail at a node that is about to apply what its log lacks: at once, or when the
// state has had the time to become durable.
func (f faults) early(n *node) {
	if f.plan.fallWhenEarly == 0 || f.calming || !f.rng.Chance(f.plan.fallWhenEarly) {
		return
	}
	f.After(f.rng.Span(100*time.Microsecond, 20*time.Millisecond), func() {
		if !n.up || f.calming {
			return
		}
		f.reach.Crashes++
		n.crash(true)
		f.After(f.outage(), n.start)
	})
}

// meets perhaps lets something happen at a moment: to the node, or to another.
func (f faults) meets(m *member, at moment) {
	j := f.plan.joints
	if j == nil || f.calming {
		return
	}
	f.joints.Moments[at]++
	if !j.draws.Chance(j.ambush) {
		return
	}
	n := m.n
	if up := f.running(); j.draws.Chance(0.5) && len(up) > 0 {
		n = up[j.draws.IntN(len(up))]
	}
	act := j.draws.IntN(8)
	f.After(j.draws.Within(0, 2*f.plan.costs.Delay), func() {
		if f.calming || !n.up {
			return
		}
		f.joints.Ambushes++
		f.tell(n.id, "ambush %d at moment %d", act, at)
		f.strike(n, m.g, act)
	})
}

// strike is the act of an ambush.
func (f faults) strike(n *node, g *group, act int) {
	switch act {
	case 0, 1:
		n.crash(act == 0)
		f.After(f.outage(), n.start)
	case 2:
		n.pause(f.outage())
	case 3:
		f.isolate(n, f.outage())
	case 4:
		n.disk.Slow(20, f.outage())
	case 5:
		f.transfer(g)
	case 6:
		f.changeMembers(g)
	case 7:
		f.wishRoster(g)
	}
}

// deafen has a member propose a change, and keeps all news of the change from its
// node for a time.
func (f faults) deafen(g *group) {
	leader := g.leading()
	if leader == nil || len(leader.conf().GetVotersOutgoing()) > 0 {
		return
	}
	others := slices.DeleteFunc(g.membersOf(leader.conf()), func(m *member) bool { return m == leader })
	changes := f.drawChange(g, leader, leader.conf())
	if len(others) == 0 || len(changes) == 0 {
		return
	}
	m, cc := others[f.rng.IntN(len(others))], &pb.ConfChangeV2{Changes: changes}
	f.reach.Deafened++
	f.net.deaf[m.n.id] = f.Now() + f.rng.Span(2*electionTime, 8*electionTime)
	f.tell(m.n.id, "is deaf to appends and verdicts; group %d: change %s", g.id, describeChange(cc))
	m.n.bound(func() { m.change(10*electionTime, cc, func(*pb.ConfState, error) {}) })()
}

// offered is called when a member begins to take a snapshot. A deaf member takes its
// time, and its group gets another leader, with the log.
func (f faults) offered(m *member) {
	leader := m.g.leading()
	if leader == nil || f.Now() > f.net.deaf[m.n.id] {
		return
	}
	m.n.disk.Slow(20, electionTime/2)
	for _, id := range leader.conf().GetVoters() {
		if f.plan.repeats.keepsMuch(id) && id != m.n.id && id != leader.n.id {
			f.After(0, leader.n.bound(func() { leader.transfer(id, func(error) {}) }))
			return
		}
	}
}

// delivered appends a change to the log of a leader that has applied the
// change.
func (f faults) delivered(m *member, msg wire.Message) {
	p, ok := msg.Body.(wire.Proposal)
	st := m.core.State()
	if !ok || !p.ConfChange || !f.plan.repeats.again || p.Term != st.Term {
		return
	}
	cc := &pb.ConfChangeV2{}
	if proto.Unmarshal(p.Data, cc) != nil {
		return
	}
	made := m.changesInLog(0, st.Applied, cc.GetContext())
	if len(made) == 0 {
		return
	}
	if m.core.ProposeConfChange(cc) == nil {
		m.g.repeated[string(cc.GetContext())] = made[0]
		f.reach.AppendedAgain++
		f.tell(m.n.id, "group %d: change %s is appended again", m.g.id, describeChange(cc))
		m.r.Unreachable(maxNodes + 1) // nobody; so that the replica looks at its core
	}
}

// changesInLog returns where, in a part of the log, a change stands.
func (m *member) changesInLog(from, to uint64, context []byte) (at []uint64) {
	first, err := m.log.FirstIndex()
	if err != nil {
		return nil
	}
	for from = max(from, first); from <= to; {
		ents, err := m.log.Entries(from, to+1, 1<<20)
		if err != nil || len(ents) == 0 {
			return at
		}
		for _, e := range ents {
			cc := &pb.ConfChangeV2{}
			if e.GetType() == pb.EntryConfChangeV2 && proto.Unmarshal(e.GetData(), cc) == nil && string(cc.GetContext()) == string(context) {
				at = append(at, e.GetIndex())
			}
		}
		from += uint64(len(ents))
	}
	return at
}
