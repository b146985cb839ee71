// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// urgency returns how urgent it is that a member catches up, if just the complete members can vote now. In a joint
// configuration, the half with the fewer members to spare counts. needed says that the group commits nothing until
// the member has caught up.
func urgency(conf *pb.ConfState, of uint64, complete []uint64) (u wire.Urgency, needed bool) {
	u = wire.UrgencyLearner
	for _, half := range [][]uint64{conf.GetVoters(), conf.GetVotersOutgoing()} {
		if !slices.Contains(half, of) {
			continue
		}
		have, quorum := 0, len(half)/2+1
		for _, id := range half {
			if id != of && slices.Contains(complete, id) {
				have++
			}
		}
		needed = needed || have < quorum
		if have <= quorum {
			u = wire.UrgencyEdge
		} else if u == wire.UrgencyLearner {
			u = wire.UrgencyVoter
		}
	}
	return u, needed
}
