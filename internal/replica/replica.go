// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

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
	calls
	core Core
	out  Output
	err  error

	skew  time.Duration // how far the clock of the configuration is ahead of now, at the last Tick
	dirty bool          // the core may have a Ready

	// lastHasData tells that the last entry handed to the append stage is no change of
	// members and not empty.
	lastHasData bool

	outbox  outbox
	inbox   inbox
	repeats repeats
	acks    acks

	founding  founding
	settings  agreement
	coding    coding
	leasing   leasing
	naming    naming
	resolving resolveStage
	sends     sendStage

	reads    barrier
	moves    transfers
	catching catchingUp
	stall    stalling
	intake   intake
	holding  holding
	audience audience
	heir     succession
	rivals   rivals
	placing  placing
	changes  changes
	losses   losses
	// unaddressed are the members that the driver cannot send to; constant.
	unaddressed []uint64

	// origins has the batches applied up to the core's own place in the log: host.origins, unless a
	// restored snapshot is ahead of the core. By origins the replica decides which changes of
	// members the core puts into force.
	origins originTable
	// pending are the configurations and marks of steps at the apply stage.
	pending []stateMark
	// configuredAt is the index of the last change that the core has put into
	// force.
	configuredAt uint64
	// restoring is the index of a snapshot that the state machine is about to
	// restore, or 0.
	restoring uint64

	home   *home // nil: no gateway has come
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
	r := &Replica{facts: facts{cfg: cfg, heard: map[uint64]uint64{}}, repeats: repeats{},
		resolving: resolveStage{resolver: cfg.Resolve, limit: cfg.MaxUnresolvedBytes},
		sends:     sendStage{bundler: cfg.Bundle, limit: cfg.MaxTurnBytes},
		writes:    writes{maxEntries: storage.MaxWriteEntries, maxBytes: storage.MaxWriteBytes},
	}
	f, post := &r.facts, r.post
	r.calls = calls{facts: f, around: r}
	r.holding = holding{longest: holdFor(&r.cfg), maxBytes: r.cfg.MaxAppendBytes}
	r.audience = audience{facts: f, holding: &r.holding}
	r.settings = newAgreement(f, post)
	r.placing = placing{facts: f, losses: &r.losses, around: r, weight: cfg.LeaderWeight}
	if r.naming = newNaming(&r.placing, &r.outbox, post); r.naming.giver != nil {
		r.sends.bundler = &r.naming
	}
	var err error
	if r.host, err = startState(&r.cfg); err != nil {
		return nil, err
	}
	r.emitted, r.applied, r.origins = r.host.at, r.host.mark(), r.host.origins
	r.founding = founding{facts: f, post: post, firstMembers: foundedBy(r.origins), strangers: map[uint64]stranger{}}
	view := logView{Storage: cfg.Log, present: r.presentSnapshot, durable: func() uint64 { return r.keep.durable }}
	if cfg.Applied > 0 {
		view.start = r.host
	}
	coreConfig := cfg.core(view)
	coreConfig.Pace = &r.catching
	if cfg.Coding != nil || cfg.Leases != nil {
		coreConfig.Clock, r.skew = replicaClock{f}, replicaClock{f}.Now()
	}
	r.coding.configure(&r.cfg, &coreConfig)
	r.leasing.configure(&r.cfg, &coreConfig, r.reads.served)
	core, err := cfg.Core(coreConfig)
	if err != nil {
		return nil, fmt.Errorf("start the core: %w", err)
	}
	r.core, r.facts.core = core, core
	r.changes = changes{facts: f, changer: core, around: r, founding: &r.founding, placing: &r.placing}
	r.losses = losses{facts: f, postRaft: r.postRaft}
	r.stall, r.intake = stalling{facts: f, placing: &r.placing, transferTo: r.transferTo}, intake{facts: f}
	r.heir = succession{facts: f, placing: &r.placing}
	r.rivals, r.moves = rivals{facts: f}, transfers{calls: &r.calls, transferTo: r.transferTo, post: post}
	if err := r.coding.start(&r.cfg, core); err != nil {
		return nil, err
	}
	if err := r.leasing.start(&r.cfg, core); err != nil {
		return nil, err
	}
	if r.last, err = cfg.Log.LastIndex(); err != nil {
		return nil, fmt.Errorf("read the log's last index: %w", err)
	}
	hs, _, err := cfg.Log.InitialState()
	if err != nil {
		return nil, fmt.Errorf("read the log's state: %w", err)
	}
	r.writes.blank = r.last == 0 && raft.IsEmptyHardState(hs)
	r.state = core.State()
	r.outbox = newOutbox(&r.calls, r, r.host.origins.boot(cfg.ID))
	r.inbox = inbox{facts: f, around: r, bornTerm: r.state.Term}
	r.reads = newBarrier(f, r, r.leasing.core != nil, r.outbox.boot)
	r.keep = newRetention(f)
	r.catching = catchingUp{facts: f, kept: &r.keep}
	r.dirty = true
	return r, core.Err()
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
	r.skew = replicaClock{&r.facts}.Now() - r.now
	r.ticks++
	r.count.Ticks++
	r.stall.look(&r.writes)
	r.intake.wrote(0, r.stalled == nil)
	if r.founding.misfounded == nil {
		r.tickCore()
	}
	if err := r.founding.introduce(); err != nil {
		r.Fail(err)
	}
	r.settings.tell()
	if r.heir.due() || r.rivals.again() {
		_ = r.Campaign() // the core's random wait goes on if it does not
	}
	r.placing.tick()
	r.catching.tick()
	r.audience.look(r.leasing.state)
	r.attend()
	r.Resolve()
	r.naming.answer()
	r.inbox.answer()
	r.postRaft(r.acks.late(r.ticks))
	r.tellBehind()
	r.expire()
	r.outbox.tidy() // also of batches that have become known to be in no log
	r.home.tick()
}

