// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// A voter is the more urgent if its group stops at the next failure.
func TestUrgencyCountsWhatIsLeftOfTheQuorum(t *testing.T) {
	five := &pb.ConfState{Voters: []uint64{1, 2, 3, 4, 5}, Learners: []uint64{6}}
	joint := &pb.ConfState{Voters: []uint64{1, 2, 3, 4, 5}, VotersOutgoing: []uint64{1, 2, 5}}
	for name, c := range map[string]struct {
		conf     *pb.ConfState
		of       uint64
		complete []uint64
		want     wire.Urgency
		needed   bool
	}{
		"three, one is dead, and one lags":    {&pb.ConfState{Voters: []uint64{1, 2, 3}}, 3, []uint64{1}, wire.UrgencyEdge, true},
		"joint, a half lacks its quorum":      {joint, 5, []uint64{1, 3, 4}, wire.UrgencyEdge, true},
		"three of three, but for one":         {&pb.ConfState{Voters: []uint64{1, 2, 3}}, 3, []uint64{1, 2}, wire.UrgencyEdge, false},
		"five, four are complete":             {five, 5, []uint64{1, 2, 3, 4}, wire.UrgencyVoter, false},
		"five, three are complete":            {five, 5, []uint64{1, 2, 3}, wire.UrgencyEdge, false},
		"five, the fourth is the learner":     {five, 5, []uint64{1, 2, 3, 6}, wire.UrgencyEdge, false},
		"the member itself does not count":    {five, 5, []uint64{1, 2, 3, 5}, wire.UrgencyEdge, false},
		"a learner":                           {five, 6, []uint64{1, 2, 3}, wire.UrgencyLearner, false},
		"a stranger, or a node without state": {&pb.ConfState{}, 6, []uint64{1, 2, 3}, wire.UrgencyLearner, false},
		"joint, the smaller half counts":      {joint, 5, []uint64{1, 2, 3, 4}, wire.UrgencyEdge, false},
	} {
		u, needed := urgency(c.conf, c.of, c.complete)
		require.Equal(t, c.want, u, name)
		require.Equal(t, c.needed, needed, name)
	}
}
