// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/names"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// Replica drives one core: the decisions of a [Host], and none of its actions. A Replica
// has no goroutine, reads no clock and does no I/O but to read the log. The driver feeds
// inputs, each of which returns at once, and then calls Flush, which returns the work to
// do:
//
//	replica.Receive(message)
//	replica.Propose(call, command, deadline)
//	out := replica.Flush(now)
//	// send out.Sends, write out.Appends, apply out.Applies, ...
//	// and later AppendDone, ApplyDone, ...
//
// Inputs between two Flushes are a turn; commands that arrive in one turn share an entry.
// With seeded randomness in the core a replica is a function of its inputs, so simulators
// run a replica unchanged. One goroutine at a time uses a replica.
type Replica struct {
	facts
	core Core
	out  Output
	err  error

	skew  time.Duration // how far the clock of the configuration is ahead of now, at the last Tick
	dirty bool          // the core may have a Ready

	// lastHasData tells that the last entry handed to the append stage is no change of
	// members and not empty.
	lastHasData bool

	sendings map[uint64]sending // by node: the last proposal sent here
	bornTerm uint64             // the term at the start; constant
	repeats  repeats
	acks     acks
	answers  []lateAnswer

	founding  founding
	settings  agreement
	coding    coding
	leasing   leasingCore // nil without leases
	resolving resolveStage
	sends     sendStage

	requests
	reads    barrier
	moves    transfers
	catching catchingUp
	stall    stalling
	slow     lateness
	heir     succession
	placing  placing
	changes  changes
	losses   losses
	// unaddressed are the members that the driver cannot send to; constant.
	unaddressed []uint64

	// origins is as of the core's own place in the log: the table of host, unless a restored
	// snapshot is ahead of the core. origins decides which changes of members the core puts
	// into force.
	origins originTable
	// pending are the configurations and marks of steps at the apply stage.
	pending []stateMark
	// configuredAt is the index of the last change that the core has put into
	// force.
	configuredAt uint64
	// restoring is the index of a snapshot that the state machine is about to
	// restore, or 0.
	restoring uint64

	home   *home        // nil: no gateway has come
	relay  *names.Relay // nil: this node has no zone, and no member has wanted data
	writes writes
	keep   retention
}

// New makes a replica from a log for which [PrepareLog] has nothing to
// write.
func New(cfg Config) (*Replica, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	r := &Replica{facts: facts{cfg: cfg, heard: map[uint64]uint64{}}, sendings: map[uint64]sending{}, settings: newAgreement(cfg), repeats: repeats{},
		resolving: resolveStage{resolver: cfg.Resolve, limit: cfg.MaxUnresolvedBytes},
		sends:     sendStage{bundler: cfg.Bundle, limit: cfg.MaxTurnBytes},
		writes:    writes{maxEntries: storage.MaxWriteEntries, maxBytes: storage.MaxWriteBytes},
	}
	if cfg.Names != nil && cfg.Bundle == nil {
		r.sends.bundler = newNameGiver(r)
	}
	if cfg.Names != nil && cfg.Names.Zone != nil {
		r.relay = newRelay(cfg)
	}
	r.requests = requests{facts: &r.facts, around: r}
	if err := r.loadHostState(); err != nil {
		return nil, err
	}
	r.origins = r.host.origins
	r.founding = founding{facts: &r.facts, post: r.post, firstMembers: foundedBy(r.origins), strangers: map[uint64]stranger{}}
	view := logView{Storage: cfg.Log, present: r.presentSnapshot, durable: func() uint64 { return r.keep.durable }}
	if cfg.Applied > 0 {
		view.start = r.host
	}
	coreConfig := cfg.core(view)
	coreConfig.Pace = pace{r}
	if cfg.Coding != nil || cfg.Leases != nil {
		coreConfig.Clock, r.skew = replicaClock{r}, replicaClock{r}.Now()
	}
	r.codes(&coreConfig)
	r.leases(&coreConfig)
	core, err := cfg.Core(coreConfig)
	if err != nil {
		return nil, fmt.Errorf("start the core: %w", err)
	}
	r.core = core
	r.changes = changes{facts: &r.facts, core: core, around: r, founding: &r.founding}
	r.losses = losses{facts: &r.facts, core: core, postRaft: r.postRaft, lost: map[uint64]bool{}}
	if err := r.startCoding(); err != nil {
		return nil, err
	}
	if err := r.startLeases(); err != nil {
		return nil, err
	}
	if r.last, err = cfg.Log.LastIndex(); err != nil {
		return nil, fmt.Errorf("read the log's last index: %w", err)
	}
	r.outbox = newOutbox(cfg, max(cfg.Boot, r.host.origins.boot(cfg.ID)+1))
	r.reads = newBarrier(&r.facts, r, r.leasing != nil, r.outbox.boot)
	r.keep = newRetention(cfg, r.host)
	r.placing = placing{facts: &r.facts, core: core, around: r, weight: cfg.LeaderWeight}
	r.state = core.State()
	r.bornTerm = r.state.Term
	r.dirty = true
	return r, core.Err()
}

