// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leasing

import (
	"errors"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Config is the settings, as filled in by package raft.
type Config struct {
	Leases leases.Config
	// Clock is monotonic, and counts the time of a suspended system.
	Clock func() time.Duration
	// Fit, if set, returns why the clock is not fit for leases; nil if it is. Warn tells the
	// operator when that changes.
	Fit  func() error
	Warn func(format string, args ...any)
	// Spans returns the keys that a payload touches; nil: every key. The payload is the
	// result of Clear.
	Spans func(data []byte) []leases.Span
	// Clear returns the part of an entry's Data that the host can read.
	Clear func(e *pb.Entry) []byte
	// CommittableBy returns the highest index up to k that the logs of members let a
	// leader commit, rules of leases aside.
	CommittableBy func(k uint64, held func(id uint64) uint64) uint64
	// Hold is how long a read waits here before it goes to the leader.
	Hold time.Duration
	// Served, if set, hears of each read of this node's host answered by this node's own
	// lease: the host's context, and whether the node leads.
	Served func(rctx []byte, leads bool)
}

// Leases is the leases of one node.
type Leases struct {
	extend.Queue

	id   uint64
	cfg  Config
	log  extend.Log
	raft extend.View
	node *leases.Node

	// term, lead and leads are the last news given to leases.Node.
	term, lead uint64
	leads      bool
	// settled is the applied index that the node was told: it has no pending change of the
	// configuration at or below it. A leader that went by the host's report alone would name
	// responders once more under the configuration of before, and no majority could supersede
	// that roster.
	settled uint64
	// matched is the highest index acknowledged by this node in the present term: up to
	// there the node's log equals the leader's.
	matched uint64
	noted   uint64 // the highest index of matched that responders were told
	// recount says that commits may depend on an event since the last count.
	recount bool
	// wants and heir are the last news given to leases.Node of a waiting change, and of
	// a transfer.
	wants bool
	heir  uint64
	must  bool // of heir: see extend.View.Transferee
	aside bool // the clock was not fit at the last tick
	// reads wait for an index, or for this node to be stable.
	//
	// Invariant: no index of theirs is at or below the commit index.
	reads  []read
	counts Counts
}

// New returns the leases of a starting node. empty says that the node's hard state was
// empty.
func New(id uint64, cfg Config, log extend.Log, raft extend.View, empty bool) (*Leases, error) {
	x := &Leases{id: id, cfg: cfg, log: log, raft: raft, term: raft.Term(), settled: log.Applied()}
	now := x.now()
	n, err := leases.New(cfg.Leases, leases.Start{Now: now, Term: leases.Term(x.term), Empty: empty})
	if err != nil {
		return nil, err
	}
	x.node = n
	// The keys of entries found at the start are not looked at, because those entries
	// are about to be applied.
	n.Truncated(leases.Index(log.Last().Index))
	n.Committed(leases.Index(log.Committed()))
	n.Applied(leases.Index(x.settled))
	x.configured()
	return x, nil
}

// now reads the clock. Every instant given to leases.Node is read after the arrival of
// the event that the instant stands for.
func (x *Leases) now() leases.Instant { return leases.InstantOf(x.cfg.Clock()) }

// Brakes.

// Committable returns the highest index up to k at which leases permit a commit.
func (x *Leases) Committable(k uint64) uint64 { return uint64(x.node.Committable(leases.Index(k))) }

// MayVote reports whether promises allow a vote. A pre-vote binds nobody.
func (x *Leases) MayVote(m *pb.Message) bool {
	return m.GetType() == pb.MsgPreVote || x.node.MayVote(x.now(), leases.NodeID(m.GetFrom()))
}

// MayRun reports whether promises allow this node to become a candidate.
func (x *Leases) MayRun() bool { return x.node.MayCampaign(x.now()) }

// MayChange returns why no change of the configuration may be appended, or nil.
func (x *Leases) MayChange() error {
	if !x.node.MayChange() {
		return errNamed
	}
	return nil
}

var errNamed = errors.New("rosters that name responders are in use")

// MayHandTo reports whether no lease stands in the way of a transfer.
func (x *Leases) MayHandTo(id uint64) bool { return x.node.MayHandOver(leases.NodeID(id)) }

// News of the log.

// Appended hears of entries that now stand at the end of the log.
func (x *Leases) Appended(ents []*pb.Entry) {
	first := ents[0].GetIndex()
	e := leases.Entries{First: leases.Index(first), Count: len(ents)}
	if x.leads {
		e.At = x.now()
	}
	if x.cfg.Spans != nil {
		e.Keys = func(i leases.Index) []leases.Span { return x.keysOf(ents[uint64(i)-first]) }
	}
	x.node.Appended(e)
	for _, e := range ents {
		switch {
		case e.GetType() != pb.EntryNormal:
			x.node.ChangeAppended(leases.Index(e.GetIndex()))
		case x.leads && x.node.Tunes() && len(e.GetData()) > 0:
			for _, s := range orAll(x.keysOf(e)) {
				x.node.CountWrite(s)
			}
		}
	}
}

// keysOf returns the keys that an entry touches; nil: every key.
func (x *Leases) keysOf(e *pb.Entry) []leases.Span {
	data := x.cfg.Clear(e)
	if e.GetType() != pb.EntryNormal || len(data) == 0 || x.cfg.Spans == nil {
		return nil
	}
	return x.cfg.Spans(data)
}

// Truncated hears that the log is about to be cut, from an index on. Reads that wait for
// a cut index go to the leader.
func (x *Leases) Truncated(from uint64) {
	x.node.Truncated(leases.Index(from - 1))
	x.matched = min(x.matched, from-1)
	x.cutReads(from)
}

// Committed hears that the commit index has risen.
func (x *Leases) Committed(to uint64) {
	x.node.Committed(leases.Index(to))
	x.releaseReads(to)
}

// Restored hears that a snapshot is about to take the place of the log.
func (x *Leases) Restored(index uint64) {
	x.matched = min(x.matched, index)
	x.node.Restored(leases.Index(index))
	x.cutReads(index + 1)
	x.releaseReads(index)
}

// News of roles and members.

// Turned hears of a new role, term or leader.
func (x *Leases) Turned(role extend.Role, term, lead uint64) {
	leads := role == extend.Leader
	if term == x.term && lead == x.lead && leads == x.leads {
		return
	}
	if term != x.term {
		x.matched, x.noted = 0, 0
		x.askDurable(term)
	}
	t := leases.Turn{Term: leases.Term(term), Leader: leases.NodeID(lead)}
	if leads {
		t.First = leases.Index(x.log.Last().Index + 1)
	}
	stepsDown := x.leads && !leads
	x.term, x.lead, x.leads, x.wants, x.heir, x.must = term, lead, leads, false, 0, false
	x.node.Turned(x.now(), t)
	if stepsDown {
		x.cutReads(0)
	}
}

// configured tells the node which configuration is in force.
func (x *Leases) configured() {
	e := x.raft.Electorate()
	c := e.Config()
	m := leases.Members{
		Voters:   leases.Voters{Incoming: idsOf(c.Voters[0]), Outgoing: idsOf(c.Voters[1])},
		Learners: idsOf(c.Learners),
	}
	for _, v := range e.Coming() {
		m.Coming = append(m.Coming, idsOf(v))
	}
	x.node.Configured(x.now(), m)
}

func idsOf[M ~map[uint64]struct{}](m M) []leases.NodeID {
	ids := make([]leases.NodeID, 0, len(m))
	for id := range m {
		ids = append(ids, leases.NodeID(id))
	}
	slices.Sort(ids)
	return ids
}

// Work.

// Tick lets a tick pass.
func (x *Leases) Tick() {
	x.LookAtClock()
	x.node.Tick(x.now())
	x.recount = true
	x.Poll()
}

// LookAtClock has leases stand aside while the clock is not fit.
func (x *Leases) LookAtClock() {
	if x.cfg.Fit == nil {
		return
	}
	switch err := x.cfg.Fit(); {
	case err != nil && !x.aside:
		x.cfg.Warn("raft: node %x answers no read by roster leases and grants none, until its clock is fit again: %v", x.id, err)
	case err == nil && x.aside:
		x.cfg.Warn("raft: node %x takes part in roster leases again: its clock is fit", x.id)
	default:
		return
	}
	x.aside = !x.aside
	x.node.StandAside(x.now(), x.aside)
}

// Poll does the work that has become possible.
func (x *Leases) Poll() {
	now := x.now()
	x.settle()
	if x.leads {
		x.workOnChange(now)
		x.workOnTransfer(now)
	} else {
		x.release()
	}
	for _, o := range x.node.Poll(now) {
		x.Ask(extend.Effect{Do: extend.Send, Msg: x.message(uint64(o.To), leases.AppendMessage([]byte{forLeases}, &o.Message))})
	}
	if x.leads {
		x.workOn()
	}
	x.retryReads(now)
}

// Broken returns an error if an invariant does not hold.
func (x *Leases) Broken() error { return x.node.Check() }
