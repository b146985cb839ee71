// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// follower takes entries, heartbeats and snapshots from the leader of its term, and
// waits. The leader is raft.lead; a follower has no field of its own.
type follower struct {
	*raft
}

func (f *follower) state() StateType { return StateFollower }

func (f *follower) tick() { f.tickTowardsElection() }

func (f *follower) step(m *pb.Message) error {
	switch m.GetType() {
	case pb.MsgApp:
		f.hearFrom(m)
		return f.handleAppend(m)
	case pb.MsgHeartbeat:
		f.hearFrom(m)
		return f.handleHeartbeat(m)
	case pb.MsgSnap:
		f.hearFrom(m)
		return f.handleSnapshot(m)
	case pb.MsgProp:
		if f.lead == None || f.cfg.DisableProposalForwarding {
			return ErrProposalDropped
		}
		f.forward(m)
	case pb.MsgReadIndex, pb.MsgTransferLeader:
		if f.lead != None {
			f.forward(m)
		}
	case pb.MsgReadIndexResp:
		if n := len(m.GetEntries()); n != 1 {
			f.cfg.Logger.Errorf("raft: node %x drops MsgReadIndexResp from %x with %d entries; it must have one", f.id, m.GetFrom(), n)
			return nil
		}
		f.readConfirmed(m, m.GetIndex())
	case pb.MsgForgetLeader:
		// A leader answering reads by its lease counts on not being forgotten.
		if f.cfg.ReadOnlyOption == ReadOnlyLeaseBased {
			f.cfg.Logger.Errorf("raft: node %x does not forget its leader %x: ReadOnlyOption is ReadOnlyLeaseBased", f.id, f.lead)
			return nil
		}
		f.turn(f.role, None)
	case pb.MsgTimeoutNow:
		// The leader is alive and steps aside, so there is nobody to disturb
		// and nothing to ask first.
		f.campaign(transfer)
	}
	return nil
}

func (f *follower) hearFrom(m *pb.Message) {
	f.quietTicks = 0
	f.turn(f.role, m.GetFrom())
}

// handleAppend makes this log agree with the leader's, if both logs hold the message's
// base, and acknowledges the agreeing part (thesis 3.5).
func (f *follower) handleAppend(m *pb.Message) error {
	base := ecraft.ID{Term: m.GetLogTerm(), Index: m.GetIndex()}
	switch {
	case base.Index < f.log.committed:
		// Late or repeated: the logs agree up to the commit index already.
		f.acknowledge(m.GetFrom(), f.log.committed)
		return nil
	case !f.log.holds(base):
		f.rejectAppend(m, base)
		return nil
	}
	ents := m.GetEntries()
	n, after := f.log.firstNew(base, ents)
	fresh := ents[n:]
	if err := f.extension.Accept(fresh); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformedMessage, err)
	}
	f.log.appendAfter(after, fresh)
	last := base.Index + uint64(len(ents))
	f.log.commitTo(min(m.GetCommit(), last))
	f.acknowledge(m.GetFrom(), last)
	return nil
}

// acknowledge tells the leader that the logs agree up to index, once the log is durable
// here up to index.
func (f *follower) acknowledge(to, index uint64) {
	f.vouch(f.message(pb.MsgAppResp, to).withIndex(index))
}

// rejectAppend tells the leader that the logs differ at base, with the latest position
// of a possible agreement.
func (f *follower) rejectAppend(m *pb.Message, base ecraft.ID) {
	upTo := ecraft.ID{Term: base.Term, Index: min(base.Index, f.log.last().Index)}
	hint := f.log.match(upTo)
	e := f.message(pb.MsgAppResp, m.GetFrom()).withEntryID(ecraft.ID{Term: hint.Term, Index: base.Index}).withReject()
	e.msg.RejectHint = new(hint.Index)
	f.vouch(e)
}

func (f *follower) handleHeartbeat(m *pb.Message) error {
	if last := f.log.last().Index; m.GetCommit() > last {
		err := fmt.Errorf("%w: heartbeat from %x commits index %d, but this log ends at %d: "+
			"this node has lost entries that it acknowledged, or the sender is faulty", ErrMalformedMessage, m.GetFrom(), m.GetCommit(), last)
		f.cfg.Logger.Error(err)
		return err
	}
	f.log.commitTo(m.GetCommit())
	e := f.message(pb.MsgHeartbeatResp, m.GetFrom())
	e.msg.Context = m.GetContext()
	f.send(e)
	return nil
}

// handleSnapshot restores a useful snapshot, and acknowledges the part of the log known
// to agree with the leader's.
func (f *follower) handleSnapshot(m *pb.Message) error {
	s := pb.EnsureSnapshot(m.GetSnapshot())
	took, err := f.restore(s)
	if err != nil {
		return err
	}
	shared := f.log.committed
	if took {
		shared = f.log.last().Index
	}
	f.cfg.Logger.Infof("raft: node %x got snapshot %v from %x, took it: %t, commit index %d", f.id, snapshotID(s), m.GetFrom(), took, f.log.committed)
	f.acknowledge(m.GetFrom(), shared)
	return nil
}

// restore replaces the log and the members by the snapshot's, and reports whether it
// did. A snapshot with nothing new, or not for this node, is ignored.
func (f *follower) restore(s *pb.Snapshot) (bool, error) {
	id, cs := snapshotID(s), s.GetMetadata().GetConfState()
	switch {
	case id.Index <= f.log.committed && !f.extension.MayRestore(id):
		return false, nil
	case !slices.Contains(cs.GetVoters(), f.id) && !slices.Contains(cs.GetLearners(), f.id) && !slices.Contains(cs.GetVotersOutgoing(), f.id):
		f.cfg.Logger.Warningf("raft: node %x ignores snapshot %v: it is not among its members %s", f.id, id, DescribeConfState(cs))
		return false, nil
	case f.log.holds(id) && !f.extension.MayRestore(id):
		// The log stays, because it leads to the snapshot's state and may go on with
		// acknowledged entries. Only the commit index is taken from the snapshot.
		f.log.commitTo(id.Index)
		return false, nil
	case f.members.HoldsChange():
		f.cfg.Logger.Warningf("raft: node %x refuses snapshot %v: its host was handed a configuration change and has not put it into force; "+
			"hold snapshots back until ApplyConfChange was called", f.id, id)
		return false, nil
	}
	members, err := f.members.Restored(cs, id.Index)
	if err != nil {
		return false, fmt.Errorf("%w: snapshot %v has a configuration %s that cannot be restored: %w",
			ErrMalformedMessage, id, DescribeConfState(cs), err)
	}
	f.log.restore(s)
	f.members.Take(members, id.Index)
	f.extension.Switched(nil) // under an id there may be another member since
	f.cfg.Logger.Infof("raft: node %x restores snapshot %v, members %s", f.id, id, f.members.Config())
	return true, nil
}
