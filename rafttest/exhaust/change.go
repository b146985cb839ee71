// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"go.etcd.io/raft/v3/confchange"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// changed returns the configuration after a change; nil if the change does not fit.
func changed(conf *pb.ConfState, cc pb.ConfChangeI) *pb.ConfState {
	t := tracker.MakeProgressTracker(1, 0)
	var err error
	if t.Config, t.Progress, err = confchange.Restore(confchange.Changer{Tracker: t, LastIndex: 1}, conf); err != nil {
		return nil
	}
	changer, v2 := confchange.Changer{Tracker: t, LastIndex: 1}, cc.AsV2()
	auto, joint := v2.EnterJoint()
	switch {
	case v2.LeaveJoint():
		t.Config, t.Progress, err = changer.LeaveJoint()
	case joint:
		t.Config, t.Progress, err = changer.EnterJoint(auto, v2.Changes...)
	default:
		t.Config, t.Progress, err = changer.Simple(v2.Changes...)
	}
	if err != nil {
		return nil
	}
	return t.ConfState()
}
