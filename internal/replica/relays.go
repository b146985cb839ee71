// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/names"
	"github.com/weftraft/weft/internal/wire"
)

// newZones returns how a leader chooses relays.
func newZones(r *Replica) *names.Zones {
	return &names.Zones{
		Own: r.cfg.Names.Zone(r.cfg.ID),
		Of:  r.cfg.Names.Zone,
		Fit: func(peer uint64) bool {
			heard, ok := r.heard[peer]
			return ok && r.ticks-heard <= 3*uint64(r.cfg.HeartbeatTick) && r.isMember(peer) && r.cfg.Names.Relayed(peer)
		},
		Voter: func(peer uint64) bool { return isVoter(r.host.conf, peer) },
		Weight: func(peer uint64) int {
			weight, _ := r.placing.weightOf(peer)
			return weight
		},
	}
}

func isVoter(c *pb.ConfState, id uint64) bool {
	return slices.Contains(c.GetVoters(), id) || slices.Contains(c.GetVotersOutgoing(), id)
}

func (r *Replica) isMember(id uint64) bool {
	c := r.host.conf
	return isVoter(c, id) || slices.Contains(c.GetLearners(), id) || slices.Contains(c.GetLearnersNext(), id)
}

func newRelay(cfg Config) *names.Relay { return &names.Relay{Patience: uint64(cfg.ElectionTick)} }

// receiveWant takes a member's question for data that the leader has sent this node. Of a node that is no member, as
// far as this one knows, the leader is to be asked.
func (r *Replica) receiveWant(from uint64, w wire.Want) {
	if !r.isMember(from) {
		r.post(from, wire.Fill{Term: w.Term, Number: w.Number})
		return
	}
	if r.relay == nil {
		r.relay = newRelay(r.cfg)
	}
	r.relay.Want(from, w, r.ticks)
	r.answerWants()
}

// passOn gives entries that the leader sends this node to members that want them.
func (r *Replica) passOn(m *pb.Message) {
	if r.relay != nil && m.GetType() == pb.MsgApp {
		r.relay.Saw(m.Entries, r.ticks)
		r.answerWants()
	}
}

func (r *Replica) answerWants() {
	if r.relay != nil {
		for _, a := range r.relay.Answers(r.ticks) {
			r.post(a.To, a.Body)
		}
	}
}
