// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// This file is joints: runs with coding and leases in which changes of the members, crashes,
// snapshots and transfers follow each other closely, at nodes that apply late and tick
// unevenly, some with upstream's library; and faults lie in wait for the moments in which
// one of these is under way. Package rafttest has the same for cores.

// jointPlan is a seed's draws about joints.
type jointPlan struct {
	// lag is the chance of a step of the state machine to wait, for up to lagMost.
	lag     float64
	lagMost time.Duration
	// gap is after how many tick times, at most, a node's tick comes.
	gap [maxNodes + 1]int
	// upstream is the nodes with upstream's library, by bit.
	upstream uint
	// ambush is the chance of a fault at a moment.
	ambush float64
	draws  world.Draws
}

// moment is a moment in which something is under way at a member.
type moment int

const (
	momentAppended moment = iota // a change of the members goes into the log
	momentRaised                 // coded entries are raised, or recovered
	momentLeased                 // a message about leases leaves
	momentSnapshot               // a snapshot leaves
	momentTransfer               // another is told to campaign
	momentElected
	moments
)

// drawJoints makes a plan one of joints, in a stream of its own.
func (p *plan) drawJoints(seed uint64) {
	d := world.NewDraws(seed, 7)
	p.joints = &jointPlan{lag: world.Pick(d, 0, 0.05, 0.3), lagMost: d.Span(10*time.Millisecond, 20*electionTime), ambush: d.Scale(0.01, 0.3), draws: world.NewDraws(seed, 8)}
	p.duration = p.duration * 2 / 3
	p.noPreVote, p.noCheckQuorum = false, false
	p.voters, p.groups = world.Pick(d, 3, 3, 4, 5), 1
	p.coding.on, p.coding.threshold, p.coding.level = true, 1, d.Between(2, 3)
	p.leasing = leasing{on: true, lease: world.Pick[time.Duration](d, 60, 100, 300) * time.Millisecond, fail: 50 * time.Millisecond, driftPPM: 1000,
		notes: d.Chance(0.5), spans: d.Chance(0.5), rosters: d.Span(30*time.Millisecond, 500*time.Millisecond), probes: d.Span(2*time.Millisecond, 30*time.Millisecond)}
	p.members, p.transfer = d.Span(20*time.Millisecond, 200*time.Millisecond), d.Every(0.6, 30*time.Millisecond, 300*time.Millisecond)
	p.retainEntries, p.retainBytes, p.keepEvery = 4, 16<<10, world.Pick[uint64](d, 1, 5, 200)
	p.fullDisk, p.largest = 0, 1<<10
	if d.Chance(0.4) {
		for id := range p.joints.gap {
			p.joints.gap[id] = world.Pick(d, 1, 1, 2, 4)
		}
	}
	if d.Chance(0.3) {
		p.joints.upstream = uint(d.IntN(1<<maxNodes)) & uint(d.IntN(1<<maxNodes)) << 1
	}
}

// tickIn returns when a node's next tick comes.
func (n *node) tickIn() time.Duration {
	if j := n.w.plan.joints; j != nil && j.gap[n.id] > 1 {
		return time.Duration(1+j.draws.IntN(j.gap[n.id])) * n.tickEvery
	}
	return n.tickEvery
}

// applyLag returns how long a step waits before the state machine takes it.
func (w *sim) applyLag() time.Duration {
	j := w.plan.joints
	if j == nil || w.calming || !j.draws.Chance(j.lag) {
		return 0
	}
	w.joints.LateApplies++
	return j.draws.Within(0, j.lagMost)
}

// plain reports whether a node runs upstream's library, without coding and leases.
func (n *node) plain() bool {
	j := n.w.plan.joints
	return j != nil && j.upstream>>n.id&1 == 1
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

// appends checks the entries that a member is about to write: they stand one behind the
// other, and a leader's behind its last.
func (m *member) appends(ents []*pb.Entry) {
	st := m.core.State()
	for i, e := range ents {
		index, term := e.GetIndex(), e.GetTerm()
		if i > 0 && (index != ents[i-1].GetIndex()+1 || term < ents[i-1].GetTerm()) {
			m.n.w.fail(onePlace, "group %d: %v is to write entry %d of term %d behind entry %d of term %d", m.g.id, m.n, index, term, ents[i-1].GetIndex(), ents[i-1].GetTerm())
			return
		}
		if st.Role != raft.StateLeader || term != st.Term {
			continue
		}
		if m.own.term == term && index != m.own.index+1 {
			m.n.w.fail(onePlace, "group %d: %v, leader of term %d, appends entry %d; its last was %d", m.g.id, m.n, term, index, m.own.index)
			return
		}
		m.own.term, m.own.index = term, index
	}
	if slices.ContainsFunc(ents, func(e *pb.Entry) bool { return e.GetType() != pb.EntryNormal }) {
		m.meets(momentAppended)
	}
}

// recorder hears of coding at a member.
type recorder struct{ m *member }

// RecordCoding implements raft.CodingRecorder.
func (r recorder) RecordCoding(e raft.CodingEvent) {
	r.m.n.w.reach.RecordCoding(e)
	switch e.Kind {
	case raft.CodingFallback, raft.CodingHedged, raft.CodingChecked, raft.CodingRecovery:
		r.m.meets(momentRaised)
	}
}

// sending tells of moments that messages show.
func (m *member) sending(msg *pb.Message) {
	switch msg.GetType() {
	case pb.MsgTimeoutNow:
		m.meets(momentTransfer)
	case raft.MsgLeases:
		m.meets(momentLeased)
	}
}

// jointReach counts the events of joints.
type jointReach struct {
	jointCounts
	Moments [moments]uint64
}

// jointCounts is the counters of one event each.
type jointCounts struct{ Ambushes, LateApplies, PlainMembers uint64 }

// Add adds the counts of another run.
func (r *jointReach) Add(o jointReach) {
	world.AddCounts(&r.jointCounts, o.jointCounts)
	for i := range r.Moments {
		r.Moments[i] += o.Moments[i]
	}
}

// plainCore is upstream's library at one node among others: it draws from the node's
// randomness.
type plainCore struct {
	replica.Core
	draws world.Draws
}

func newPlainCore(draws world.Draws) replica.NewCore {
	return func(cfg raft.Config) (core replica.Core, err error) {
		world.WithEntropy(draws, func() { core, err = replica.Upstream(cfg) })
		return plainCore{core, draws}, err
	}
}

func (c plainCore) try(call func() error) (err error) {
	world.WithEntropy(c.draws, func() { err = call() })
	return err
}

func (c plainCore) Tick()                    { world.WithEntropy(c.draws, c.Core.Tick) }
func (c plainCore) Campaign() error          { return c.try(c.Core.Campaign) }
func (c plainCore) ForgetLeader() error      { return c.try(c.Core.ForgetLeader) }
func (c plainCore) Step(m *pb.Message) error { return c.try(func() error { return c.Core.Step(m) }) }
func (c plainCore) TransferLeader(to uint64) {
	world.WithEntropy(c.draws, func() { c.Core.TransferLeader(to) })
}
func (c plainCore) Propose(data []byte) error {
	return c.try(func() error { return c.Core.Propose(data) })
}
func (c plainCore) ApplyConfChange(cc pb.ConfChangeI) (cs *pb.ConfState) {
	world.WithEntropy(c.draws, func() { cs = c.Core.ApplyConfChange(cc) })
	return cs
}
