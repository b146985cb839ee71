// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/names"
	"github.com/weftraft/weft/internal/wire"
)

// naming is a replica's part in names: as a leader it gives names, as a follower it takes them, and as a relay it passes data of
// the leader on to members that want it. It is the Bundler of a replica that gives names, and the Resolver of one that has met
// names.
type naming struct {
	*facts
	outbox *outbox // has the batches that this node has sent to a leader
	post   func(to uint64, body wire.Body)

	giver *names.Giver // nil: this node gives none
	taker *names.Taker // nil: no name has come
	relay *names.Relay // nil: this node has no zone, the group has had no learners, and no member has wanted data
}

func newNaming(p *placing, outbox *outbox, post func(to uint64, body wire.Body)) naming {
	n, cfg := naming{facts: p.facts, outbox: outbox, post: post}, p.cfg.Names
	if cfg == nil {
		return n
	}
	if p.cfg.Bundle == nil {
		n.giver = &names.Giver{Announced: cfg.Announced, Batch: plainBatchOf, Whole: isPlain}
		if cfg.Zone != nil {
			n.giver.Zones, n.giver.Runs = newZones(p), cfg.Runs
		}
	}
	if cfg.Zone != nil && cfg.Zone(p.cfg.ID) != "" {
		n.startRelay()
	}
	return n
}

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

// plainBatchOf returns the id of the batch that is an entry's data, if the batch is a node's, and the
// entry is not coded.
func plainBatchOf(node uint64, data []byte) (wire.CommandID, bool) {
	env, _, err := decodeHead(data)
	if err != nil || env.id.Origin != node {
		return wire.CommandID{}, false
	}
	return env.id, isPlain(data)
}

// isPlain reports whether an entry is not coded.
func isPlain(data []byte) bool {
	_, coded := ecraft.Detect(data)
	return !coded
}

// Bundle implements Bundler.
func (n *naming) Bundle(turn []wire.Message, _ time.Duration) (send, dropped []wire.Message) {
	if n.giver.Idle() {
		return turn, nil
	}
	n.giver.Turn(turn)
	for i, m := range turn {
		turn[i] = n.giver.Name(m, n.ticks)
		if _, ok := turn[i].Body.(wire.Named); ok && n.cfg.Names.Named != nil {
			n.cfg.Names.Named(turn[i], m.Body.(wire.Raft))
		}
	}
	return turn, nil
}

// acked tells the giver what a follower has.
func (n *naming) acked(m *pb.Message) {
	if n.giver != nil && m.GetType() == pb.MsgAppResp && !m.GetReject() {
		n.giver.Acked(m.GetFrom(), m.GetTerm(), m.GetIndex())
	}
}

// lacked answers a follower that cannot join a message. gone says that the message is lost to the follower.
func (n *naming) lacked(from uint64, l wire.Lack) (gone bool, err error) {
	if n.giver == nil {
		return false, nil // of an earlier life, which gave names
	}
	fill, ok, err := n.giver.Lack(from, l, n.ticks)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrBadMessage, err)
	}
	if ok {
		n.post(from, fill)
	}
	return ok && fill.Data == nil, nil
}

// startTaking has the node take names from now on.
func (n *naming) startTaking() {
	hedge := uint64(max(2, n.cfg.ElectionTick/5))
	n.taker = &names.Taker{Self: n.cfg.ID, Patience: uint64(n.cfg.ElectionTick), Hedge: hedge}
}

// Resolve implements Resolver.
func (n *naming) Resolve(m wire.Message, _ time.Duration) (wire.Message, Resolution) {
	named, ok := m.Body.(wire.Named)
	if !ok {
		return m, asResolved
	}
	joined, ok, waits := n.taker.Resolve(named, n.ticks)
	switch {
	case waits:
		return m, asUnresolved
	case !ok:
		return m, asDropped
	}
	n.cfg.Names.joined(m, joined)
	m.Body = joined
	return m, asResolved
}

// kept returns the entry of a batch that this node has sent to a leader, while the batch is
// under way.
func (n *naming) kept(boot, sequence uint64) []byte {
	b := n.outbox.find(sequence)
	if b == nil || boot != n.outbox.boot || b.conf != nil || n.cfg.Names.forgets() {
		return nil
	}
	return b.entry
}

// filled takes data that a message waits for.
func (n *naming) filled(from uint64, f wire.Fill) error {
	if n.taker == nil {
		return nil // of an earlier life
	}
	if err := n.taker.Fill(from, f, n.ticks); err != nil {
		return fmt.Errorf("%w: %w", ErrBadMessage, err)
	}
	return nil
}

// lost notes a dropped message or a broken connection to a peer.
func (n *naming) lost(peer uint64) {
	if n.taker != nil {
		n.taker.Lost(peer)
		n.askLeaders()
	}
}

// askLeaders asks for data that no relay brings.
func (n *naming) askLeaders() {
	if n.taker != nil {
		for _, ask := range n.taker.Overdue(n.ticks) {
			n.post(ask.To, ask.Body)
		}
	}
}

// startRelay has the node pass data on from now on.
func (n *naming) startRelay() {
	if n.relay == nil {
		n.relay = &names.Relay{Patience: uint64(n.cfg.ElectionTick)}
	}
}

// saw takes entries that the leader sends this node. There is a relay once the group has learners.
func (n *naming) saw(m *pb.Message) {
	if m.GetType() != pb.MsgApp {
		return
	}
	if cfg := n.cfg.Names; cfg != nil && cfg.Zone != nil && len(n.host.conf.GetLearners()) > 0 {
		n.startRelay()
	}
	if n.relay != nil {
		n.relay.Saw(m.Entries, n.ticks)
		n.answer()
	}
}

// wanted takes a member's question for data that the leader has sent this node. A node that is no member, as
// far as this one knows, is to ask the leader.
func (n *naming) wanted(from uint64, w wire.Want) {
	if !members.Has(n.host.conf, from) {
		n.post(from, wire.Fill{Term: w.Term, Number: w.Number})
		return
	}
	n.startRelay()
	n.relay.Want(from, w, n.ticks)
	n.answer()
}

// answer gives data to the members that want it, as far as the data is here.
func (n *naming) answer() {
	if n.relay != nil {
		for _, a := range n.relay.Answers(n.ticks) {
			n.post(a.To, a.Body)
		}
	}
}

// counts returns what the replica has done with names.
func (n *naming) counts() (c NameCounts) {
	if n.giver != nil {
		c.GiverCounts = n.giver.Counts
	}
	if n.taker != nil {
		c.TakerCounts = n.taker.Counts
	}
	if n.relay != nil {
		c.RelayCounts = n.relay.Counts
	}
	return c
}
