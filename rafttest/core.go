// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// coreProcess is raft.RawNode in the plainest host within the contract: write,
// sync, send, apply. The work on a Ready is in write.go; this file is the
// input.
type coreProcess struct {
	n  *node
	s  *sim
	rn rawNode
	machine
	// role is the role after the last call.
	role    raft.StateType
	hurried hurried
	// async says that the core writes asynchronously.
	async bool
	// clock is the core's; nil without one.
	clock nodeClock
	// inForce is the last index up to which changes of the members are in force,
	// and switches counts the changes put into force.
	inForce  uint64
	switches int
	// lateSince is since when the state machine has something to apply; 0: it has not.
	lateSince time.Duration

	// replies wait for their commands to be applied here.
	replies map[commandID]func(result)
	// asked are reads that wait for their index, by request context.
	asked map[uint64]lookup
	// confirmed are reads that wait until their index is applied.
	confirmed []confirmedRead
	readSeq   uint64

	appends appendQueue
	applies applyQueue
	// writing is set between a Ready and its Advance, if writes are
	// synchronous.
	writing bool
	// changes is the number of configuration changes that were handed out and
	// are not applied yet.
	changes int
	// pollAt is when the core wants to be called between two ticks.
	pollAt time.Duration
	// appliedTerm is the term of the entry that was applied last, and owes says that a
	// checkpoint waits until that entry is written: see core_early.go.
	appliedTerm uint64
	owes        bool
	// checkpointing is set while a checkpoint is on its way that a snapshot was
	// asked for.
	checkpointing bool
}

type confirmedRead struct {
	index uint64
	reply func()
}

func newCoreProcess(n *node) *coreProcess {
	s := n.s
	p := &coreProcess{n: n, s: s, replies: map[commandID]func(result){}, asked: map[uint64]lookup{}}
	p.store.noSessions = s.opts.Bug == noSessions
	p.conf = &pb.ConfState{}
	cp := n.disk.live.checkpoint
	fresh := cp == nil && n.disk.live.last() == 0
	if s.plan.coded != nil {
		n.disk.asked = p.checkpointSoon
		if n.uncoded {
			p.startPlain()
		}
	}
	if cp != nil {
		p.load(cp)
	}
	rn, err := p.newCore()
	if err != nil {
		s.fail(noPanic, "node %d does not start: %v", n.id, err)
		return p
	}
	p.rn = rn
	p.hurried.follow(nil, n.disk.live.entries)
	if fresh && !s.plan.prepared && n.id <= uint64(s.plan.voters) {
		if err := rn.Bootstrap(s.founders()); err != nil {
			s.fail(noPanic, "node %d does not bootstrap: %v", n.id, err)
		}
		s.reach.Bootstraps++
		p.conf = s.foundingConf()
	}
	return p
}

// config returns the node's configuration, as the plan drew it.
func (p *coreProcess) config() *raft.Config {
	pl := &p.s.plan
	c := &raft.Config{
		ID:                        p.n.id,
		ElectionTick:              electionTicks,
		HeartbeatTick:             pl.heartbeatTick,
		Storage:                   p.n.disk,
		Applied:                   p.applied,
		AsyncStorageWrites:        p.async,
		MaxEarlyApplySize:         pl.earlySize,
		MaxSizePerMsg:             pl.maxSizePerMsg,
		MaxCommittedSizePerReady:  pl.maxCommittedSizePerReady,
		MaxUncommittedEntriesSize: pl.maxUncommittedEntriesSize,
		MaxInflightMsgs:           pl.maxInflightMsgs,
		MaxInflightBytes:          pl.maxInflightBytes,
		CheckQuorum:               pl.checkQuorum,
		PreVote:                   pl.preVote,
		DisableProposalForwarding: pl.noForwarding,
		StepDownOnRemoval:         pl.stepDownOnRemoval,
		YieldWhenLate:             pl.yields,

		DisableConfChangeValidation: p.s.hurry() != hurryNot,
		ConfChangesFirst:            p.s.hurry() == hurryRefuses || p.s.plan.joints.says(p.n.id), // refusals are reports
		Logger:                      silent.Logger{Say: p.n.log, Die: die},
		Rand:                        p.n.rand,
	}
	if pl.lease {
		c.ReadOnlyOption = raft.ReadOnlyLeaseBased
	}
	if pl.weights != nil {
		c.Placement = &raft.Placement{Weights: pl.weights}
	}
	if c.Coding = p.coding(); c.Coding != nil && pl.coded.clock {
		p.clock = skewedClock{p.n}
	}
	if pl.pace > 0 {
		c.Pace = &pace{p, map[uint64]time.Duration{}, map[uint64]uint64{}}
	}
	p.plantEarly(c)
	p.leased(c)
	if p.clock != nil {
		c.Clock = p.clock
	}
	return c
}

