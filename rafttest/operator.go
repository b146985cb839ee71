// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/world"
)

// changeMembers proposes a change of the members, as an operator would: to a
// node that seems to lead, by the node's own view of the members.
func (f *faults) changeMembers() {
	s := f.s
	n := s.leading()
	if n == nil || s.rng.Chance(0.1) {
		n = f.anyNode()
	}
	if n == nil || n.paused {
		return
	}
	conf, may := s.membersAt(n)
	if !may {
		return
	}
	if isJoint(conf) {
		if !conf.GetAutoLeave() || s.rng.Chance(0.2) {
			s.tell(n.id, "propose: leave joint")
			n.proc.change(&pb.ConfChangeV2{})
		}
		return
	}
	changes := s.drawChanges(conf)
	if !n.proc.leads() {
		// It goes to a leader that may know of other members, and the core
		// does not look whether any voter would be left.
		changes = slices.DeleteFunc(changes, func(c *pb.ConfChangeSingle) bool { return c.GetType() != pb.ConfChangeAddNode })
	}
	if len(changes) == 0 {
		return
	}
	cc := s.drawChange(changes)
	s.tell(n.id, "propose: %s", changeString(cc))
	n.proc.change(cc)
}

// allKnowMembers reports whether every member knows durably that the last
// change is committed, and no other is under way.
//
// Two changes that a node has in its log and does not know to be committed are
// dangerous (in any Raft that goes by the applied configuration): the node
// counts the majorities of the members before both. A leader proposes a change
// only when it has applied the one before, and the entry of the second brings
// the commit index of the first along; so nobody has both without knowing that
// the first is committed, unless a crash tears the hard state from the entries
// written with it. Where hosts write record by record, operators wait between
// changes.
func (s *sim) allKnowMembers(leader *node) bool {
	newest := s.check.newestConf()
	if isJoint(newest.conf) && leader.proc.conf.GetAutoLeave() {
		return false
	}
	for _, id := range s.allIDs() {
		d := s.node(id).disk
		if d == nil {
			continue
		}
		if members.Has(newest.conf, id) && d.durable.state.commit < newest.index {
			return false
		}
		for _, e := range d.live.entries {
			if e.GetIndex() > newest.index && e.GetType() != pb.EntryNormal {
				return false
			}
		}
	}
	return true
}

func (s *sim) allIDs() []uint64 {
	var ids []uint64
	for id := range uint64(s.plan.voters + s.plan.spares) {
		ids = append(ids, id+1)
	}
	return ids
}

// drawChanges draws one to three steps that leave at least one voter, and
// unless the operator is bold, a majority of the present voters: see stalemate.
func (s *sim) drawChanges(conf *pb.ConfState) []*pb.ConfChangeSingle {
	ids := s.allIDs()
	s.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	n, voters := 1, len(conf.GetVoters())
	least := voters/2 + 1
	if s.plan.bold {
		least = 1
	}
	if !s.plan.oneByOne && !s.plan.joints.simpleOnly(&s.plan) {
		n = world.Pick(s.rng, 1, 1, 2, 3)
	}
	var changes []*pb.ConfChangeSingle
	for _, id := range ids[:min(n, len(ids))] {
		do := func(typ pb.ConfChangeType) {
			changes = append(changes, &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: &id})
		}
		voter := slices.Contains(conf.GetVoters(), id)
		learner := slices.Contains(conf.GetLearners(), id)
		switch {
		case voter && voters > least && s.rng.Chance(0.8):
			voters--
			do(pb.ConfChangeRemoveNode)
		case voter && voters > least:
			voters--
			do(pb.ConfChangeAddLearnerNode)
		case learner && s.rng.Chance(0.3):
			do(pb.ConfChangeRemoveNode)
		case learner:
			s.reach.Promotions++
			do(pb.ConfChangeAddNode)
		case !voter && s.rng.Chance(0.4):
			s.reach.Learners++
			s.join(id)
			do(pb.ConfChangeAddLearnerNode)
		case !voter:
			s.join(id)
			do(pb.ConfChangeAddNode)
		}
	}
	return changes
}

