// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/names"
	"github.com/weftraft/weft/internal/wire"
)

// newZones returns how a leader chooses relays. A member of an earlier version passes nothing on if it has no zone, and takes no runs.
func newZones(p *placing) *names.Zones {
	n := p.cfg.Names
	relayed := func(peer uint64) bool {
		return n.Relayed(peer) && (n.Zone(peer) != "" || n.Runs != nil && n.Runs(peer))
	}
	return &names.Zones{
		Own: p.cfg.Names.Zone(p.cfg.ID),
		Of:  p.cfg.Names.Zone,
		Fit: func(peer uint64) bool {
			heard, ok := p.heard[peer]
			return ok && p.ticks-heard <= 3*uint64(p.cfg.HeartbeatTick) && members.Has(p.host.conf, peer) && relayed(peer)
		},
		Voter: func(peer uint64) bool { return members.Votes(p.host.conf, peer) },
		Weight: func(peer uint64) int {
			weight, _ := p.weightOf(peer)
			return weight
		},
		Learners: func() bool { return len(p.host.conf.GetLearners()) > 0 },
	}
}

// relay passes data of the leader on to members that want it. A nil relay is of a node that no leader takes for one:
// it has no zone, and the group no learners.
type relay struct {
	*facts
	post func(to uint64, body wire.Body)
	names.Relay
}

func newRelay(f *facts, post func(to uint64, body wire.Body)) *relay {
	return &relay{facts: f, post: post, Relay: names.Relay{Patience: uint64(f.cfg.ElectionTick)}}
}

// want takes a member's question for data that the leader has sent this node.
func (r *relay) want(from uint64, w wire.Want) {
	r.Want(from, w, r.ticks)
	r.answer()
}

// passOn has a relay take entries that the leader sends this node. There is a relay once the group has learners.
func (r *Replica) passOn(m *pb.Message) {
	if m.GetType() != pb.MsgApp {
		return
	}
	if r.relay == nil && r.cfg.Names != nil && r.cfg.Names.Zone != nil && len(r.host.conf.GetLearners()) > 0 {
		r.relay = newRelay(&r.facts, r.post)
	}
	r.relay.saw(m)
}

// saw takes entries that the leader sends this node.
func (r *relay) saw(m *pb.Message) {
	if r != nil {
		r.Saw(m.Entries, r.ticks)
		r.answer()
	}
}

// answer gives data to the members that want it, as far as the data is here.
func (r *relay) answer() {
	if r != nil {
		for _, a := range r.Answers(r.ticks) {
			r.post(a.To, a.Body)
		}
	}
}
