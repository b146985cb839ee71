// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
)

// Coded replication in one page.
//
// A leader wraps a large payload in an envelope. Its header says, once and for
// all, how many units of the payload each member is assigned; the body is the
// receiver's own. Whoever stores the entry stores the units assigned to it,
// whichever leader sent it: what a node holds is a function of its log, and an
// acknowledgement stays an index. More units for an entry travel as riders in a
// later entry, a carrier.
//
//	coded_ledger.go    what the headers in the log say
//	coded_take.go      and what is noted as entries come and go
//	coded_riders.go    which entries carry units of which others
//	coded_encode.go    envelopes made
//	coded_send.go      and made over for each receiver
//	coded_commit.go    the commit rule: what any half can decode
//	coded_raise.go     riders: fallback and hedge
//	coded_gossip.go    followers complete each other's payloads
//	coded_pull.go      what a node lacks, and asks for
//	coded_release.go   payloads are put in on the way to the host
//	coded_recover.go   what a new leader does before it leads
//	coded_members.go   configuration changes
//	coded_headers.go   and what others know of entries that are compacted
//	coded_voters.go    who gets a vote
//	coded_sets.go      whose votes and acknowledgements count
//	coded_stuck.go     snapshots for those whom nobody can complete
//	coded_report.go    what members say of themselves
//	coded_spans.go     where the log is coded
//	coded_start.go     and whether a node may start on it
//
// A node without Config.Coding has no coded, and none of this happens.

// Types of messages between nodes that code. Their Term is 0 on the wire, so
// that a node which does not know them ignores them; the sender's term is in
// LogTerm.
const (
	// MsgUnits carries units of entries from one follower to another.
	MsgUnits = pb.MessageType(64)
	// MsgUnitsAsk asks for units of entries.
	MsgUnitsAsk = pb.MessageType(65)
)

// coded is what a node that codes knows, whatever its role.
type coded struct {
	r   *raft
	opt Coding

	ledger ledger
	// store has the units and payloads that are not in the log.
	store  *gossip.Store
	puller *gossip.Puller
	// wanted are entries that a leader must complete to send them on, by index.
	wanted map[uint64]*record
	later  *gossip.Deferred

	// accounts is what members said of themselves, by id.
	accounts map[uint64]*account
	// plain is set by Densify: nothing new is to be coded.
	plain bool
	// told is the report that the leader has last been sent, at toldTick.
	told     report
	toldTick int
	// acked is the last index that this node acknowledged in its term.
	acked entryID
	// ticks counts ticks, as a coarse clock.
	ticks int
	// noRoomFrom is the first entry that was forgotten for lack of room, at
	// noRoomTick; 0 once there may be room again. See mayExpect.
	noRoomFrom uint64
	noRoomTick int
	// releaseTick is the first tick at which the host is asked for a snapshot again.
	releaseTick int
	// handed is when the oldest append that is not stored was handed out,
	// storing a mean of how long that takes. Both are 0 without a clock.
	handed, storing time.Duration
	held            uint64 // the last index reported as held back
	// pending are configuration changes that are not in force.
	pending pendingConf
	// former is the last leader that this node followed.
	former uint64
	// saidStuck is the last entry that was recorded as one nobody completes.
	saidStuck uint64
	// spans is where the log has entries that are not plain.
	spans spans
	// stale is the first index at which Storage may have a coded entry that another
	// has replaced; it has not once the tail begins behind it.
	stale uint64
}

// maxOnOrder bounds the bytes of units that a node has asked for.
const maxOnOrder = 4 << 20

// newCoded returns the coding of a node, or nil if it does not code.
func newCoded(r *raft) *coded {
	if r.cfg.Coding == nil {
		return nil
	}
	opt := r.cfg.Coding.withDefaults(r.cfg.Clock)
	return &coded{
		r: r, opt: opt, plain: opt.Plain,
		store: gossip.NewStore(r.id, opt.Memory),
		puller: gossip.NewPuller(r.id, gossip.PullerOptions{
			Patience: 1 + opt.GossipDelay*min(opt.GossipGap, 1),
			Batch:    max(1, min(maxOnOrder, opt.Memory/8)),
		}),
		wanted:   map[uint64]*record{},
		accounts: map[uint64]*account{},
		later:    gossip.NewDeferred(opt.GossipGap, opt.GossipDelay),
	}
}