// load takes the state machine's state from a checkpoint.
func (p *coreProcess) load(cp *pb.Snapshot) {
	if err := p.store.decode(cp.GetData()); err != nil {
		p.s.fail(noPanic, "node %d: checkpoint %d: %v", p.n.id, cp.GetMetadata().GetIndex(), err)
		return
	}
	p.applied, p.appliedTerm = cp.GetMetadata().GetIndex(), cp.GetMetadata().GetTerm()
	p.inForce = p.applied
	p.conf = cp.GetMetadata().GetConfState()
	if p.s.opts.Bug == applyAgain && p.applied > p.n.disk.live.baseIndex {
		p.applied = p.n.disk.live.baseIndex
	}
	p.s.check.restored(p.n, cp.GetMetadata().GetIndex(), p.store.digest())
}

// did looks at the node after each call, and serves its requests.
func (p *coreProcess) did(err error) {
	if errors.Is(err, raft.ErrStorage) {
		p.s.fail(noPanic, "node %d is out of service: %v", p.n.id, err)
		return
	}
	// Other errors say that a message or proposal was refused, as is the node's
	// right: the sender tries again.
	p.observe()
	p.serve()
	p.planPoll()
}

// observe shows the node to the checker.
func (p *coreProcess) observe() {
	st := p.rn.BasicStatus()
	p.role = st.RaftState
	p.s.check.observed(p.n, sight{role: st.RaftState, term: st.GetTerm(), commit: st.GetCommit()}, p.conf)
}

func (p *coreProcess) tick() {
	p.rn.Tick()
	p.did(nil)
}

func (p *coreProcess) receive(_ uint64, data []byte) {
	m, err := wire.UnmarshalRaft(data)
	if err != nil {
		p.s.fail(noPanic, "a message does not survive its encoding: %v", err)
		return
	}
	p.s.tellMessage(p.n.id, "<", m)
	p.step(m)
}

// step hands a message to the node, a snapshot only when no configuration
// change is on its way to the state machine. For the node goes by a snapshot's
// configuration from the moment it takes it in; the host would then put an
// older change into force on top of it.
func (p *coreProcess) step(m *pb.Message) {
	if m.GetType() == pb.MsgSnap && p.changes > 0 {
		p.s.reach.SnapshotsHeld++
		p.n.later(time.Millisecond, func() { p.step(m) })
		return
	}
	err := p.rn.Step(m)
	p.s.check.accepted(p.n, m, err)
	p.did(err)
}

func (p *coreProcess) propose(c command, reply func(result)) {
	p.replies[c.id] = reply
	p.did(p.rn.Propose(c.encode()))
}

func (p *coreProcess) read(reply func()) {
	if p.s.opts.Bug == staleReads {
		reply()
		return
	}
	// The context is unique among all reads of all processes of this node.
	p.readSeq++
	ctx := p.n.incarnation<<32 | p.readSeq
	p.asked[ctx] = p.lookup(p.s.leased.seen, reply)
	p.rn.ReadIndex(fmt.Appendf(nil, "%d/%d", p.n.id, ctx))
	p.did(nil)
}

// readConfirmed takes the answer to a read: it may be served once the index is
// applied.
func (p *coreProcess) readConfirmed(rs raft.ReadState) {
	var id, ctx uint64
	if _, err := fmt.Sscanf(string(rs.RequestCtx), "%d/%d", &id, &ctx); err != nil || id != p.n.id {
		p.s.fail(noPanic, "node %d gets the answer to the read %q", p.n.id, rs.RequestCtx)
		return
	}
	look, waits := p.asked[ctx]
	if !waits {
		return // a second answer, or an answer to an earlier process of this node
	}
	delete(p.asked, ctx)
	if rs.Index < look.fresh && !p.s.plan.lease {
		p.s.fail(fresh, "node %d reads at %d; when the read began %d was applied somewhere", p.n.id, rs.Index, look.fresh)
		return
	}
	reply := look.reply
	if rs.Index <= p.applied || p.s.opts.Bug == readBeforeWait {
		reply()
		return
	}
	p.confirmed = append(p.confirmed, confirmedRead{index: rs.Index, reply: reply})
}

// answerReads answers the reads whose index is applied.
func (p *coreProcess) answerReads() {
	waiting := p.confirmed[:0]
	for _, r := range p.confirmed {
		if r.index <= p.applied {
			r.reply()
		} else {
			waiting = append(waiting, r)
		}
	}
	p.confirmed = waiting
}

func (p *coreProcess) change(cc pb.ConfChangeI) {
	if p.s.hurry() != hurryNot {
		p.proposeChange(cc)
		return
	}
	p.did(p.rn.ProposeConfChange(cc))
}

func (p *coreProcess) transfer(to uint64) {
	p.rn.TransferLeader(to)
	p.did(nil)
}

func (p *coreProcess) campaign() { p.did(p.rn.Campaign()) }
func (p *coreProcess) forget()   { p.did(p.rn.ForgetLeader()) }

func (p *coreProcess) leads() bool { return p.role == raft.StateLeader }

// log puts what a node logs beside the story.
func (n *node) log(level, format string, v ...any) { n.s.story.Aside(n.id, level+format, v...) }

// corePanic is a panic by which a node says that an invariant broke.
type corePanic struct{ text string }

func die(text string) { panic(corePanic{text}) }
