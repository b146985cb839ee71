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

// loseLeaderOf lets the leader of some group fall, now that a node's log has stalled,
// and the log have no room, for longer than the others stand by that leader.
func (w *sim) loseLeaderOf(full *node) {
	if w.plan.fallWhenFull == 0 || w.calming || !w.rng.Chance(w.plan.fallWhenFull) {
		return
	}
	if m := w.anyGroup().leading(); m != nil && m.n != full {
		outage := w.rng.Span(2*electionTime, 6*electionTime)
		w.reach.Crashes++
		w.After(0, func() { m.n.crash(true) })
		w.After(outage, m.n.start)
		full.disk.fillUp(outage)
	}
}

// loseEarly lets power fail at a node that is about to apply what its log lacks: at once, or when the
// state has had the time to become durable.
func (w *sim) loseEarly(n *node) {
	if w.plan.fallWhenEarly == 0 || w.calming || !w.rng.Chance(w.plan.fallWhenEarly) {
		return
	}
	w.After(w.rng.Span(100*time.Microsecond, 20*time.Millisecond), func() {
		if !n.up || w.calming {
			return
		}
		w.reach.Crashes++
		n.crash(true)
		w.After(w.outage(), n.start)
	})
}

// meets perhaps lets something happen at a moment: to the node, or to another.
func (m *member) meets(at moment) {
	w := m.n.w
	j := w.plan.joints
	if j == nil || w.calming {
		return
	}
	w.joints.Moments[at]++
	if !j.draws.Chance(j.ambush) {
		return
	}
	n := m.n
	if up := w.running(); j.draws.Chance(0.5) && len(up) > 0 {
		n = up[j.draws.IntN(len(up))]
	}
	act := j.draws.IntN(8)
	w.After(j.draws.Within(0, 2*w.plan.costs.Delay), func() {
		if w.calming || !n.up {
			return
		}
		w.joints.Ambushes++
		w.tell(n.id, "ambush %d at moment %d", act, at)
		w.strike(n, m.g, act)
	})
}

// strike is the act of an ambush.
func (w *sim) strike(n *node, g *group, act int) {
	switch act {
	case 0, 1:
		n.crash(act == 0)
		w.After(w.outage(), n.start)
	case 2:
		n.pause(w.outage())
	case 3:
		w.isolate(n, w.outage())
	case 4:
		n.disk.Slow(20, w.outage())
	case 5:
		w.transfer(g)
	case 6:
		w.changeMembers(g)
	case 7:
		w.wishRoster(g)
	}
}

// deafen has a member propose a change, and keeps all news of the change from its
// node for a time.
func (w *sim) deafen(g *group) {
	leader := g.leading()
	if leader == nil || len(leader.conf().GetVotersOutgoing()) > 0 {
		return
	}
	others := slices.DeleteFunc(g.membersOf(leader.conf()), func(m *member) bool { return m == leader })
	changes := w.drawChange(g, leader, leader.conf())
	if len(others) == 0 || len(changes) == 0 {
		return
	}
	m, cc := others[w.rng.IntN(len(others))], &pb.ConfChangeV2{Changes: changes}
	w.reach.Deafened++
	w.net.deaf[m.n.id] = w.Now() + w.rng.Span(2*electionTime, 8*electionTime)
	w.tell(m.n.id, "is deaf to appends and verdicts; group %d: change %s", g.id, describeChange(cc))
	m.n.bound(func() { m.changeWithin(10*electionTime, cc, func(*pb.ConfState, error) {}) })()
}

// offered is called when a member begins to take a snapshot. A deaf member takes its
// time, and its group gets another leader, with the log.
func (m *member) offered() {
	w := m.n.w
	leader := m.g.leading()
	if leader == nil || w.Now() > w.net.deaf[m.n.id] {
		return
	}
	m.n.disk.Slow(20, electionTime/2)
	for _, id := range leader.conf().GetVoters() {
		if w.plan.repeats.keepsMuch(id) && id != m.n.id && id != leader.n.id {
			w.After(0, leader.n.bound(func() { leader.transfer(id, func(error) {}) }))
			return
		}
	}
}

// appendAgain appends a change to the log of a leader that has applied the
// change.
func (m *member) appendAgain(msg wire.Message) {
	p, ok := msg.Body.(wire.Proposal)
	st := m.core.State()
	if !ok || !p.ConfChange || !m.n.w.plan.repeats.again || p.Term != st.Term {
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
		m.n.w.reach.AppendedAgain++
		m.n.w.tell(m.n.id, "group %d: change %s is appended again", m.g.id, describeChange(cc))
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
