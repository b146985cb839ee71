// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"go.etcd.io/raft/v3/confchange"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

// drawConfChange draws a configuration change of either version. Many changes do not fit the
// configuration at the time of their application.
func (s *schedule) drawConfChange() pb.ConfChangeI {
	if s.oneIn(3) {
		return &pb.ConfChange{
			Id:      pick(s.chance, nil, new(s.Uint64())),
			Type:    s.drawChangeType().Enum(),
			NodeId:  new(s.drawTarget()),
			Context: s.payload(),
		}
	}
	cc := &pb.ConfChangeV2{Context: s.payload()}
	if s.oneIn(3) {
		return cc // leaves a joint configuration
	}
	if !s.oneIn(4) {
		cc.Transition = pb.ConfChangeTransition(s.IntN(3)).Enum()
	}
	for range pick(s.chance, 1, 1, 1, 2, 2, 3, 4) {
		cc.Changes = append(cc.Changes, &pb.ConfChangeSingle{Type: s.drawChangeType().Enum(), NodeId: new(s.drawTarget())})
	}
	return cc
}

func (s *schedule) drawChangeType() pb.ConfChangeType {
	return pick(s.chance, pb.ConfChangeAddNode, pb.ConfChangeAddNode, pb.ConfChangeAddNode,
		pb.ConfChangeRemoveNode, pb.ConfChangeRemoveNode, pb.ConfChangeAddLearnerNode, pb.ConfChangeAddLearnerNode, pb.ConfChangeUpdateNode)
}

func (s *schedule) drawTarget() uint64 {
	if s.oneIn(15) {
		return 0 // means that the change is ignored
	}
	return pick(s.chance, s.plan.ids...)
}

func (s *schedule) proposeConfChange(m *member) {
	m = s.proposer(m)
	var cc pb.ConfChangeI
	if !s.oneIn(15) {
		cc = s.drawConfChange()
	}
	s.proposeChangeAt(m, cc)
	if m.running() && s.oneIn(6) {
		s.transferLeader(m) // so that a transfer is under way when the change is applied
	}
}

func (s *schedule) proposeChangeAt(m *member, cc pb.ConfChangeI) {
	s.note(m, "ProposeConfChange", cc)
	_ = s.on(m, "ProposeConfChange", func(_ int, c core) error {
		switch cc := cc.(type) {
		case *pb.ConfChange:
			mine := cloneOf(cc)
			defer overwrite(mine.Context)
			return c.ProposeConfChange(mine)
		case *pb.ConfChangeV2:
			mine := cloneOf(cc)
			defer overwrite(mine.Context)
			return c.ProposeConfChange(mine)
		}
		return c.ProposeConfChange(nil)
	})
	s.tallyConfChange(cc)
}

func (s *schedule) tallyConfChange(cc pb.ConfChangeI) {
	switch cc := cc.(type) {
	case nil:
		s.tally.Hit("conf change: nil")
	case *pb.ConfChange:
		s.tally.Hit("conf change: V1 " + cc.GetType().String())
	case *pb.ConfChangeV2:
		if len(cc.Changes) == 0 {
			s.tally.Hit("conf change: V2 that leaves")
		} else {
			s.tally.Hit("conf change: V2 " + cc.GetTransition().String())
		}
	}
}

// apply makes the host apply committed entries: a configuration change comes into force, other
// entries are only counted.
func (s *schedule) apply(m *member, pair pairOfEntries) {
	for i, e := range pair[0] {
		if !m.running() {
			return
		}
		if e.GetIndex() <= m.machine.applied {
			continue // a snapshot came first
		}
		m.machine.applied = e.GetIndex()
		if isChange(e) {
			s.applyChange(m, [2]*pb.Entry{e, pair[1][i]})
		}
	}
}