// Flush ends a turn and returns the work to do. The caller owns the Output.
func (r *Replica) Flush(now time.Duration) Output {
	r.At(now)
	if r.cancel() {
		r.outbox.tidy()
	}
	r.drain()
	if r.err == nil {
		r.inbox.appendRound()
	}
	if r.err == nil {
		r.outbox.sendBatches()
	}
	if r.err == nil {
		r.reads.start()
	}
	r.moves.move()
	if r.err == nil {
		r.stall.handOver()
	}
	r.drain()
	if r.err == nil {
		r.home.tellAll()
	}
	r.sendTurn()
	r.giveUpIfFailed()
	out := r.out
	r.out = Output{}
	return out
}

// Err returns nil, or why the replica is out of service.
func (r *Replica) Err() error { return r.err }

// Fail puts the replica out of service.
func (r *Replica) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// giveUpIfFailed ends all calls of a replica that is out of service. Its remaining messages
// and writes must not leave, because they may rest on a write that failed.
func (r *Replica) giveUpIfFailed() {
	if err := r.core.Err(); err != nil {
		r.Fail(err)
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
		r.inbox.leaderChanged()
		clear(r.repeats)
		r.losses.leaderChanged()
		r.catching.clear()
		r.holding.members(nil)
	}
}

// follows reports whether this node is not the leader, looking closely.
func (r *Replica) follows() bool {
	r.drain()
	return !r.leads()
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
	r.heir.lost(peer)
	r.acks.lost(peer)
	r.catching.leave(peer)
	r.holding.letGo(peer)
	r.settings.cutOff(peer)
	r.naming.lost(peer)
	r.dirty = true
}

// Campaign makes the replica try to become leader, for tests and tools.
func (r *Replica) Campaign() error {
	if err := r.cannotWrite(); err != nil {
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
	return r.stalled != nil || len(r.moves.wanted) > 0 || r.changes.leaving.tried > 0
}
