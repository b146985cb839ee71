// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

func (m *member) config(kept keptState) replica.Config {
	p, w := &m.n.w.plan, m.n.w
	cfg := replica.Config{Applied: kept.index, HostState: kept.host, Settings: replica.Settings{
		ID: m.n.id, Group: m.g.id, Log: m.log, Boot: p.start(m.n.life),
		ElectionTick: electionTicks, HeartbeatTick: p.heartbeatTick,
		NoPreVote: p.noPreVote, NoCheckQuorum: p.noCheckQuorum,
		MaxCommandBytes: p.maxCommand(), MaxBatchBytes: p.batchBytes, MaxBatches: p.batches,
		MaxQueueBytes: p.queueBytes, MaxCalls: p.calls,
		MaxAppendBytes: p.appendBytes, MaxInflightMsgs: p.inflightMsgs, MaxInflightBytes: p.inflightBytes,
		MaxUncommittedBytes: p.uncommitted, MaxApplyBytes: p.applyBytes, MaxEarlyApplyBytes: p.earlyBytes,
		RetainEntries: p.retainEntries, RetainBytes: p.retainBytes,
		Coding: m.coded(), Placement: m.n.place,
		Rand: m.n.rand,
	}, EncodeResult: encodeAnswer}
	if p.gates.busy {
		cfg.Busy, cfg.Tick = func() float64 { return 1 }, tickTime
	}
	m.leased(&cfg)
	cfg.Names, cfg.Hold = m.named(), p.naming.hold
	if p.repeats.keepsMuch(m.n.id) {
		cfg.RetainEntries, cfg.RetainBytes = 10_000, 16<<20
	}
	if w.opts.Bug == noQueueBudget {
		cfg.MaxQueueBytes, cfg.MaxCalls = 1<<30, 1<<30
	}
	if m.g.founder(m.n.id) {
		cfg.Peers = m.g.founders
	}
	newCore := w.opts.Core
	switch {
	case m.n.plain():
		w.joints.PlainMembers++
		newCore = newPlainCore(m.n.rand)
	case newCore == nil:
		newCore = replica.Weft
	}
	cfg.Core = func(rc raft.Config) (replica.Core, error) {
		m.plantEarly(&rc)
		core, err := newCore(rc)
		m.core = core
		return core, err
	}
	return cfg
}

// coded returns a member's part of it, or nil.
func (m *member) coded() *raft.Coding {
	w := m.n.w
	c := w.plan.coding
	if !c.on || w.opts.Core != nil || m.n.plain() {
		return nil // another core may not be able to
	}
	cfg := &raft.Coding{Threshold: c.threshold, Memory: c.memory, GossipGap: c.gap, GossipDelay: c.delay, Recorder: recorder{m}, LateSeal: c.lateSeal}
	if c.level > 0 {
		cfg.Policy = ecraft.Fixed(c.level)
	}
	return cfg
}

// recorder hears of coding at a member.
type recorder struct{ m *member }

// RecordCoding implements raft.CodingRecorder.
func (r recorder) RecordCoding(e raft.CodingEvent) {
	r.m.n.w.reach.RecordCoding(e)
	switch e.Kind {
	case raft.CodingFallback, raft.CodingHedged, raft.CodingChecked, raft.CodingRecovery:
		r.m.n.w.faults.meets(r.m, momentRaised)
	}
}

// leased completes a member's configuration, if there are leases.
func (m *member) leased(cfg *replica.Config) {
	w := m.n.w
	l := w.plan.leasing
	if !l.on || m.n.plain() {
		return
	}
	cfg.Clock = m.n.clock
	cfg.Leases = &raft.Leases{Tick: tickTime, Boot: m.n.life, Lease: l.lease, Heartbeat: tickTime, Fail: l.fail,
		DriftPPM: l.driftPPM, Resolution: time.Microsecond, Notes: l.notes}
	if l.tuner {
		cfg.Leases.Tuner = &leases.TunerConfig{Window: 50 * time.Millisecond, Least: 5}
	}
	if l.spans {
		cfg.Leases.Spans = func(data []byte) []leases.Span {
			c, err := decodeCommand(data)
			if err != nil || c.verb == verbOpen {
				return nil
			}
			return []leases.Span{spanOf(c.key)}
		}
	}
	var founders []leases.NodeID
	for _, id := range m.g.founders {
		founders = append(founders, leases.NodeID(id))
	}
	if !l.tuner { // which takes keys without an operator's word
		cfg.Leases.Wanted = []leases.Want{{Nodes: founders}}
	}
}

