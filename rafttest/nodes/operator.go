// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
)

// campaignReplica has a replica try to become leader.
func campaignReplica(r *replica.Replica) {
	_ = r.Campaign() // a refusal is as well
}

// transfer asks some member to hand leadership to another.
func (w *sim) transfer(g *group) {
	n, leader := w.anyNode(), g.leading()
	if n == nil || leader == nil || n.members[g.id] == nil {
		return
	}
	voters := leader.conf().GetVoters()
	to := voters[w.rng.IntN(len(voters))]
	w.reach.Transfers++
	w.tell(n.id, "group %d: transfer to %d", g.id, to)
	m := n.members[g.id]
	n.bound(func() { m.transfer(to, func(error) {}) })()
}

func (m *member) transfer(to uint64, end func(error)) {
	m.call(m.n.w.plan.deadline, 0, func(r *replica.Replica, id replica.Call, by replica.Deadline) {
		r.TransferLeader(id, to, by)
	}, func(d replica.Done) { end(d.Err) })
}

// propose a change of the members at a member.
func (m *member) change(cc *pb.ConfChangeV2, end func(*pb.ConfState, error)) {
	m.changeWithin(m.n.w.plan.deadline, cc, end)
}

func (m *member) changeWithin(deadline time.Duration, cc *pb.ConfChangeV2, end func(*pb.ConfState, error)) {
	m.n.w.reach.Changes++
	m.call(deadline, 0, func(r *replica.Replica, id replica.Call, by replica.Deadline) {
		r.ProposeConfChange(id, cc, by)
	}, func(d replica.Done) {
		conf, _ := d.Result.(*pb.ConfState)
		if d.Err == nil {
			m.n.w.reach.ChangesDone++
		}
		end(conf, d.Err)
	})
}

// changeMembers does what an operator might, through any member.
func (w *sim) changeMembers(g *group) {
	leader, n := g.leading(), w.anyNode()
	if leader == nil || n == nil || n.members[g.id] == nil {
		return
	}
	conf := leader.conf()
	if len(conf.GetVotersOutgoing()) > 0 {
		return
	}
	changes := w.drawChange(g, leader, conf)
	if len(changes) == 0 {
		return
	}
	cc := &pb.ConfChangeV2{Changes: changes}
	w.tell(n.id, "group %d: change %s", g.id, describeChange(cc))
	m := n.members[g.id]
	n.bound(func() { m.change(cc, func(*pb.ConfState, error) {}) })()
}

func (w *sim) drawChange(g *group, leader *member, conf *pb.ConfState) (changes []*pb.ConfChangeSingle) {
	voters, learners := conf.GetVoters(), conf.GetLearners()
	joiner := g.joiner()
	switch k := w.rng.IntN(6); {
	case k == 0 && len(learners) > 0:
		return []*pb.ConfChangeSingle{single(pb.ConfChangeAddNode, learners[0])}
	case k == 1 && len(learners) > 0:
		return []*pb.ConfChangeSingle{single(pb.ConfChangeRemoveNode, learners[w.rng.IntN(len(learners))])}
	case k == 2 && joiner != 0 && len(learners) < 2:
		g.join(joiner)
		return []*pb.ConfChangeSingle{single(pb.ConfChangeAddLearnerNode, joiner)}
	case k == 3 && joiner != 0 && len(voters) < 5:
		g.join(joiner)
		return []*pb.ConfChangeSingle{single(pb.ConfChangeAddNode, joiner)}
	case k == 4 && joiner != 0 && len(voters) > 1: // a swap of two members, through a joint configuration
		g.join(joiner)
		return []*pb.ConfChangeSingle{single(pb.ConfChangeAddNode, joiner), single(pb.ConfChangeRemoveNode, voters[w.rng.IntN(len(voters))])}
	case len(voters) > 2:
		out := voters[w.rng.IntN(len(voters))]
		if w.rng.Chance(0.3) {
			out = leader.n.id
		}
		return []*pb.ConfChangeSingle{single(pb.ConfChangeRemoveNode, out)}
	}
	return nil
}

func single(typ pb.ConfChangeType, node uint64) *pb.ConfChangeSingle {
	return &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: &node}
}

func describeChange(cc *pb.ConfChangeV2) (text string) {
	for _, c := range cc.GetChanges() {
		text += fmt.Sprintf("%v %d ", c.GetType(), c.GetNodeId())
	}
	return text
}

// joiner returns a node that never belonged to the group, or 0.
func (g *group) joiner() uint64 {
	for id := uint64(1); id <= maxNodes; id++ {
		if !g.told[id] {
			return id
		}
	}
	return 0
}

// join has a node run a member that waits to be added.
func (g *group) join(id uint64) {
	g.told[id] = true
	g.w.reach.Joins++
	n := g.w.node(id)
	if n.up {
		n.join(g)
	} else {
		n.start()
	}
}

// retire shuts down the members that were removed, which all others know.
func (g *group) retire(conf *pb.ConfState) {
	for id := uint64(1); id <= maxNodes; id++ {
		if !g.knows(id) || isMember(conf, id) {
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

func isMember(conf *pb.ConfState, id uint64) bool {
	return slices.Contains(conf.GetVoters(), id) || slices.Contains(conf.GetLearners(), id) ||
		slices.Contains(conf.GetVotersOutgoing(), id) || slices.Contains(conf.GetLearnersNext(), id)
}
