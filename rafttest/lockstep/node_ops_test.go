// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"context"
	"slices"
	"testing/synctest"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

var background = context.Background()

type nodeOp struct {
	row    string
	weight int
	run    func(*nodeGroup, *nodeMember)
}

var nodeOps = []nodeOp{
	{"node op: Tick", 12, (*nodeGroup).tickNode},
	{"node op: Propose", 14, (*nodeGroup).proposeNode},
	{"node op: ProposeConfChange", 4, (*nodeGroup).proposeChangeNode},
	{"node op: Step", 40, (*nodeGroup).deliverNode},
	{"node op: Step of a proposal", 3, (*nodeGroup).stepProposal},
	{"node op: Step of a local or a stray message", 1, (*nodeGroup).stepStray},
	{"node op: lose", 1, (*nodeGroup).loseNode},
	{"node op: host's turn", 40, (*nodeGroup).turnNode},
	{"node op: host's part of a turn", 20, (*nodeGroup).partNode},
	{"node op: ReadIndex", 3, (*nodeGroup).readNode},
	{"node op: Campaign", 1, (*nodeGroup).campaignNode},
	{"node op: TransferLeadership", 1, (*nodeGroup).transferNode},
	{"node op: ForgetLeader", 1, (*nodeGroup).forgetNode},
	{"node op: reports", 2, (*nodeGroup).reportNode},
	{"node op: snapshot and compact", 1, (*nodeGroup).compactNode},
	{"node op: give up waiting", 2, (*nodeGroup).giveUpNode},
	{"node op: Stop", 1, (*nodeGroup).stopNode},
}

// stepNodes makes a random step.
func (g *nodeGroup) stepNodes() {
	total := 0
	for i := range nodeOps {
		total += nodeOps[i].weight
	}
	m := g.nodes[g.IntN(len(g.nodes))]
	x := g.IntN(total)
	for i := range nodeOps {
		if x -= nodeOps[i].weight; x < 0 {
			g.tally.Hit(nodeOps[i].row)
			nodeOps[i].run(g, m)
			return
		}
	}
}

func (g *nodeGroup) tickNode(m *nodeMember) {
	for range pick(g.chance, 1, 1, 1, m.timeout()) {
		g.onNodes(m, "Tick", func(n node) error { n.Tick(); return nil })
	}
}

func (g *nodeGroup) proposeNode(m *nodeMember) {
	data := g.payload()
	g.mayBlock(m, "Propose", func(ctx context.Context, side int) error {
		return m.node[side].Propose(ctx, slices.Clone(data))
	})
}

func (g *nodeGroup) proposeChangeNode(m *nodeMember) {
	var ccs [2]pb.ConfChangeI
	switch cc := g.drawConfChange().(type) {
	case *pb.ConfChange:
		ccs = [2]pb.ConfChangeI{cloneOf(cc), cc}
	case *pb.ConfChangeV2:
		ccs = [2]pb.ConfChangeI{cloneOf(cc), cc}
	}
	g.mayBlock(m, "ProposeConfChange", func(ctx context.Context, side int) error {
		return m.node[side].ProposeConfChange(ctx, ccs[side])
	})
}

func (g *nodeGroup) stepProposal(m *nodeMember) {
	msg := &pb.Message{Type: pb.MsgProp.Enum(), From: new(g.anyID()), Entries: []*pb.Entry{{Data: g.payload()}, {Data: g.payload()}}}
	twins := [2]*pb.Message{cloneOf(msg), msg}
	g.mayBlock(m, "Step of a proposal", func(ctx context.Context, side int) error {
		return m.node[side].Step(ctx, twins[side])
	})
}

// stepNode steps a message and its twin. Proposals may block.
func (g *nodeGroup) stepNode(m *nodeMember, msg [2]*pb.Message) {
	if msg[0].GetType() == pb.MsgProp {
		g.mayBlock(m, "Step of a proposal", func(ctx context.Context, side int) error { return m.node[side].Step(ctx, msg[side]) })
		return
	}
	if isRead(msg[0]) && (m.leadsWithoutCommit() || m.leadsAsStranger()) {
		return // see tooEarly; here no read waits for the first commit
	}
	if m.prematureVote(msg[0]) || m.termlessRefusal(msg[0]) {
		return // upstream would lead because of this vote, or panic
	}
	g.noteMessage(m.member, "Step", cloneForTrace(msg[0]))
	_ = g.bothNodes(m, "Step", func(side int) error { return m.node[side].Step(background, msg[side]) })
	g.compareNodes(m)
}