func spanOf(key uint8) leases.Span { return leases.KeySpan(fmt.Sprintf("%03d", key)) }

// nameKey is a message with names: a node leads a term in one life.
type nameKey struct{ group, from, to, term, number uint64 }

func nameKeyOf(m wire.Message, n wire.Named) nameKey {
	return nameKey{m.Group, m.From, m.To, n.GetTerm(), n.Number}
}

// named returns a member's part in names, or nil. Each message with names is compared, when it is
// joined, with its original.
func (m *member) named() *replica.Names {
	w := m.n.w
	p := &w.plan.naming
	on, relays := p.on && p.takes(m.n.id), p.relays(m.n.id)
	if !on && !relays {
		return nil
	}
	names := &replica.Names{
		Named: func(msg wire.Message, whole wire.Raft) {
			n := msg.Body.(wire.Named)
			m.sends(whole.Message)
			if whole.OwnForm { // coded entries leave in the receiver's form
				msg.Body = whole
				got, err := world.OverWire(msg)
				if err != nil {
					w.fail(noFailure, "%v: %v", m.n, err)
					return
				}
				whole = got.Body.(wire.Raft)
			}
			w.originals[nameKeyOf(msg, n)] = whole
		},
		Joined: func(msg wire.Message, whole wire.Raft) {
			original, ok := w.originals[nameKeyOf(msg, msg.Body.(wire.Named))]
			if !ok || !proto.Equal(original.Message, whole.Message) || original.Digests != whole.Digests {
				w.fail(namesExact, "%v joins a message of node %d, and the result is not the original", m.n, msg.From)
			}
		},
		Forget: func() bool { return w.names.Chance(p.forget) },
	}
	if on {
		names.Announced = p.takes
	}
	if relays {
		names.Zone, names.Relayed, names.Runs = p.zone, p.relays, p.runs
	}
	return names
}

// localReads returns a member's way of answering reads between turns; nil without leases.
func (m *member) localReads(cfg replica.Config) *replica.LocalReads {
	if m.n.w.opts.Bug == tickedReads && cfg.Clock != nil {
		cfg.Clock = tickedClock{m.n.clock}
	}
	return replica.NewLocalReads(cfg.Settings, m.applied)
}

// catchUpWindow is how many appends a window of missed entries has.
const catchUpWindow = 4

// catchesUp has the followers of a member catch up within the node's budget. (Snapshots here take from none.)
func (m *member) catchesUp() {
	if m.n.catchUp != nil {
		m.r.CatchUpWithin(m.n.catchUp, m.n.w.plan.catchUpFree, func(turn func(*replica.Replica)) {
			m.n.bound(func() { m.drive.Post(0, turn) })()
		})
	}
}

// plantEarly changes the settings of a core for a planted bug.
func (m *member) plantEarly(rc *raft.Config) {
	if m.n.w.opts.Bug == earlyUnbounded && rc.MaxEarlyApplySize > 0 {
		rc.MaxEarlyApplySize = 1 << 40
	}
}

// plainCore is upstream's library at one node among others: it draws from the node's
// randomness.
type plainCore struct {
	replica.Core
	draws world.Draws
}

func newPlainCore(draws world.Draws) replica.NewCore {
	return func(cfg raft.Config) (core replica.Core, err error) {
		world.WithEntropy(draws, func() { core, err = replica.Upstream(cfg) })
		return plainCore{core, draws}, err
	}
}

func (c plainCore) try(call func() error) (err error) {
	world.WithEntropy(c.draws, func() { err = call() })
	return err
}

func (c plainCore) Tick() { world.WithEntropy(c.draws, c.Core.Tick) }

func (c plainCore) Campaign() error { return c.try(c.Core.Campaign) }

func (c plainCore) ForgetLeader() error { return c.try(c.Core.ForgetLeader) }

func (c plainCore) Step(m *pb.Message) error { return c.try(func() error { return c.Core.Step(m) }) }

func (c plainCore) TransferLeader(to uint64) {
	world.WithEntropy(c.draws, func() { c.Core.TransferLeader(to) })
}

func (c plainCore) Propose(data []byte) error {
	return c.try(func() error { return c.Core.Propose(data) })
}

func (c plainCore) ApplyConfChange(cc pb.ConfChangeI) (cs *pb.ConfState) {
	world.WithEntropy(c.draws, func() { cs = c.Core.ApplyConfChange(cc) })
	return cs
}
