// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
)

// transfer asks some member to hand leadership to another.
func (f faults) transfer(g *group) {
	n, leader := f.anyNode(), g.leading()
	if n == nil || leader == nil || n.members[g.id] == nil {
		return
	}
	voters := leader.conf().GetVoters()
	to := voters[f.rng.IntN(len(voters))]
	f.reach.Transfers++
	f.tell(n.id, "group %d: transfer to %d", g.id, to)
	m := n.members[g.id]
	n.bound(func() { m.transfer(to, func(error) {}) })()
}

// changeMembers does what an operator might, through any member.
func (f faults) changeMembers(g *group) {
	leader, n := g.leading(), f.anyNode()
	if leader == nil || n == nil || n.members[g.id] == nil {
		return
	}
	conf := leader.conf()
	if len(conf.GetVotersOutgoing()) > 0 {
		return
	}
	changes := f.drawChange(g, leader, conf)
	if len(changes) == 0 {
		return
	}
	cc := &pb.ConfChangeV2{Changes: changes}
	f.tell(n.id, "group %d: change %s", g.id, describeChange(cc))
	m := n.members[g.id]
	n.bound(func() { m.change(f.plan.deadline, cc, func(*pb.ConfState, error) {}) })()
}

func (f faults) drawChange(g *group, leader *member, conf *pb.ConfState) (changes []*pb.ConfChangeSingle) {
	voters, learners := conf.GetVoters(), conf.GetLearners()
	joiner := g.joiner()
	switch k := f.rng.IntN(6); {
	case k == 0 && len(learners) > 0:
		return []*pb.ConfChangeSingle{single(pb.ConfChangeAddNode, learners[0])}
	case k == 1 && len(learners) > 0:
		return []*pb.ConfChangeSingle{single(pb.ConfChangeRemoveNode, learners[f.rng.IntN(len(learners))])}
	case k == 2 && joiner != 0 && len(learners) < 2:
		g.join(joiner)
		return []*pb.ConfChangeSingle{single(pb.ConfChangeAddLearnerNode, joiner)}
	case k == 3 && joiner != 0 && len(voters) < 5:
		g.join(joiner)
		return []*pb.ConfChangeSingle{single(pb.ConfChangeAddNode, joiner)}
	case k == 4 && joiner != 0 && len(voters) > 1: // a swap of two members, through a joint configuration
		g.join(joiner)
		return []*pb.ConfChangeSingle{single(pb.ConfChangeAddNode, joiner), single(pb.ConfChangeRemoveNode, voters[f.rng.IntN(len(voters))])}
	case len(voters) > 2:
		out := voters[f.rng.IntN(len(voters))]
		if f.rng.Chance(0.3) {
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

// wishRoster has the operator ask the leader of a group for other responders.
func (f faults) wishRoster(g *group) {
	m := g.leading()
	if m == nil || !m.here() || m.n.paused || m.n.plain() {
		return
	}
	var ids []leases.NodeID
	for id := uint64(1); id <= maxNodes; id++ {
		if g.knows(id) && f.lease.Chance(0.7) {
			ids = append(ids, leases.NodeID(id))
		}
	}
	wanted := []leases.Want{{Nodes: ids}}
	if f.plan.leasing.spans && f.lease.Chance(0.5) {
		middle := fmt.Sprintf("%03d", f.lease.IntN(storeKeys))
		wanted = []leases.Want{{Span: leases.Span{End: middle}, Nodes: ids}, {Span: leases.Span{Start: middle}, Nodes: []leases.NodeID{leases.NodeID(m.n.id)}}}
	}
	if len(ids) == 0 {
		wanted = nil
	}
	var mode []leases.TunerMode
	if f.plan.leasing.tuner && f.lease.Chance(0.6) {
		mode = []leases.TunerMode{world.Pick(f.lease, leases.TunerOff, leases.TunerWatch, leases.TunerOn, leases.TunerConfigured)}
		wanted = wanted[:f.lease.IntN(len(wanted)+1)] // the tuner takes keys without an operator's word
	}
	f.tell(m.n.id, "group %d: responders %v wanted, tuner %v", g.id, wanted, mode)
	m.drive.Post(0, func(r *replica.Replica) {
		if s := r.Status().Leases; s != nil {
			f.reach.countTuned(s)
		}
		switch err := r.SetResponders(wanted, mode...); {
		case err == nil:
			f.reach.Wishes++
			f.reach.TunerSwitches += uint64(len(mode))
		case !errors.Is(err, leases.ErrNotLeader):
			f.fail(noFailure, "%v, group %d: responders: %v", m.n, g.id, err)
		}
	})
}

// probe reads at any node. Clients wait for their writes where they read, so clients would
// not go on to read at a node that is cut off.
func (f faults) probe(g *group) {
	n := f.node(1 + uint64(f.lease.IntN(maxNodes)))
	m := n.members[g.id]
	if !n.up || m == nil || !g.knows(n.id) {
		return
	}
	key := uint8(f.lease.IntN(f.plan.keys))
	if n.paused && m.readAtOnce(key, replica.ReadOptions{}, g.fresh.acked[key]) {
		f.reach.PermitReadsAtPause++
	}
	n.bound(func() { m.read(key, f.plan.deadline, func(error) {}) })()
}

// densify has all members of a group that run write plain entries for a while, as
// before a downgrade that is then put off.
func (f faults) densify(g *group) {
	f.reach.Densified++
	f.tell(0, "group %d: densify", g.id)
	f.setDensify(g, true)
	f.After(f.outage(), func() { f.setDensify(g, false) })
}

func (f faults) setDensify(g *group, on bool) {
	for _, n := range f.running() {
		if m := n.members[g.id]; m != nil {
			m.drive.Post(0, func(r *replica.Replica) { r.Densify(on) })
		}
	}
}