// drawChange puts steps into one form of a change.
func (s *sim) drawChange(changes []*pb.ConfChangeSingle) pb.ConfChangeI {
	if len(changes) == 1 && (s.rng.Chance(0.5) || s.plan.joints.simpleOnly(&s.plan)) {
		s.reach.SimpleChanges++
		return &pb.ConfChange{Type: changes[0].Type, NodeId: changes[0].NodeId}
	}
	cc := &pb.ConfChangeV2{Changes: changes}
	switch {
	case s.plan.oneByOne || s.rng.Chance(0.4):
		s.reach.JointAuto++ // joint only with more than one step
		cc.Transition = pb.ConfChangeTransitionAuto.Enum()
	case s.rng.Chance(0.5):
		s.reach.JointImplicit++
		cc.Transition = pb.ConfChangeTransitionJointImplicit.Enum()
	default:
		s.reach.JointExplicit++
		cc.Transition = pb.ConfChangeTransitionJointExplicit.Enum()
	}
	return cc
}

// membersAt returns the members at a node, by an operator's view, and whether the
// operator may change the members there now.
func (s *sim) membersAt(n *node) (*pb.ConfState, bool) {
	p := n.proc
	if s.hurry() == hurryNot {
		may := s.plan.joints == nil || s.plan.coded.late == 0 || p.changes == 0 && p.leads()
		return p.conf, may && (!s.plan.oneByOne || s.impatient() || s.allKnowMembers(n))
	}
	if s.hurry() == hurryRefuses && s.rng.Chance(0.3) {
		return p.conf, true // whatever is ahead
	}
	conf := p.expected()
	return conf, conf != nil && p.leads()
}

// hurryOn proposes several changes in a row.
func (f *faults) hurryOn() {
	s := f.s
	for range s.rng.Between(1, 4) {
		if s.rng.Chance(0.7) {
			f.changeMembers()
		} else {
			s.replaceMembers()
		}
	}
	if s.rng.Chance(0.4) {
		f.soon(f.upset)
	}
}

// replaceMembers changes several voters at a time: it puts fresh nodes in the
// place of as many as two, or takes two away.
func (s *sim) replaceMembers() {
	n := s.leading()
	if n == nil || n.paused {
		return
	}
	conf, may := s.membersAt(n)
	if !may || isJoint(conf) || s.plan.joints.simpleOnly(&s.plan) {
		return
	}
	voters := slices.Clone(conf.GetVoters())
	var fresh []uint64
	for _, id := range s.allIDs() {
		if !members.Has(conf, id) {
			fresh = append(fresh, id)
		}
	}
	s.rng.Shuffle(len(voters), func(i, j int) { voters[i], voters[j] = voters[j], voters[i] })
	var changes []*pb.ConfChangeSingle
	do := func(typ pb.ConfChangeType, id uint64) {
		changes = append(changes, &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: &id})
	}
	shrink := len(voters) >= 5 && s.rng.Chance(0.5)
	if !shrink && len(fresh) == 0 {
		return
	}
	for i, id := range voters[:2*min(1, len(voters)/3)] {
		if !shrink {
			if i >= len(fresh) {
				break
			}
			s.join(fresh[i])
			do(pb.ConfChangeAddNode, fresh[i])
		}
		do(pb.ConfChangeRemoveNode, id)
	}
	if len(changes) == 0 {
		return
	}
	if shrink {
		s.coded.Shrinks++
	} else {
		s.coded.Replacements++
	}
	cc := &pb.ConfChangeV2{Changes: changes, Transition: world.Pick(s.rng, pb.ConfChangeTransitionAuto,
		pb.ConfChangeTransitionJointImplicit, pb.ConfChangeTransitionJointExplicit).Enum()}
	s.tell(n.id, "propose: %s", changeString(cc))
	n.proc.change(cc)
}

// impatient reports whether operators need not wait between changes of the
// members although a crash may tear a write: nodes that code want the majorities
// of every configuration in their log that they have not applied.
func (s *sim) impatient() bool {
	return s.plan.coded != nil && s.plan.coded.impatient && !slices.ContainsFunc(s.nodes, func(n *node) bool { return n.uncoded })
}
