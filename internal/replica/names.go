// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/names"
	"github.com/weftraft/weft/internal/wire"
)

// Names has a leader send names in the place of data that came from the receiver, or that another member
// in the receiver's zone passes on: see package names. Every replica takes names, and passes data on.
type Names struct {
	// Announced reports whether a peer has announced that it takes names of its own batches; nil means that
	// none does. It does not wait.
	Announced func(peer uint64) bool
	// Zone returns the zone of a node, this one or another, empty if it is not known; nil means that there are no
	// relays. Relayed reports whether a peer has announced that it takes names with relays, and passes data
	// on. Neither waits.
	Zone    func(node uint64) string
	Relayed func(peer uint64) bool

	// The next fields are for simulators; each may be nil. Named sees a message with names and its
	// original, as it leaves; Joined sees a message with names and the result, as it is joined. Forget
	// reports whether a batch looked for is to be missing.
	Named, Joined func(m wire.Message, whole wire.Raft)
	Forget        func() bool
}

// NameCounts count since the start of a replica.
type NameCounts struct {
	names.GiverCounts
	names.TakerCounts
	names.RelayCounts
}

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
}

// nameGiver is the Bundler of a replica that gives names.
type nameGiver struct {
	r *Replica
	names.Giver
}

func newNameGiver(r *Replica) *nameGiver {
	g := &nameGiver{r: r, Giver: names.Giver{Announced: r.cfg.Names.Announced, Batch: plainBatchOf, Whole: func(data []byte) bool {
		_, coded := ecraft.Detect(data)
		return !coded
	}}}
	if r.cfg.Names.Zone != nil {
		g.Zones = newZones(r)
	}
	return g
}

// plainBatchOf returns the id of the batch that is an entry's data, if the batch is a node's, and the
// entry is not coded.
func plainBatchOf(node uint64, data []byte) (wire.CommandID, bool) {
	env, _, err := decodeHead(data)
	if err != nil || env.id.Origin != node {
		return wire.CommandID{}, false
	}
	_, coded := ecraft.Detect(data)
	return env.id, !coded
}

// Bundle implements Bundler.
func (g *nameGiver) Bundle(turn []wire.Message, _ time.Duration) (send, dropped []wire.Message) {
	g.Turn(turn)
	for i, m := range turn {
		turn[i] = g.Name(m, g.r.ticks)
		if _, ok := turn[i].Body.(wire.Named); ok && g.r.cfg.Names.Named != nil {
			g.r.cfg.Names.Named(turn[i], m.Body.(wire.Raft))
		}
	}
	return turn, nil
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

// nameTaker is the Resolver of a replica that has met names.
type nameTaker struct {
	r *Replica
	names.Taker
}

// receiveNamed takes a message with names to its lane: joined, or to wait.
func (r *Replica) receiveNamed(m wire.Message, n wire.Named) error {
	if r.resolving.resolver == nil {
		hedge := uint64(max(2, r.cfg.ElectionTick/5))
		r.resolving.resolver = &nameTaker{r, names.Taker{Self: r.cfg.ID, Patience: uint64(r.cfg.ElectionTick), Hedge: hedge}}
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

// Resolve implements Resolver.
func (t *nameTaker) Resolve(m wire.Message, _ time.Duration) (wire.Message, Resolution) {
	n, ok := m.Body.(wire.Named)
	if !ok {
		return m, asResolved
	}
	joined, ok, waits := t.Taker.Resolve(n, t.r.ticks)
	switch {
	case waits:
		return m, asUnresolved
	case !ok:
		return m, asDropped
	}
	t.r.cfg.Names.joined(m, joined)
	m.Body = joined
	return m, asResolved
}

func (n *Names) joined(m wire.Message, whole wire.Raft) {
	if n != nil && n.Joined != nil {
		n.Joined(m, whole)
	}
}

func (n *Names) forgets() bool { return n != nil && n.Forget != nil && n.Forget() }
