// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// confAt is a configuration, in force from an index on.
type confAt struct {
	index uint64
	conf  *pb.ConfState
}

func isJoint(c *pb.ConfState) bool { return len(c.GetVotersOutgoing()) > 0 }

// sameConf reports whether two configurations have the same members in the same order.
func sameConf(a, b *pb.ConfState) bool {
	return slices.Equal(a.GetVoters(), b.GetVoters()) && slices.Equal(a.GetVotersOutgoing(), b.GetVotersOutgoing()) &&
		slices.Equal(a.GetLearners(), b.GetLearners()) && slices.Equal(a.GetLearnersNext(), b.GetLearnersNext()) && a.GetAutoLeave() == b.GetAutoLeave()
}

// confString lists the members: voters, and if there are any, outgoing voters,
// learners and learners to be.
func confString(c *pb.ConfState) string {
	str := fmt.Sprint(c.GetVoters())
	if isJoint(c) {
		str += fmt.Sprintf("&&%v auto %v", c.GetVotersOutgoing(), c.GetAutoLeave())
	}
	if len(c.GetLearners())+len(c.GetLearnersNext()) > 0 {
		str += fmt.Sprintf(" learners %v next %v", c.GetLearners(), c.GetLearnersNext())
	}
	return str
}

func changeString(cc pb.ConfChangeI) string {
	v2 := cc.AsV2()
	return fmt.Sprintf("%s %s", v2.GetTransition(), pb.ConfChangesToString(v2.GetChanges()))
}

// confOf turns a configuration in the tracker's terms into the stored form.
func confOf(c tracker.Config, _ map[uint64]tracker.Progress) *pb.ConfState {
	ids := func(m map[uint64]struct{}) []uint64 { return slices.Sorted(maps.Keys(m)) }
	return &pb.ConfState{Voters: c.Voters[0].Slice(), VotersOutgoing: c.Voters[1].Slice(),
		Learners: ids(c.Learners), LearnersNext: ids(c.LearnersNext), AutoLeave: &c.AutoLeave}
}
