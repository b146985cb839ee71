// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/members"
)

// finale is the second phase: links are mended, all nodes run, and each group
// must elect a leader, take a command at every member, and bring all members to
// one state.
type finale struct {
	w      *sim
	probes map[probeID]*probe
}

type probeID struct{ group, node uint64 }

type probe struct {
	asked    time.Duration
	answered bool
}

// calm ends the faults.
func (w *sim) calm() {
	if w.failure != nil {
		return
	}
	w.tell(0, "calm")
	w.calming = true
	w.net.mendAll()
	w.plan.calm()
	for _, n := range w.nodes {
		n.disk.Mend()
		n.slowUntil, n.lateUntil = 0, 0
		if n.disk.damage != nil {
			n.crash(false)
			n.repair()
		}
		n.resume()
		for _, g := range w.groups {
			if g.told[n.id] {
				n.start()
			}
		}
	}
	w.calmGates()
	f := &finale{w: w, probes: map[probeID]*probe{}}
	f.look()
}

// look sees how far they have come, and comes back later.
func (f *finale) look() {
	w := f.w
	missing := ""
	for _, g := range w.groups {
		if what := f.missing(g); what != "" {
			missing = fmt.Sprintf("group %d: %s", g.id, what)
		}
	}
	switch {
	case w.failure != nil:
	case missing == "":
		w.end = ending{true, w.Now() - w.plan.duration}
		w.tell(0, "all is well")
		for _, g := range w.groups {
			g.compare()
		}
	case w.Now() > w.plan.duration+finaleTime:
		w.fail(liveness, "%v after the last fault: %s", w.Now()-w.plan.duration, missing)
	default:
		w.After(electionTime/4, f.look)
	}
}

// missing names a group's unfinished work, and asks for the work.
func (f *finale) missing(g *group) string {
	leader := g.leading()
	if leader == nil {
		f.upgrade(g)
		return "there is no leader"
	}
	conf := leader.conf()
	if len(conf.GetVotersOutgoing()) > 0 {
		return "the configuration is joint"
	}
	what := ""
	for _, m := range g.membersOf(conf) {
		pr := f.probe(probeID{g.id, m.n.id}, func(op *operation, end func(answer, error)) {
			m.n.bound(func() { m.propose(op, 3*electionTime, end) })()
		})
		switch {
		case !pr.answered:
			what = fmt.Sprintf("node %d has no answer to what was proposed there", m.n.id)
		case m.applied != leader.applied:
			what = fmt.Sprintf("node %d has applied %d, the leader %d", m.n.id, m.applied, leader.applied)
		case !proto.Equal(m.conf(), conf):
			what = fmt.Sprintf("node %d takes %v for the members; they are %v", m.n.id, m.conf(), conf)
		case len(m.calls) > 0:
			what = fmt.Sprintf("node %d has calls that do not end", m.n.id)
		}
	}
	if what == "" {
		what = f.missingInBudgets()
	}
	if what == "" {
		what = f.missingAtGates(g)
	}
	if what == "" || f.w.Now() > f.w.plan.duration+10*electionTime {
		g.retire(conf)
	}
	return what
}

// upgrade has an operator start a member with Weft's library whose vote the others need, because only the member knows that it has none
// any more, and whose log is the longest. A member with upstream's library does not tell them (rule L8 of coding).
func (f *finale) upgrade(g *group) {
	var longest *member
	for _, n := range f.w.running() {
		if m := n.members[g.id]; m != nil && (longest == nil || m.r.Status().LastIndex > longest.r.Status().LastIndex) {
			longest = m
		}
	}
	if f.w.Now() < f.w.plan.duration+finaleTime/2 || longest == nil || !longest.n.plain() || members.Votes(longest.conf(), longest.n.id) {
		return
	}
	f.w.tell(longest.n.id, "gets Weft's library, as nobody can win without its vote")
	f.w.plan.joints.upstream &^= 1 << longest.n.id
	longest.n.crash(false)
	longest.n.start()
}