// loadHostState finds out what the state machine starts from.
func (r *Replica) loadHostState() error {
	if r.cfg.Applied > 0 {
		h, err := decodeHostState(r.cfg.HostState)
		if err != nil {
			return err
		}
		r.host, r.emitted, r.applied = h, h.at, h.mark()
		return nil
	}
	_, conf, err := r.cfg.Log.InitialState()
	if err != nil {
		return fmt.Errorf("read the log's state: %w", err)
	}
	r.host = &hostState{conf: pb.EnsureConfState(conf), origins: originTable{}}
	if first, err := r.cfg.Log.FirstIndex(); err != nil {
		return fmt.Errorf("read the log's first index: %w", err)
	} else if first-1 == firstMark.index {
		r.host.at = firstMark
		r.host.origins.setFirst(conf.GetVoters(), 0)
		r.emitted, r.applied = firstMark, r.host.mark()
	}
	return nil
}

// presentSnapshot returns the snapshot that the present state could be sent as, or nil. A
// state from before the last configuration change in force is of no use: a node added by
// the change would find its own id missing from the members, and refuse the snapshot.
func (r *Replica) presentSnapshot() *pb.SnapshotMetadata {
	if r.applied.at.index == 0 || r.applied.at.index < r.configuredAt {
		return nil
	}
	return r.applied.meta()
}

// Tick lets one tick of the host's clock pass. now is the driver's time, which never goes
// back and measures deadlines.
func (r *Replica) Tick(now time.Duration) {
	r.At(now)
	r.skew = replicaClock{r}.Now() - r.now
	r.ticks++
	r.count.Ticks++
	r.lookAtLog()
	if r.founding.misfounded == nil {
		r.tickCore()
	}
	if err := r.founding.introduce(); err != nil {
		r.fail(err)
	}
	r.tellSettings()
	if r.heir.due(&r.facts, r.placing.byWeight) {
		_ = r.Campaign() // the core's random wait goes on if it does not
	}
	r.placing.tick(r.stall.reason != nil)
	r.tickCatchingUp()
	r.Resolve()
	r.answerWants()
	r.answer()
	r.postRaft(r.acks.late(r.ticks))
	r.expireCalls()
	r.tickHome()
}

// Flush ends a turn and returns the work to do. The caller owns the Output.
func (r *Replica) Flush(now time.Duration) Output {
	r.At(now)
	r.cancelCalls()
	r.drain()
	if r.err == nil {
		r.sendBatches()
	}
	if r.err == nil {
		r.reads.start()
	}
	r.moveLeadership()
	r.handOver()
	r.drain()
	r.tellGuests()
	r.sendTurn()
	r.giveUpIfFailed()
	out := r.out
	r.out = Output{}
	return out
}

// Err returns nil, or why the replica is out of service.
func (r *Replica) Err() error { return r.err }

// fail puts the replica out of service.
func (r *Replica) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// giveUpIfFailed ends all calls of a replica that is out of service. Its remaining messages
// and writes must not leave, because they may rest on a write that failed.
func (r *Replica) giveUpIfFailed() {
	if err := r.core.Err(); err != nil {
		r.fail(err)
	}
	if r.err == nil {
		return
	}
	r.StopCalls()
	r.out = Output{Done: r.out.Done}
}

// drain takes all work out of the core.
func (r *Replica) drain() {
	if !r.dirty || r.err != nil {
		return
	}
	changed := false
	for r.core.HasReady() && r.err == nil {
		rd := r.core.Ready()
		changed = changed || rd.Changed
		var held []*pb.Message
		for _, m := range rd.Messages {
			if m.GetType() == pb.MsgVote {
				held = append(held, m)
			} else {
				r.send(m)
			}
		}
		r.reads.confirmed(rd.ReadStates)
		if rd.Append != nil {
			r.appendEntries(rd.Append, held)
		}
		if rd.Apply != nil {
			r.emit(rd.Apply)
		}
	}
	r.dirty = false
	if changed {
		r.refresh()
	}
	r.reads.release()
}

// refresh looks at what has become of the core.
func (r *Replica) refresh() {
	before := r.state
	r.state = r.core.State()
	if r.state.Role == raft.StateLeader && before.Role != raft.StateLeader {
		r.count.Elections++
		r.ledSince = r.ticks
	}
	if r.state.Lead != before.Lead || r.state.Term != before.Term {
		r.placing.leaderChanged(before.Lead)
		r.reads.leaderChanged()
		r.moves.leaderChanged()
		r.changes.leaderChanged()
		r.outbox.leaderChanged()
		if r.home != nil {
			r.home.granted = nil
		}
		clear(r.repeats)
		r.losses.leaderChanged()
		r.catching.clear()
	}
}

// follows reports whether this node is not the leader, looking closely.
func (r *Replica) follows() bool {
	r.drain()
	return !r.leads()
}

