// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
)

// Receive lets a message of a peer arrive. The transport vouches for m.From.
// What is wrong with a message is returned, wraps ErrBadMessage, is counted and
// has no effect. Pieces of snapshots are the driver's.
func (r *Replica) Receive(m wire.Message) error {
	if r.err != nil {
		return r.err
	}
	r.count.MessagesIn++
	err := r.receive(m)
	if err != nil {
		r.count.BadMessages++
	}
	return err
}

func (r *Replica) receive(m wire.Message) error {
	if m.Group != r.cfg.Group || m.To != r.cfg.ID || m.From == r.cfg.ID || m.From == 0 || m.Body == nil {
		return fmt.Errorf("%w: it goes from node %d to node %d in group %d; this is node %d in group %d", ErrBadMessage, m.From, m.To, m.Group, r.cfg.ID, r.cfg.Group)
	}
	switch b := m.Body.(type) { // a stranger does not count as heard from
	case wire.First:
		r.founding.receive(m.From, b)
		return nil
	case wire.Settings:
		r.settings.receive(m.From, b)
		return nil
	case wire.Health:
		r.placing.receive(m.From, b)
		return nil
	case wire.Attach:
		if members.Has(r.host.conf, m.From) {
			return fmt.Errorf("%w: member %d attaches as a gateway", ErrBadMessage, m.From)
		}
		r.atHome().receive(m.From, b)
		return nil
	case wire.Query:
		return r.receiveQuery(m.From, b)
	case wire.Fill: // passes the messages of its class, which wait for it
		err := r.naming.filled(m.From, b)
		r.Resolve()
		return err
	case wire.Want:
		r.naming.wanted(m.From, b)
		return nil
	case wire.Proposal:
		if !members.Has(r.host.conf, m.From) { // of a gateway, mostly: there may be any number, over time
			if r.inbox.crowded(m.From) {
				return fmt.Errorf("%w: node %d proposes; %d others have, and no more are listened to", ErrBadMessage, m.From, maxOrigins)
			}
			return r.offered(m)
		}
	case wire.LogEnd:
		if !r.founding.belongs(m.From, b.First) {
			return nil
		}
	case wire.Raft:
		if !r.founding.belongs(m.From, b.First) || !r.settings.agrees(m.From, b.Settings) {
			return nil
		}
	case wire.Named:
		if !r.founding.belongs(m.From, b.First) || !r.settings.agrees(m.From, b.Settings) {
			return nil
		}
		r.heard[m.From] = r.ticks
		return r.receiveNamed(m, b)
	}
	r.heard[m.From] = r.ticks
	return r.offered(m)
}

// offered takes a message to the resolve stage.
func (r *Replica) offered(m wire.Message) error {
	m, resolved, err := r.resolving.offer(m, r.now, r.cfg.Stopwatch)
	return errors.Join(err, r.resolved(m, resolved))
}

// receiveNamed takes a message with names to its lane: joined, or to wait.
func (r *Replica) receiveNamed(m wire.Message, n wire.Named) error {
	if r.resolving.resolver == nil {
		r.naming.startTaking()
		r.resolving.resolver = &r.naming
	}
	t := r.naming.taker
	if t == nil {
		return fmt.Errorf("%w: this node resolves messages in another way", ErrBadMessage)
	}
	joined, ok, ask, err := t.Arrive(m.From, n, r.naming.kept, r.ticks)
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

// arrived lets a message arrive that is through the resolve stage.
func (r *Replica) arrived(m wire.Message) error {
	switch b := m.Body.(type) {
	case wire.Raft:
		if err := checkRaft(m.From, m.To, b.Message); err != nil {
			return err
		}
		err := r.checkLog(b.Message)
		if b.GetType() == pb.MsgHeartbeat && b.GetTerm() >= r.state.Term && !r.leads() {
			if lost := r.losses.heartbeat(b.Message, err == nil); lost != nil {
				r.Fail(lost)
			}
		}
		if err != nil {
			return err
		}
		if r.losses.told(b.Message) {
			return nil
		}
		if wire.AboutUnits(b.Message) && r.coding.core == nil {
			return nil // a member that codes has not heard that this one does not
		}
		if wire.AboutLeases(b.Message) && r.leasing.core == nil {
			return nil // a member with leases gets none from this one
		}
		if b.GetType() == pb.MsgTimeoutNow && r.stalled != nil {
			return nil // the leader tries another one
		}
		switch b.GetType() {
		case pb.MsgPreVote:
			r.rivals.asked(b.Message)
		case pb.MsgPreVoteResp:
			if r.rivals.yields {
				return nil
			}
		}
		if b.GetType() == pb.MsgReadIndex {
			r.audience.asks(m.From)
		}
		if b.GetType() == pb.MsgReadIndex && (r.follows() || r.tooEarly()) {
			return nil // whoever asks asks again; a follower's core would pass it on
		}
		r.repeats.answered(b.Message)
		r.naming.acked(b.Message)
		r.catching.acked(b.Message)
		if b.GetType() == pb.MsgAppResp && b.GetReject() {
			r.holding.letGo(m.From) // it lacks entries
		}
		r.naming.saw(b.Message)
		if !r.intake.admits(b.Message) {
			return nil // sent again when this node can write
		}
		r.step(b.Message)
	case wire.Proposal:
		r.audience.asks(m.From)
		return r.inbox.receive(m.From, b)
	case wire.Verdict:
		r.outbox.receiveVerdict(b)
	case wire.Lack:
		gone, err := r.naming.lacked(m.From, b)
		if gone {
			r.Unreachable(m.From)
		}
		return err
	case wire.LogEnd:
		r.receiveLogEnd(m.From, b)
	case wire.Transfer:
		r.drain()
		r.moves.receive(b)
	default:
		return fmt.Errorf("%w: a %v does not belong here", ErrBadMessage, m.Kind())
	}
	return nil
}

// checkLog reports a contradiction to this node's log.
func (r *Replica) checkLog(m *pb.Message) error {
	var index uint64
	switch m.GetType() {
	case pb.MsgHeartbeat:
		r.drain() // an append in this turn may have cut the log, or made the log longer
		index = m.GetCommit()
	case pb.MsgAppResp:
		if index = m.GetIndex(); index <= r.last || m.GetReject() {
			return nil // a leader never cuts its log
		}
		r.drain()
	}
	switch {
	case index <= r.last, m.GetTerm() < r.state.Term:
		return nil
	case m.GetType() == pb.MsgAppResp && (!r.leads() || m.GetTerm() != r.state.Term):
		return nil // to a leader that has stopped since, and lost its unwritten entries
	}
	return fmt.Errorf("%w: %v from node %d speaks of index %d, this log ends at %d: was this node's log lost? then replace the node", ErrBadMessage, m.GetType(), m.GetFrom(), index, r.last)
}

// Resolve asks the Resolver again for the messages that wait. Tick does so, too.
func (r *Replica) Resolve() {
	if len(r.resolving.lanes) == 0 || r.err != nil {
		return
	}
	r.naming.askLeaders()
	r.resolving.again(r.now, r.cfg.Stopwatch, func(m wire.Message, resolved Resolution) {
		if r.resolved(m, resolved) != nil {
			r.count.BadMessages++
		}
	})
}

// resolved takes a message that is through the stage.
func (r *Replica) resolved(m wire.Message, resolved Resolution) error {
	switch resolved {
	case asResolved:
		return r.arrived(m)
	case asDropped:
		r.Unreachable(m.From)
	}
	return nil
}
