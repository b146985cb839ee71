// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
)

// The leader that coded what is committed is gone, and a member is added that is
// not there yet: exactly half of the voters to come is alive. A majority of them
// has one of the living, which therefore must hold all.
func TestMemberIsAddedWhileOneIsDown(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			g := newGroup(t, n)
			g.elect(1)
			for i := range 10 {
				g.propose(1, payload(i, 1000+i))
			}
			for id := 1; id <= (n-1)/2; id++ {
				g.stop(uint64(id))
			}
			g.tick(40)
			lead := g.nodes[uint64(n)].rn.BasicStatus().Lead
			require.NotZero(t, lead)
			fresh := uint64(n + 1)
			change := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(fresh)}}}
			require.NoError(t, g.nodes[lead].rn.ProposeConfChange(change))
			g.tick(10)
			require.Contains(t, g.nodes[lead].conf.GetVoters(), fresh)
		})
	}
}