// load reads what the log says of coded entries that are not applied.
func (c *coded) load() error {
	l := c.r.log
	c.ledger.riders = riders{from: l.applied + 1}
	c.puller.SetMembers(c.everyone())
	c.store.Applied(l.applied)
	for lo, last := l.applied+1, l.last().index; lo <= last; {
		ents, err := l.from(lo, loadPage)
		if err != nil || len(ents) == 0 {
			l.fail(errors.Join(err, ErrUnavailable), "entries from %d on, to look for coded ones", lo)
			return l.err
		}
		envs, err := c.openAll(ents)
		for i := 0; i < len(ents) && err == nil; i++ {
			if foreign := c.r.refuseForeign(ents[i]); foreign != nil {
				return foreign
			}
		}
		if err == nil {
			c.took(ents, envs)
		} else {
			l.fail(err, "the log from %d on", lo)
			return l.err
		}
		lo += uint64(len(ents))
	}
	return nil
}

func (c *coded) now() time.Duration {
	if c.r.cfg.Clock == nil {
		return 0
	}
	return c.r.cfg.Clock.Now()
}

func (c *coded) record(e CodingEvent) { c.opt.Recorder.RecordCoding(e) }

// isEnvelope reports whether an entry of a log says that it is not plain.
func (c *coded) isEnvelope(e *pb.Entry) bool {
	return c != nil && e.GetType() == pb.EntryNormal && ecraft.IsEnvelope(e.GetData(), c.opt.ClearPrefix)
}

// open reads an entry of this node's log; nil for a plain one.
func (c *coded) open(e *pb.Entry) (*ecraft.Envelope, error) {
	if !c.isEnvelope(e) {
		return nil, nil
	}
	env, err := ecraft.Parse(e.GetData(), c.opt.ClearPrefix, c.r.id)
	if err != nil {
		return nil, codingFault(idOf(e), err)
	}
	return env, nil
}

// openAll reads entries of the log; nil stands for plain ones, and for all if
// they all are.
func (c *coded) openAll(ents []*pb.Entry) ([]*ecraft.Envelope, error) {
	var envs []*ecraft.Envelope
	for i, e := range ents {
		env, err := c.open(e)
		if err != nil {
			return nil, err
		}
		if env != nil {
			if envs == nil {
				envs = make([]*ecraft.Envelope, len(ents))
			}
			envs[i] = env
		}
	}
	return envs, nil
}

// entered notes that this node begins a role in a term, with a leader to follow
// or None.
func (c *coded) entered(lead uint64) {
	if c == nil {
		return
	}
	c.follows(lead)
	c.acked = entryID{}
}

// follows notes whom this node follows, or None.
func (c *coded) follows(lead uint64) {
	if c != nil && lead != None && lead != c.r.id {
		c.former = lead
	}
}

// tick lets a tick pass.
func (c *coded) tick() {
	if c == nil {
		return
	}
	c.ticks++
	if at, ok := c.stuckAt(); ok && at != c.saidStuck {
		c.saidStuck = at
		c.record(CodingEvent{Kind: CodingStuck, Index: at})
	}
	c.shareDue()
	// Not while a new leader asks: it must know of which entries answers were dropped.
	if _, asks := c.r.role.(*recoverer); !asks && c.ticks%(2*c.r.cfg.ElectionTick) == 0 {
		c.store.ForgiveAll()
	}
	c.pull()
	if c.plain && !c.dense() {
		c.seek(0) // all of the log may be plain: see what there is
	}
	if l := c.r.leading(); l != nil {
		l.tickCoding()
	}
}

func coID(id entryID) ecraft.ID { return ecraft.ID{Term: id.term, Index: id.index} }