func (g *nodeGroup) deliverNode(m *nodeMember) {
	i, ok := g.drawPacket(m.member)
	if !ok {
		return
	}
	p := g.net[i]
	g.net = slices.Delete(g.net, i, i+1)
	at := slices.IndexFunc(g.nodes, func(m *nodeMember) bool { return m.id == p.to() })
	if at < 0 {
		return
	}
	to := g.nodes[at]
	if p.m[0].GetType() == pb.MsgTransferLeader && to.state.SoftState.RaftState != raft.StateLeader {
		return // upstream panics when the message is forwarded again
	}
	g.stepNode(to, [2]*pb.Message{cloneOf(p.m[0]), cloneOf(p.m[1])})
}

func (g *nodeGroup) loseNode(m *nodeMember) { g.cutOff(m.member) }

// stepStray steps messages that Node has to ignore.
func (g *nodeGroup) stepStray(m *nodeMember) {
	if g.oneIn(4) {
		g.onNodes(m, "Step of nil", func(n node) error { return n.Step(background, nil) })
		return
	}
	typ := pick(g.chance, pb.MsgHup, pb.MsgBeat, pb.MsgUnreachable, pb.MsgSnapStatus, pb.MsgCheckQuorum,
		pb.MsgAppResp, pb.MsgVoteResp, pb.MsgReadIndexResp)
	msg := &pb.Message{Type: &typ, From: new(uint64(77)), Term: new(m.state.HardState.GetTerm())}
	g.stepNode(m, [2]*pb.Message{cloneOf(msg), msg})
}

func (g *nodeGroup) readNode(m *nodeMember) {
	if m.leadsWithoutCommit() || m.leadsAsStranger() {
		return // see tooEarly
	}
	ctx := pick(g.chance, nil, []byte{}, g.bytes(8))
	g.onNodes(m, "ReadIndex", func(n node) error { return n.ReadIndex(background, slices.Clone(ctx)) })
}

func (g *nodeGroup) campaignNode(m *nodeMember) {
	g.onNodes(m, "Campaign", func(n node) error { return n.Campaign(background) })
}

func (g *nodeGroup) transferNode(m *nodeMember) {
	lead, to := g.anyID(), pick(g.chance, g.plan.ids...)
	g.onNodes(m, "TransferLeadership", func(n node) error { n.TransferLeadership(background, lead, to); return nil })
}

func (g *nodeGroup) forgetNode(m *nodeMember) {
	g.onNodes(m, "ForgetLeader", func(n node) error { return n.ForgetLeader(background) })
}

func (g *nodeGroup) reportNode(m *nodeMember) {
	id, st := g.anyID(), pick[raft.SnapshotStatus](g.chance, 1, 1, 2, 2, 0, 3)
	if g.oneIn(2) {
		g.onNodes(m, "ReportUnreachable", func(n node) error { n.ReportUnreachable(id); return nil })
	} else {
		g.onNodes(m, "ReportSnapshot", func(n node) error { n.ReportSnapshot(id, st); return nil })
	}
}

func (g *nodeGroup) compactNode(m *nodeMember) {
	if !m.stopped {
		g.compact(m.member)
		g.compareNodes(m)
	}
}

func (g *nodeGroup) giveUpNode(m *nodeMember) {
	if m.blocked != nil {
		g.giveUp(m, false)
	}
}

// stopNode stops a member, makes calls that must no longer block, and restarts the member from its
// disk.
func (g *nodeGroup) stopNode(m *nodeMember) {
	g.note(m.member, "Stop")
	m.stopped = true
	_ = g.bothNodes(m, "Stop", func(side int) error { m.node[side].Stop(); return nil })
	if m.blocked != nil && !g.settle(m, m.blocked, "node: blocked proposal ended by Stop") {
		g.fail("a proposal does not return when the node is stopped", m.blocked.what)
	}
	late := []nodeOp{
		{run: (*nodeGroup).tickNode}, {run: (*nodeGroup).proposeNode}, {run: (*nodeGroup).proposeChangeNode},
		{run: (*nodeGroup).readNode}, {run: (*nodeGroup).campaignNode}, {run: (*nodeGroup).transferNode},
		{run: (*nodeGroup).forgetNode}, {run: (*nodeGroup).reportNode}, {run: (*nodeGroup).stepStray}, {run: (*nodeGroup).lateCalls},
	}
	for range g.IntN(6) {
		pick(g.chance, late...).run(g, m)
	}
	g.startNodes(m)
}

// lateCalls makes, after Stop, the calls that only a host's loop makes.
func (g *nodeGroup) lateCalls(m *nodeMember) {
	g.onNodes(m, "Stop again", func(n node) error { n.Stop(); return nil })
	g.onNodes(m, "Advance after Stop", func(n node) error { n.Advance(); return nil })
	var got [2]any
	_ = g.bothNodes(m, "ApplyConfChange after Stop", func(side int) error {
		_, offered := m.node[side].tryReady()
		got[side] = []any{m.node[side].ApplyConfChange(&pb.ConfChangeV2{}) == nil, offered}
		return nil
	})
	if a, b := render(got[0]), render(got[1]); a != b {
		g.differ("after Stop: ApplyConfChange returns nil, and there is a Ready", a, b)
	}
}