// probe proposes a command at a member or a gateway, again and again until it is applied.
func (f *finale) probe(id probeID, propose func(*operation, func(answer, error))) *probe {
	w := f.w
	pr := f.probes[id]
	if pr == nil {
		pr = &probe{asked: -finaleTime}
		f.probes[id] = pr
	}
	if pr.answered || w.Now()-pr.asked < 3*electionTime {
		return pr
	}
	pr.asked = w.Now()
	w.history.operations++
	op := &operation{id: w.history.operations, verb: verbOpen}
	propose(op, func(_ answer, err error) { pr.answered = pr.answered || err == nil })
	return pr
}

// compare checks what must be true in the end.
func (g *group) compare() {
	w := g.w
	leader := g.leading()
	want := leader.state.encode()
	members, _ := leader.core.Members()
	for _, m := range g.membersOf(leader.conf()) {
		if m.state.applied != uint64(len(g.applied)) {
			w.fail(nothingLost, "group %d: node %d has applied %d commands of %d", g.id, m.n.id, m.state.applied, len(g.applied))
		}
		if got, _ := m.core.Members(); got.String() != members.String() {
			w.fail(equalStates, "group %d: node %d goes by the members %v, node %d by %v", g.id, m.n.id, got, leader.n.id, members)
		}
		if string(m.state.encode()) != string(want) {
			w.fail(equalStates, "group %d: nodes %d and %d differ", g.id, m.n.id, leader.n.id)
		}
	}
	for _, op := range w.history.ops {
		if op.group == g.id && op.finished && op.verb != verbGet && !g.effects[op.id] {
			w.fail(nothingLost, "group %d: operation %d was acknowledged, and has no effect", g.id, op.id)
		}
	}
}

// retire shuts down the members that were removed, which all others know.
func (g *group) retire(conf *pb.ConfState) {
	for id := uint64(1); id <= maxNodes; id++ {
		if !g.knows(id) || members.Has(conf, id) {
			continue
		}
		g.retired[id] = true
		g.w.reach.Retirements++
		n := g.w.node(id)
		if m := n.members[g.id]; m != nil {
			m.stop()
		}
	}
}

// stop ends the member; the process goes on.
func (m *member) stop() {
	m.drive.Stop()
	m.r.CatchUpWithin(nil, 0, nil)
	m.local.Close()
	m.unblock()
	delete(m.n.members, m.g.id)
}

// calmGates ends the faults of gateways; nodes of an earlier version are replaced.
func (w *sim) calmGates() {
	w.plan.gates.earlier = 0
	for _, gt := range w.gates {
		gt.resume()
		gt.start()
	}
}

// missingInBudgets names a budget that has bytes under way, or a member that waits for some.
func (f *finale) missingInBudgets() string {
	for _, n := range f.w.running() {
		if s := n.catchUp.Statistics(catchup.Sending); s.UsedBytes > 0 || s.Waiting > 0 {
			return fmt.Sprintf("node %d has %d bytes under way to members that catch up, and %d wait", n.id, s.UsedBytes, s.Waiting)
		}
	}
	return ""
}

// missingAtGates names unfinished work of a group at gateways, and asks for work.
func (f *finale) missingAtGates(g *group) string {
	for _, gt := range f.w.gates {
		gw := gt.groups[g.id]
		pr := f.probe(probeID{g.id, gt.id}, func(op *operation, end func(answer, error)) {
			gt.bound(func() { gw.propose(op, 3*electionTime, end) })()
		})
		switch st := gw.r.Status(); {
		case !pr.answered:
			return fmt.Sprintf("%v has no answer to what was proposed there: %+v", gt, st)
		case len(gw.calls) > 0 || st.Waiting > 0:
			return fmt.Sprintf("%v has calls that do not end", gt)
		case st.Queued > 0:
			return fmt.Sprintf("%v has %d bytes for which nobody waits", gt, st.Queued)
		}
	}
	return ""
}
