// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// replica is what both hosts have: a core, and a state machine.
type replica struct {
	m    *machine
	w    *sim
	core core
	// state is the applied state.
	state state
	// changing counts the changes handed out and not applied yet.
	changing int
	// proposedAt is when the last change arrived here, at a leader.
	proposedAt time.Duration
	// waiting are calls whose command has yet to be applied here.
	waiting map[commandID]func(value uint32)
	reads   readings
	clock   *processClock
	permit  *leases.Permit // as of the last Ready
	// settled reports whether everything that was taken is given back.
	settled func() bool
}

// begin makes the core of a host that says what its state holds, or of one that is handed its log
// again.
func (r *replica) begin(m *machine, async bool) {
	w := m.w
	*r = replica{m: m, w: w, state: m.disk.live.state, waiting: map[commandID]func(uint32){}, reads: readings{asked: map[uint64]reading{}}, clock: &processClock{Clock: w}, settled: func() bool { return true }}
	if m.life > 1 {
		w.reach.Restarts++
	}
	p := w.plan
	var applied uint64
	if async {
		applied = r.state.at.index
	}
	core, err := m.lib.New(&w.reach, raft.Config{
		ID: m.id, ElectionTick: electionTicks, HeartbeatTick: 1,
		Storage: m.disk, Applied: applied, AsyncStorageWrites: async,
		MaxSizePerMsg: p.maxSizePerMsg, MaxCommittedSizePerReady: p.maxApplying, MaxUncommittedEntriesSize: p.maxUncommitted,
		MaxInflightMsgs: p.maxInflightMsgs, MaxInflightBytes: p.maxInflightBytes,
		CheckQuorum: p.checkQuorum, PreVote: true,
		Logger:                    silent.Logger{Say: m.say, Die: func(text string) { die("the core gives up: %s", text) }},
		DisableProposalForwarding: async,
		ConfChangesFirst:          async,
		Rand:                      w.faults, Clock: r.clock,
	})
	if err != nil {
		die("no core: %w", err)
	}
	r.core = core
	r.densify()
	r.core = w.opts.Bug.wrap(core, m.id, m.disk, w.Now)
}

// apply applies an entry that the core says is committed.
func (r *replica) apply(e *pb.Entry) {
	if e.GetIndex() != r.state.at.index+1 {
		die("entry %d to apply behind %d", e.GetIndex(), r.state.at.index)
	}
	r.state.at = position{e.GetIndex(), e.GetTerm()}
	switch e.GetType() {
	case pb.EntryConfChange, pb.EntryConfChangeV2:
		r.applyChange(e)
	default:
		if len(e.GetData()) > 0 {
			r.applyCommand(e)
		}
	}
	r.w.check.applies(r, e)
	r.w.check.shows(e)
}

func (r *replica) applyCommand(e *pb.Entry) {
	c, err := parseCommand(e.GetData())
	if err != nil {
		die("entry %d of term %d is committed: %w", e.GetIndex(), e.GetTerm(), err)
	}
	r.w.reach.Commands++
	if c.op == opTruncate {
		r.m.truncate(min(uint64(c.value), r.state.at.index))
		return
	}
	if !r.state.apply(c) {
		r.w.reach.Duplicates++
		return
	}
	if done := r.waiting[c.id]; done != nil {
		delete(r.waiting, c.id)
		done(r.state.values[c.key])
	}
}

func (r *replica) applyChange(e *pb.Entry) {
	r.changing--
	r.w.check.changed(r, e)
	cc, err := holdings.Change(e)
	if err != nil {
		die("change %d: %w", e.GetIndex(), err)
	}
	if !r.fits(cc) {
		r.refuse(e)
		return
	}
	r.w.reach.ChangesApplied++
	before := members(r.state.conf)
	r.state.conf = proto.Clone(r.core.ApplyConfChange(cc)).(*pb.ConfState)
	r.state.confAt = e.GetIndex()
	r.state.forget(before)
	r.w.say(r.m.id, "members from %d on: %v", r.state.confAt, r.state.conf)
}

// handedOut takes note of committed changes that wait to be applied.
func (r *replica) handedOut(entries []*pb.Entry) (changes bool) {
	for _, e := range entries {
		if e.GetType() != pb.EntryNormal {
			r.changing++
			changes = true
		}
	}
	return changes
}