// takeNode takes a Ready if both nodes offer a Ready, and compares the two.
func (g *nodeGroup) takeNode(m *nodeMember) bool {
	var rds [2]raft.Ready
	var ok [2]bool
	g.note(m.member, "Ready")
	_ = g.bothNodes(m, "Ready", func(side int) error { rds[side], ok[side] = m.node[side].tryReady(); return nil })
	if ok[0] != ok[1] {
		g.differ("a Ready is offered", ok[0], ok[1])
	}
	if !ok[0] {
		return false
	}
	g.compareReady(m.member, &rds)
	g.compareNodes(m)
	if !m.cfg.AsyncStorageWrites {
		m.hand, m.written = &rds, false
		return true
	}
	for i := range rds[0].Messages {
		p := packet{[2]*pb.Message{rds[0].Messages[i], rds[1].Messages[i]}}
		switch p.to() {
		case raft.LocalAppendThread:
			m.appends = append(m.appends, p)
		case raft.LocalApplyThread:
			m.applies = append(m.applies, p)
		default:
			g.send(p.m)
		}
	}
	return true
}

// noReady checks that the node offers no second Ready before Advance.
func (g *nodeGroup) noReady(m *nodeMember) {
	var offered [2]bool
	_ = g.bothNodes(m, "no Ready", func(side int) error { _, offered[side] = m.node[side].tryReady(); return nil })
	if offered != [2]bool{} {
		g.differ("a Ready is offered before Advance", offered[0], offered[1])
	}
}

func (g *nodeGroup) turnNode(m *nodeMember) {
	if m.hand == nil {
		g.takeNode(m)
	}
	for m.hand != nil || len(m.toApply)+len(m.appends)+len(m.applies)+len(m.acks) > 0 {
		g.workNode(m)
	}
}

func (g *nodeGroup) partNode(m *nodeMember) {
	if m.hand == nil && g.oneIn(2) {
		g.takeNode(m)
	} else {
		g.workNode(m)
	}
}

// workNode does the next piece of work of the host.
func (g *nodeGroup) workNode(m *nodeMember) {
	if m.hand != nil && g.oneIn(3) {
		g.noReady(m)
	}
	switch {
	case m.hand != nil && !m.written:
		g.writeReady(m.member)
	case m.hand != nil && (len(m.toApply) == 0 || g.plan.earlyAdvance && g.oneIn(2)):
		m.hand = nil
		g.onNodes(m, "Advance", func(n node) error { n.Advance(); return nil })
	case len(m.toApply) > 0:
		pair := m.toApply[0]
		m.toApply = m.toApply[1:]
		g.applyNode(m, pair)
	case len(m.appends) > 0 && g.oneIn(2):
		p := m.appends[0]
		m.appends = m.appends[1:]
		g.writeAppend(m.member, p)
		g.route(m.member, p)
	case len(m.applies) > 0 && g.oneIn(2):
		p := m.applies[0]
		m.applies = m.applies[1:]
		g.applyNode(m, pairOfEntries{p.m[0].GetEntries(), p.m[1].GetEntries()})
		g.route(m.member, p)
	case len(m.acks) > 0:
		p := m.acks[0]
		m.acks = m.acks[1:]
		g.stepNode(m, [2]*pb.Message{cloneOf(p.m[0]), cloneOf(p.m[1])})
	}
}

// applyNode applies committed entries, and skips changes that do not fit.
func (g *nodeGroup) applyNode(m *nodeMember, pair pairOfEntries) {
	for i, e := range pair[0] {
		if e.GetIndex() <= m.machine.applied {
			continue
		}
		m.machine.applied = e.GetIndex()
		if e.GetType() == pb.EntryNormal {
			continue
		}
		ccs := [2]pb.ConfChangeI{decode(e), decode(pair[1][i])}
		if !fits(m.state.Config, ccs[0].AsV2()) {
			continue
		}
		var states [2]*pb.ConfState
		g.note(m.member, "ApplyConfChange", ccs[0])
		_ = g.bothNodes(m, "ApplyConfChange", func(side int) error {
			states[side] = m.node[side].ApplyConfChange(ccs[side])
			return nil
		})
		g.sameConfStates(states)
		m.machine.change(e.GetIndex(), cloneOf(states[0]))
		g.compareNodes(m)
	}
	synctest.Wait()
}
