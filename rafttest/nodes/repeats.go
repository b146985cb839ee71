// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
)

// A change of members can stand in a log twice: a member proposes it, hears neither
// of the leader's verdict nor of the log, and asks again. All members leave out the
// second, also one whose state has passed both, with a snapshot that its core had no
// use for. To reach that takes several coincidences, which this fault arranges.
type repeats struct {
	every time.Duration // between two times at which a member is deaf
	// again has leaders append a change already applied, as leaders of earlier
	// versions did.
	again bool
	// uneven has every other node keep much of its log: a leader that needs a snapshot
	// to serve a member may be followed by a leader that needs none.
	uneven bool
}

func (p *plan) drawRepeats(d world.Draws) {
	r := &p.repeats
	if r.every = d.Every(0.5, 50*time.Millisecond, 250*time.Millisecond); r.every == 0 {
		return
	}
	r.again, r.uneven = d.Chance(0.8), d.Chance(0.8)
	if r.uneven {
		p.retainEntries, p.keepEvery = 4, 5
	}
}

// keepsMuch reports whether a node keeps much of its log.
func (r repeats) keepsMuch(node uint64) bool { return r.uneven && node%2 == 0 }

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

// unheard reports whether a message does not get through to a deaf node.
func (nw *network) unheard(m wire.Message) bool {
	_, verdict := m.Body.(wire.Verdict)
	return m.To <= maxNodes && nw.w.Now() < nw.deaf[m.To] && (verdict || m.Class() == wire.ClassAppend)
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

// passes counts repeated changes in a step of the state machine that its state has
// passed already.
func (m *member) passes(a *replica.Apply) {
	if a.Batch.Index > m.applied {
		return
	}
	w := m.n.w
	w.reach.StatesAhead++
	for context, first := range m.g.repeated {
		for _, at := range m.changesInLog(a.First, a.Batch.Index, []byte(context)) {
			if at > first {
				w.reach.RepeatsPassed++
			}
		}
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