// step gives a message to the core, a snapshot only when no change of the
// members waits to be applied: the core goes by a snapshot's members at once.
func (r *replica) step(m *pb.Message) {
	if m.GetType() == pb.MsgSnap && r.changing > 0 {
		r.m.later(tickTime/10, func() { r.step(m); r.m.proc.work() })
		return
	}
	switch m.GetType() {
	case raft.MsgUnits:
		r.w.reach.Units++
	case raft.MsgUnitsAsk:
		r.w.reach.Asks++
	}
	if r.w.opts.Trace != nil {
		r.w.say(r.m.id, "< %s", raft.DescribeMessage(m, func(b []byte) string { return fmt.Sprint(len(b)) }))
	}
	r.countProposal(m)
	if err := r.core.Step(m); err != nil {
		r.w.say(r.m.id, "refuses %v: %v", m.GetType(), err)
	}
}

// visit shows what a leader knows of the others.
func (r *replica) visit(see func(id uint64, learner bool, pr tracker.Progress)) {
	r.core.Visit(func(id uint64, learner bool, pr tracker.Progress) {
		if id != r.m.id {
			see(id, learner, pr)
		}
	})
}

// checkProgress compares a leader's view of the others with their logs.
func (r *replica) checkProgress() {
	r.w.check.keepsUp(r)
	r.checkCoding()
	s := r.core.State()
	if s.Role != raft.StateLeader {
		return
	}
	for _, m := range r.w.machines {
		if m.disk.live.hard.term > s.Term {
			return // deposed: its view is old
		}
	}
	r.visit(func(id uint64, _ bool, pr tracker.Progress) {
		if has := r.w.machines[id-1].disk.durable.last(); pr.Match > has {
			r.w.fail("n%d leads term %d and says that n%d matches up to %d; it has %d", r.m.id, s.Term, id, pr.Match, has)
		}
	})
}

// snapshotFor returns the message that brings a member up to date, or nil if
// this member does not lead.
func (r *replica) snapshotFor(to uint64) *pb.Message {
	s := r.core.State()
	if s.Role != raft.StateLeader {
		return nil
	}
	r.w.reach.SnapshotsSent++
	return &pb.Message{Type: pb.MsgSnap.Enum(), From: &r.m.id, To: &to, Term: &s.Term, Snapshot: r.state.snapshot()}
}

// checkAppend looks at entries that go into the log: the entries go on from its
// end, or replace conflicting entries, and nothing else.
func (r *replica) checkAppend(entries []*pb.Entry) {
	if len(entries) == 0 {
		return
	}
	for _, e := range entries {
		if r.w.isCoded(e) {
			r.w.reach.CodedEntries++
		}
	}
	im, first := &r.m.disk.live, entries[0]
	switch index := first.GetIndex(); {
	case index <= im.base.index || index > im.last()+1:
		die("append at %d to a log of %d to %d", index, im.base.index+1, im.last())
	case index <= r.state.at.index:
		die("append at %d; %d is applied", index, r.state.at.index)
	case index <= im.last() && im.term(index) == first.GetTerm():
		die("append rewrites entry %d of term %d", index, first.GetTerm())
	case index <= im.last():
		r.w.reach.Conflicts++
	}
}

// truncate cuts the log up to an index.
func (m *machine) truncate(index uint64) {
	if index > m.disk.live.base.index {
		m.w.reach.LogCuts++
		m.disk.write(record{play: func(im *image) { im.truncate(index) }})
	}
}

// densify tells a core to write plain entries, if the operator wants it so.
func (r *replica) densify() {
	if c, ok := r.core.(codedCore); ok && r.w.roll.densify {
		c.Densify(true)
	}
}

// checkCoding looks at a core's memory for coding, and at its reported
// progress.
func (r *replica) checkCoding() {
	c, ok := r.core.(codedCore)
	if !ok || !r.m.lib.Coded {
		return
	}
	s := c.CodingStatus()
	if most := codingMemory + maxCommand; s.Memory > most {
		r.w.fail("n%d keeps %d bytes of units; %d are allowed, and one entry", r.m.id, s.Memory, codingMemory)
	}
	if applied := r.core.State().Applied; s.Completed < applied {
		r.w.fail("n%d has applied %d and says that it has payloads up to %d", r.m.id, applied, s.Completed)
	}
}

// isCoded reports whether an entry is stored as an envelope.
func (w *sim) isCoded(e *pb.Entry) bool {
	prefix := 0
	if w.opts.Kind == cockroachLike {
		prefix = headLen
	}
	return e.GetType() == pb.EntryNormal && ecraft.IsEnvelope(e.GetData(), prefix)
}

// say puts what a core logs into the story. It also counts changes of the members that the
// core holds back: no status of a core without coding tells.
func (m *machine) say(_, format string, v ...any) {
	if strings.Contains(format, "has configuration change %s wait") {
		m.w.reach.ChangesHeld++
	}
	m.w.say(m.id, "# "+format, v...)
}
