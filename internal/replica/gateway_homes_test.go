// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// A learner follows a leader that it does not hear, and a removed one does so without end. A gateway that
// has nothing but queries leaves it all the same.
func TestGatewayLeavesALearnerThatHearsNoLeader(t *testing.T) {
	for what, cutOff := range map[string]func(c *gated){
		"cut off": func(c *gated) {
			c.lose = func(m wire.Message) bool { return m.From == 4 && m.To != 9 || m.To == 4 && m.From != 9 }
		},
		"removed": func(c *gated) {
			require.NoError(c.t, c.change(1, single(pb.ConfChangeRemoveNode, 4)).Err)
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := newGated(t, nil, 1, 2, 3)
			c.elect(1)
			c.add(4, nil)
			require.NoError(t, c.change(1, single(pb.ConfChangeAddLearnerNode, 4)).Err)
			c.g.SetHomes([]uint64{4}, nil)
			c.run(60)
			require.EqualValues(t, 4, c.g.Status().Home)
			require.EqualValues(t, 1, c.g.Status().Lead)
			c.g.SetHomes(c.ids(), nil)
			cutOff(c)
			c.run(60)
			require.NotEqualValues(t, 4, c.g.Status().Home)
			require.EqualValues(t, 1, c.g.Status().Lead)
		})
	}
}