// send hands a message of the core to the send stage; an append of more entries than a
// message may have as several, which a leader may do at any time.
func (r *Replica) send(m *pb.Message) {
	if r.silenced(m) {
		return
	}
	for m.GetType() == pb.MsgApp && len(m.GetEntries()) > wire.MaxEntries {
		var first *pb.Message
		first, m = divided(m)
		r.send(first)
	}
	if m.GetType() == pb.MsgReadIndex && m.GetFrom() != r.cfg.ID {
		return // held by a leader for another node until the leader stepped down: the node asks again
	}
	if m.GetType() == pb.MsgSnap {
		r.keep.holds[m.GetTo()] = hold{index: m.GetSnapshot().GetMetadata().GetIndex(), total: r.keep.total}
		sources := r.sources(m)
		u, _ := urgency(r.host.conf, m.GetTo(), append(slices.Clone(sources), r.cfg.ID))
		r.out.Snapshots = append(r.out.Snapshots, SnapshotSend{To: m.GetTo(), Message: m, Sources: sources, Urgency: u})
		return
	}
	m, repeated := r.repeats.cut(m)
	if repeated {
		r.count.Repeats++
	}
	body := r.body(m)
	if m.GetType() == pb.MsgApp {
		bytes := -body.Saves
		for _, e := range m.GetEntries() {
			bytes += len(e.GetData())
		}
		r.count.AppendBytesOut += uint64(bytes)
	}
	if !r.acks.put(m, r.ticks) {
		r.count.LateAcks++
		return
	}
	if m.GetType() == pb.MsgHeartbeatResp {
		r.postRaft(r.acks.take(m.GetTo()))
	}
	r.post(m.GetTo(), body)
}

// divided returns an append of the first wire.MaxEntries entries of m, and one of the
// others.
func divided(m *pb.Message) (first, others *pb.Message) {
	part := func(term, index *uint64, entries []*pb.Entry) *pb.Message {
		return &pb.Message{
			Type: m.Type, To: m.To, From: m.From, Term: m.Term,
			LogTerm: term, Index: index, Entries: entries, Commit: m.Commit,
		}
	}
	last := m.Entries[wire.MaxEntries-1]
	return part(m.LogTerm, m.Index, m.Entries[:wire.MaxEntries]), part(last.Term, last.Index, m.Entries[wire.MaxEntries:])
}

// postRaft posts a message of Raft; nil is none.
func (r *Replica) postRaft(m *pb.Message) {
	if m != nil {
		r.post(m.GetTo(), r.body(m))
	}
}

// askLogEnd asks a node where its log ends, with a number that the answer repeats.
func (r *Replica) askLogEnd(to, number uint64) {
	r.post(to, wire.LogEnd{Boot: r.reads.boot, Number: number, First: r.founding.digest})
}

func (r *Replica) post(to uint64, body wire.Body) {
	r.count.MessagesOut++
	r.out.Sends = append(r.out.Sends, wire.Message{Group: r.cfg.Group, From: r.cfg.ID, To: to, Body: body})
}

// deliver takes the responses of a storage thread to their receivers.
func (r *Replica) deliver(responses []*pb.Message) {
	for _, m := range responses {
		if m.GetTo() != r.cfg.ID {
			r.send(m)
			continue
		}
		r.step(m)
	}
}

// step gives the core a checked message, or a message of this node's own.
func (r *Replica) step(m *pb.Message) {
	r.dirty = true
	err := r.core.Step(m)
	if err != nil && !errors.Is(err, raft.ErrStepPeerNotFound) && !errors.Is(err, raft.ErrProposalDropped) {
		r.count.BadMessages++
	}
}

// Unreachable reports a dropped message or a broken connection to a peer.
func (r *Replica) Unreachable(peer uint64) {
	r.core.ReportUnreachable(peer)
	r.heir.lost(&r.facts, peer)
	r.acks.lost(peer)
	r.catching.leave(peer)
	r.settings.cutOff(peer)
	if t, ok := r.resolving.resolver.(*nameTaker); ok {
		t.Lost(peer)
		r.askLeaders()
	}
	r.dirty = true
}

// Campaign makes the replica try to become leader, for tests and tools.
func (r *Replica) Campaign() error {
	if err := r.stalled(); err != nil {
		return err
	}
	r.dirty = true
	return r.core.Campaign()
}

// Turned says how long a turn took, and how long its oldest input had waited. The driver calls it after each
// turn with inputs.
func (r *Replica) Turned(waited, took time.Duration) {
	if n := r.cfg.Placement; n != nil {
		n.Turned(waited, took)
	}
}

// Ticked says how late a tick was taken. The driver calls it at each tick.
func (r *Replica) Ticked(late time.Duration) {
	if n := r.cfg.Placement; n != nil {
		n.Ticked(late)
	}
}

// SetLeaderWeight changes the setting of this node's weight in this group; 0: the node's weight counts.
func (r *Replica) SetLeaderWeight(setting int) { r.placing.weight = setting }

// unsettled reports whether leadership is on the move, or is about to be: this node is stalled, is
// asked for another leader, or loses its vote.
func (r *Replica) unsettled() bool {
	return r.stall.reason != nil || len(r.moves.wanted) > 0 || r.changes.leaving.tried > 0
}

func (r *Replica) logLost(id uint64) bool { return r.losses.lost[id] }
