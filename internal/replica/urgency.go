// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// Urgency returns how urgent it is that this node follows a leader's offer, by the members of its own state. The
// offer names the members that are complete. A node without a state is on its way to become a learner.
func (r *Replica) Urgency(from uint64, o wire.Offer) wire.Urgency {
	u, _ := urgency(r.host.conf, r.cfg.ID, append(slices.Clone(o.Sources), from))
	return u
}

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
