// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// apply applies committed entries to the state machine.
func (p *coreProcess) apply(ents []*pb.Entry) {
	for _, e := range ents {
		if e.GetIndex() <= p.applied && p.s.check.restoredAt(p.n) >= e.GetIndex() {
			continue // a snapshot overtook it on its way to the apply thread
		}
		p.s.check.applied(p.n, e)
		if p.s.failure != nil {
			return
		}
		p.applied, p.appliedTerm = e.GetIndex(), e.GetTerm()
		switch e.GetType() {
		case pb.EntryNormal:
			p.applyCommand(e.GetData())
		default:
			p.applyChange(e)
		}
		p.maybeCheckpoint(e.GetType() != pb.EntryNormal && !p.s.keepsOld())
	}
	p.answerReads()
}

func (p *coreProcess) applyCommand(data []byte) {
	if len(data) == 0 {
		return // a new leader's first entry
	}
	c, err := decodeCommand(data)
	if err != nil {
		p.s.fail(stateMachineSafety, "node %d, entry %d: %v", p.n.id, p.applied, err)
		return
	}
	p.s.leased.applied(p.applied, c)
	res := p.store.apply(c)
	if reply := p.replies[c.id]; reply != nil {
		delete(p.replies, c.id)
		reply(res)
	}
}

// applyChange puts a change of the members into force.
func (p *coreProcess) applyChange(e *pb.Entry) {
	cc, err := holdings.Change(e)
	if err != nil {
		p.s.fail(stateMachineSafety, "node %d, entry %d: %v", p.n.id, p.applied, err)
		return
	}
	wasMember := p.member(p.n.id)
	p.changes--
	if p.refuses(e, cc) {
		return
	}
	p.conf = p.rn.ApplyConfChange(cc)
	p.inForce, p.switches = p.applied, p.switches+1
	p.s.story.Tell(p.n.id, "members %v at %d", confString(p.conf), p.applied)
	p.s.check.configured(p.n, p.applied, p.conf)
	p.s.faults.happens(p.n, momentInForce)
	p.observe()
	if wasMember && !p.member(p.n.id) {
		if p.leads() {
			p.s.reach.LeaderRemovals++
		}
		p.n.retire()
	}
}

// restore replaces the state machine's state by that of a snapshot, which is
// on disk by now.
func (p *coreProcess) restore(snap *pb.Snapshot) {
	if raft.IsEmptySnap(snap) {
		return
	}
	p.s.reach.SnapshotsRestored++
	wasMember := p.member(p.n.id)
	if err := p.store.decode(snap.GetData()); err != nil {
		p.s.fail(equalStates, "node %d: snapshot: %v", p.n.id, err)
		return
	}
	p.applied, p.conf = snap.GetMetadata().GetIndex(), snap.GetMetadata().GetConfState()
	p.appliedTerm = snap.GetMetadata().GetTerm()
	p.inForce, p.switches = p.applied, p.switches+1
	p.s.check.restored(p.n, p.applied, p.store.digest())
	if wasMember && !p.member(p.n.id) {
		p.n.retire()
	}
	p.answerReads()
}

// maybeCheckpoint keeps the state machine's state on disk now and then, and
// cuts the head of the log.
//
// After a change of the members a checkpoint is a must: a node refuses a
// snapshot without itself among the members, so a node just added gets nowhere
// with only an older snapshot.
func (p *coreProcess) maybeCheckpoint(must bool) {
	d, pl := p.n.disk, &p.s.plan
	if !must && p.applied < d.live.checkpoint.GetMetadata().GetIndex()+pl.checkpointEvery {
		return
	}
	term, ok := p.written()
	if !ok {
		return
	}
	data := p.store.encode()
	if p.s.opts.Bug == loseSessions {
		data = data[:4*storeKeys]
	}
	conf := p.conf
	if p.s.opts.Bug == forgetConf {
		conf = p.s.foundingConf()
	}
	d.write(record{checkpoint: &pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{
		Index: new(p.applied), Term: &term, ConfState: proto.Clone(conf).(*pb.ConfState)}}})
	p.s.reach.Checkpoints++
	p.s.check.equal(p.n, p.applied, p.store.digest())
	p.cutLog()
}

// cutLog cuts from the head of the log what a checkpoint stands for.
func (p *coreProcess) cutLog() {
	d, pl, to := p.n.disk, &p.s.plan, p.applied
	if pl.coded != nil {
		// With coding on, other nodes take cut entries for released: the
		// checkpoint in the entries' place must be durable first.
		to = released(&d.durable)
	}
	if to > pl.trailing && to-pl.trailing > d.live.baseIndex {
		p.s.reach.LogCuts++
		d.write(record{cut: to - pl.trailing})
		p.s.faults.happens(p.n, momentCut)
	}
}

// checkpointSoon makes a checkpoint of the applied state, if anything is new,
// because a snapshot was asked for: a node without payloads that no node has any
// more can use no older snapshot. The result tells whether the host has no
// snapshot until the checkpoint is made. If nothing is new, the log is cut: other
// nodes may wait for the cut.
func (p *coreProcess) checkpointSoon() (busy bool) {
	had := p.n.disk.live.checkpoint.GetMetadata().GetIndex()
	b, takes := p.s.breaks(), p.n.syncTime
	if b != nil && b.snapshot > 0 && p.applied > had {
		takes, busy = func() time.Duration { return b.snapshot }, b.busy
		p.s.coded.SlowSnapshots++
	}
	switch {
	case p.checkpointing:
	case p.applied > had:
		p.checkpointing = true
		p.n.later(takes(), func() {
			p.checkpointing = false
			if p.applied > p.n.disk.live.checkpoint.GetMetadata().GetIndex() {
				p.maybeCheckpoint(true)
			}
		})
	case had > p.n.disk.live.baseIndex+p.s.plan.trailing:
		p.checkpointing = true
		p.n.sync(func() {
			p.checkpointing = false
			p.cutLog()
		})
	}
	return busy
}
