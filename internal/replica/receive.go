// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

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
		r.receiveSettings(m.From, b)
		return nil
	case wire.Health:
		r.placing.receive(m.From, b)
		return nil
	case wire.Attach:
		return r.receiveAttach(m.From, b)
	case wire.Query:
		return r.receiveQuery(m.From, b)
	case wire.Fill: // passes the messages of its class, which wait for it
		return r.receiveFill(m.From, b)
	case wire.Want:
		r.receiveWant(m.From, b)
		return nil
	case wire.Proposal:
		if r.crowded(m.From) {
			return fmt.Errorf("%w: node %d proposes; %d others have, and no more are listened to", ErrBadMessage, m.From, maxOrigins)
		}
	case wire.LogEnd:
		if !r.founding.belongs(m.From, b.First) {
			return nil
		}
	case wire.Raft:
		if !r.founding.belongs(m.From, b.First) || !r.agrees(m.From, b.Settings) {
			return nil
		}
	case wire.Named:
		if !r.founding.belongs(m.From, b.First) || !r.agrees(m.From, b.Settings) {
			return nil
		}
		r.heard[m.From] = r.ticks
		return r.receiveNamed(m, b)
	}
	r.heard[m.From] = r.ticks
	m, resolved, err := r.resolving.offer(m, r.now, r.cfg.Stopwatch)
	return errors.Join(err, r.resolved(m, resolved))
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
				r.fail(lost)
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
		if wire.AboutLeases(b.Message) && r.leasing == nil {
			return nil // a member with leases gets none from this one
		}
		if b.GetType() == pb.MsgTimeoutNow && r.stall.reason != nil {
			return nil // the leader tries another one
		}
		if b.GetType() == pb.MsgReadIndex && (r.follows() || r.tooEarly()) {
			return nil // whoever asks asks again; a follower's core would pass it on
		}
		r.repeats.answered(b.Message)
		r.acked(b.Message)
		r.catching.acked(b.Message, r.ticks)
		r.passOn(b.Message)
		r.step(b.Message)
	case wire.Proposal:
		return r.receiveProposal(m.From, b)
	case wire.Verdict:
		r.receiveVerdict(b)
	case wire.Lack:
		return r.receiveLack(m.From, b)
	case wire.LogEnd:
		r.receiveLogEnd(m.From, b)
	case wire.Transfer:
		r.receiveTransfer(b)
	default:
		return fmt.Errorf("%w: a %v does not belong here", ErrBadMessage, m.Kind())
	}
	return nil
}
