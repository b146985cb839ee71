// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// TestLongTailIsRecovered: all lose power with a tail that is not known to be
// committed, of so many bytes that units of it come in far more answers than an
// election timeout has time for. Who wins goes on as long as answers bring
// something.
func TestLongTailIsRecovered(t *testing.T) {
	g := newGroup(t, 3)
	g.memory = 2 << 20
	for _, id := range g.ids() {
		g.start(id)
	}
	g.elect(1)
	g.propose(1, payload(0, 500))
	g.drop = func(m *pb.Message) bool {
		return m.GetType() == raft.MsgUnits || m.GetType() == pb.MsgAppResp
	}
	want := [][]byte{payload(0, 500)}
	for i := range 40 {
		want = append(want, payload(1+i, 1<<20))
		g.propose(1, want[1+i])
	}
	answers := 0
	g.drop = func(m *pb.Message) bool { // all answers but one in a tick
		if m.GetType() != raft.MsgUnits || m.GetContext()[0] != 'r' {
			return false
		}
		answers++
		return answers > 1
	}
	g.start(2)
	g.start(3)
	g.stop(1)
	for range 240 {
		answers = 0
		g.tick(1)
	}
	g.requireApplied(want, 2, 3)
}
