// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package holdings

import (
	"go.etcd.io/raft/v3/confchange"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

// Sets returns the voter sets of a configuration.
func Sets(conf *pb.ConfState) [][]uint64 {
	if out := conf.GetVotersOutgoing(); len(out) > 0 {
		return [][]uint64{conf.GetVoters(), out}
	}
	return [][]uint64{conf.GetVoters()}
}

// Majority counts the voters that are so, and reports whether they are more than half, or nobody votes.
func Majority(voters []uint64, so func(id uint64) bool) (n int, most bool) {
	for _, id := range voters {
		if so(id) {
			n++
		}
	}
	return n, n > len(voters)/2 || len(voters) == 0
}

// Counting returns the sets of voters whose majorities a node that codes needs: those of the
// configuration in force and, if more than one change in its log stands behind index from,
// and so is not in force, those after each change.
func Counting(conf *pb.ConfState, log []*pb.Entry, from uint64) [][]uint64 {
	now := Sets(conf)
	count, coming := now, 0
	for _, e := range log {
		if e.GetType() == pb.EntryNormal || e.GetIndex() <= from {
			continue
		}
		cc, err := Change(e)
		if err != nil {
			break
		}
		coming++
		if next := Becomes(conf, cc); next != nil {
			conf = next
			count = append(count, Sets(conf)...)
		}
	}
	if coming < 2 {
		return now
	}
	return count
}

// Change returns the change of members in an entry.
func Change(e *pb.Entry) (*pb.ConfChangeV2, error) {
	if e.GetType() == pb.EntryConfChange {
		cc := &pb.ConfChange{}
		err := proto.Unmarshal(e.GetData(), cc)
		return cc.AsV2(), err
	}
	cc := &pb.ConfChangeV2{}
	err := proto.Unmarshal(e.GetData(), cc)
	return cc, err
}

// Becomes returns the configuration after a change; nil if the change does not fit.
func Becomes(conf *pb.ConfState, cc *pb.ConfChangeV2) *pb.ConfState {
	t := tracker.MakeProgressTracker(1, 0)
	var err error
	if t.Config, t.Progress, err = confchange.Restore(confchange.Changer{Tracker: t, LastIndex: 1}, conf); err != nil {
		return nil
	}
	change := confchange.Changer{Tracker: t, LastIndex: 1}
	if auto, joint := cc.EnterJoint(); cc.LeaveJoint() {
		t.Config, _, err = change.LeaveJoint()
	} else if joint {
		t.Config, _, err = change.EnterJoint(auto, cc.Changes...)
	} else {
		t.Config, _, err = change.Simple(cc.Changes...)
	}
	if err != nil {
		return nil
	}
	return t.ConfState()
}
