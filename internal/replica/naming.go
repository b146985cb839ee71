// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
)

// NameCounts returns what the replica has done with names.
func (r *Replica) NameCounts() (c NameCounts) {
	if g, ok := r.sends.bundler.(*nameGiver); ok {
		c.GiverCounts = g.Counts
	}
	if t, ok := r.resolving.resolver.(*nameTaker); ok {
		c.TakerCounts = t.Counts
	}
	if r.relay != nil {
		c.RelayCounts = r.relay.Counts
	}
	return c
}

func (r *Replica) countNames(to *Counters) {
	c := r.NameCounts()
	to.NamedBytes, to.RelayedBytes, to.PassedBytes, to.NamesLacked = c.Saved, c.Relayed, c.PassedBytes, c.Filled+c.Gone
	to.JoinedAppends = r.holding.joined
}

// acked tells the giver of names what a follower has.
func (r *Replica) acked(m *pb.Message) {
	if g, ok := r.sends.bundler.(*nameGiver); ok && m.GetType() == pb.MsgAppResp && !m.GetReject() {
		g.Acked(m.GetFrom(), m.GetTerm(), m.GetIndex())
	}
}

// receiveLack answers a follower that cannot join a message.
func (r *Replica) receiveLack(from uint64, l wire.Lack) error {
	g, ok := r.sends.bundler.(*nameGiver)
	if !ok {
		return nil // of an earlier life, which gave names
	}
	fill, ok, err := g.Lack(from, l, r.ticks)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadMessage, err)
	}
	if ok {
		r.post(from, fill)
		if fill.Data == nil {
			r.Unreachable(from)
		}
	}
	return nil
}

// receiveNamed takes a message with names to its lane: joined, or to wait.
func (r *Replica) receiveNamed(m wire.Message, n wire.Named) error {
	if r.resolving.resolver == nil {
		r.resolving.resolver = newNameTaker(&r.facts)
	}
	t, ok := r.resolving.resolver.(*nameTaker)
	if !ok {
		return fmt.Errorf("%w: this node resolves messages in another way", ErrBadMessage)
	}
	joined, ok, ask, err := t.Arrive(m.From, n, r.keptBatch, r.ticks)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadMessage, err)
	}
	if ok {
		r.cfg.Names.joined(m, joined)
		m.Body = joined
	}
	m, resolved, err := r.resolving.offer(m, r.now, r.cfg.Stopwatch)
	if err != nil {
		t.Forget(n)
		return err
	}
	if ask != nil {
		r.post(ask.To, ask.Body)
	}
	return r.resolved(m, resolved)
}

// keptBatch returns the entry of a batch that this node has sent to a leader, while the batch is
// under way.
func (r *Replica) keptBatch(boot, sequence uint64) []byte {
	b := r.outbox.find(sequence)
	if b == nil || boot != r.outbox.boot || b.conf != nil || r.cfg.Names.forgets() {
		return nil
	}
	return b.entry
}

// receiveFill takes data that a message waits for.
func (r *Replica) receiveFill(from uint64, f wire.Fill) error {
	t, ok := r.resolving.resolver.(*nameTaker)
	if !ok {
		return nil // of an earlier life
	}
	err := t.Fill(from, f, r.ticks)
	r.Resolve()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadMessage, err)
	}
	return nil
}

// askLeaders asks for data that no relay brings.
func (r *Replica) askLeaders() {
	if t, ok := r.resolving.resolver.(*nameTaker); ok {
		for _, ask := range t.Overdue(r.ticks) {
			r.post(ask.To, ask.Body)
		}
	}
}

// receiveWant takes a member's question for data that the leader has sent this node. A node that is no member, as
// far as this one knows, is to ask the leader.
func (r *Replica) receiveWant(from uint64, w wire.Want) {
	if !members.Has(r.host.conf, from) {
		r.post(from, wire.Fill{Term: w.Term, Number: w.Number})
		return
	}
	if r.relay == nil {
		r.relay = newRelay(&r.facts, r.post)
	}
	r.relay.want(from, w)
}