func (s *schedule) applyChange(m *member, ents [2]*pb.Entry) {
	var ccs [2]pb.ConfChangeI
	for side, e := range ents {
		ccs[side] = decode(e)
		if ccs[side] == nil {
			s.fail("a committed configuration change cannot be read", render(e))
		}
	}
	if !s.plan.carelessHost && !fits(m.state.Config, ccs[0].AsV2()) {
		s.tally.Hit("conf change: rejected by the host")
		if !s.bare && s.oneIn(2) {
			s.refuseChange(m)
		}
		return
	}
	var states [2]*pb.ConfState
	s.note(m, "ApplyConfChange", ccs[0])
	_ = s.on(m, "ApplyConfChange", func(side int, c core) error {
		states[side] = c.ApplyConfChange(ccs[side])
		return nil
	})
	if !m.running() {
		return
	}
	s.sameConfStates(states)
	m.machine.change(ents[0].GetIndex(), cloneOf(states[0]))
	if states[0].GetAutoLeave() {
		s.tally.Hit("members: joint, left by itself")
	}
	for _, cs := range states {
		overwriteIDs(cs.Voters) // the result belongs to the host
	}
	s.tally.Hit("conf change: applied")
	if a, b := s.libs[0].describeConfChange(ccs[0]), s.libs[1].describeConfChange(ccs[1]); a != b {
		s.differ("DescribeConfChange", a, b)
	}
}

// refuseChange makes the host apply a change of node 0, by which etcd refuses a change. Such a change
// cannot be applied without a voter, nor in a joint configuration.
func (s *schedule) refuseChange(m *member) {
	if c := &m.state.Config; len(c.Voters[0]) == 0 || len(c.Voters[1]) > 0 {
		return
	}
	var states [2]*pb.ConfState
	s.note(m, "ApplyConfChange of node 0")
	_ = s.on(m, "ApplyConfChange of node 0", func(side int, c core) error {
		states[side] = c.ApplyConfChange(&pb.ConfChange{})
		return nil
	})
	if m.running() {
		s.sameConfStates(states)
	}
}

// sameConfStates compares the results of ApplyConfChange.
func (s *schedule) sameConfStates(states [2]*pb.ConfState) {
	var sum [2]fingerprint
	for side := range sum {
		sum[side].confState(states[side])
	}
	if sum[0] != sum[1] {
		s.differ("ApplyConfChange", states[0], states[1])
	}
}

// isChange reports whether an entry changes the configuration; types of later versions do not.
func isChange(e *pb.Entry) bool {
	return e.GetType() == pb.EntryConfChange || e.GetType() == pb.EntryConfChangeV2
}

// decode reads a configuration change, or returns nil if the data is no configuration change.
func decode(e *pb.Entry) pb.ConfChangeI {
	if e.GetType() == pb.EntryConfChange {
		cc := &pb.ConfChange{}
		if proto.Unmarshal(e.GetData(), cc) != nil {
			return nil
		}
		return cc
	}
	cc := &pb.ConfChangeV2{}
	if proto.Unmarshal(e.GetData(), cc) != nil {
		return nil
	}
	return cc
}

// fits reports whether a change can be applied. Hosts that decide by fits all decide alike, because
// all have the same history.
func fits(c tracker.Config, cc *pb.ConfChangeV2) bool {
	t := tracker.MakeProgressTracker(1, 0)
	t.Config = c.Clone()
	for id := range c.Voters.IDs() {
		t.Progress[id] = &tracker.Progress{}
	}
	for id := range c.Learners {
		t.Progress[id] = &tracker.Progress{IsLearner: true}
	}
	for id := range c.LearnersNext {
		t.Progress[id] = &tracker.Progress{}
	}
	changer := confchange.Changer{Tracker: t, LastIndex: 1}
	var err error
	if cc.LeaveJoint() {
		_, _, err = changer.LeaveJoint()
	} else if auto, joint := cc.EnterJoint(); joint {
		_, _, err = changer.EnterJoint(auto, cc.Changes...)
	} else {
		_, _, err = changer.Simple(cc.Changes...)
	}
	return err == nil
}
