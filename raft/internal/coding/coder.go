// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Coder is the coding of a node, whatever the node's role.
type Coder struct {
	extend.Queue

	id   uint64
	cfg  Config
	log  extend.Log
	raft extend.View

	ledger ledger
	// store has the units and payloads that are not in the log.
	store  *gossip.Store
	puller *gossip.Puller
	// wanted are entries that a leader must complete to send on, by index.
	//
	// Invariant: empty at a follower; entries that are not applied are pinned.
	wanted map[uint64]*record
	later  *gossip.Deferred
	// fresh are the entries that were accepted last, and are about to be appended.
	fresh accepted

	// leads is the state of a leader, recovery that of the winner of an election.
	//
	// Invariant: not nil in that role, and nil in others.
	leads    *leading
	recovery *recovery

	// role and term are this node's role and term.
	//
	// Invariant: after each call, equal to the View's.
	role extend.Role
	term uint64

	// accounts are the reports of members, by id.
	accounts map[uint64]*account
	// plain is set by Densify: nothing new is to be coded.
	plain bool
	// told is the last report to the leader, at toldTick.
	told     report
	toldTick int
	// acked is the last index acknowledged by this node in its term.
	//
	// Invariant: at most the last index.
	acked ecraft.ID
	// ticks counts ticks, as a coarse clock.
	ticks int
	// noRoomFrom is the first entry that was forgotten for lack of room, at
	// noRoomTick; 0 once there may be room again. See mayExpect.
	noRoomFrom uint64
	noRoomTick int
	// releaseTick is the tick from which on the host may be asked for a snapshot again.
	releaseTick int
	// handed is when the oldest append that is not stored was handed out, storing the
	// mean time that storing takes. Both are 0 without a clock.
	handed, storing time.Duration
	// heldBack is the last index at which CodingHeldBack was recorded.
	heldBack uint64
	// former is the last leader followed by this node.
	former uint64
	// saidStuck is the last entry for which Stuck was recorded.
	saidStuck uint64
	// spans is where the log has entries that are not plain.
	//
	// Invariant: no entry behind its last is an envelope.
	spans spans
	// stale is the first index at which Storage may still have a coded entry that
	// another has replaced: not once the tail begins behind the index.
	stale uint64
}

// maxOnOrder bounds the bytes of units that a node has asked for.
const maxOnOrder = 4 << 20

// New returns the coding of a node. Load must follow, with the entries of its log
// that are not applied.
func New(id uint64, cfg Config, log extend.Log, raft extend.View) *Coder {
	applied := log.Applied()
	c := &Coder{
		id: id, cfg: cfg, log: log, raft: raft, plain: cfg.Plain,
		store: gossip.NewStore(id, cfg.Memory),
		puller: gossip.NewPuller(id, gossip.PullerOptions{
			Patience: 1 + cfg.GossipDelay*min(cfg.GossipGap, 1),
			Batch:    max(1, min(maxOnOrder, cfg.Memory/8)),
		}),
		wanted:   map[uint64]*record{},
		accounts: map[uint64]*account{},
		later:    gossip.NewDeferred(cfg.GossipGap, cfg.GossipDelay),
	}
	c.spans.before = applied // applied entries may be coded; see Surveyed and seek
	c.ledger.riders = riders{from: applied + 1}
	c.puller.SetMembers(raft.Electorate().Everyone())
	c.store.Applied(applied)
	return c
}

// Load notes the entries of the log found at this node's start, in order.
func (c *Coder) Load(ents []*pb.Entry) error {
	if err := Foreign(ents, c.cfg.ClearPrefix); err != nil {
		return err
	}
	envs, err := c.openAll(ents)
	if err == nil {
		c.took(ents, envs)
	}
	return err
}

// Survey looks at applied entries; Surveyed hears that all entries behind
// an index were looked at or will be.
func (c *Coder) Survey(ents []*pb.Entry) error {
	for _, e := range ents {
		if c.isEnvelope(e) {
			c.spans.add(e.GetIndex())
		}
	}
	return Foreign(ents, c.cfg.ClearPrefix)
}

// Surveyed ends what Survey begins.
func (c *Coder) Surveyed(before uint64) { c.spans.before = before }

var errNone = errors.New("there are none")

func (c *Coder) now() time.Duration {
	if c.cfg.Clock == nil {
		return 0
	}
	return c.cfg.Clock()
}

func (c *Coder) emit(e Event) { c.cfg.Record(e) }

func (c *Coder) send(m *pb.Message)  { c.Ask(extend.Effect{Do: extend.Send, Msg: m}) }
func (c *Coder) vouch(m *pb.Message) { c.Ask(extend.Effect{Do: extend.Vouch, Msg: m}) }

// fail takes the log out of service.
func (c *Coder) fail(err error, format string, args ...any) {
	c.Ask(extend.Effect{Do: extend.Fail, Err: fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)})
}

// isEnvelope reports whether an entry of a log is an envelope by its mark.
func (c *Coder) isEnvelope(e *pb.Entry) bool {
	return e.GetType() == pb.EntryNormal && ecraft.IsEnvelope(e.GetData(), c.cfg.ClearPrefix)
}

// open reads an entry of this node's log; nil for a plain one.
func (c *Coder) open(e *pb.Entry) (*ecraft.Envelope, error) {
	if !c.isEnvelope(e) {
		return nil, nil
	}
	env, err := ecraft.Parse(e.GetData(), c.cfg.ClearPrefix, c.id)
	if err != nil {
		return nil, fault(idOf(e), err)
	}
	return env, nil
}

// openAll reads entries of the log; nil stands for a plain entry, and for all if all
// are plain.
func (c *Coder) openAll(ents []*pb.Entry) ([]*ecraft.Envelope, error) {
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

// Turned hears of a new role, term or leader.
func (c *Coder) Turned(role extend.Role, term, lead uint64) {
	if lead != 0 && lead != c.id {
		c.former = lead
	}
	if role == c.role && term == c.term {
		return
	}
	c.role, c.term = role, term
	c.acked, c.leads, c.recovery = ecraft.ID{}, nil, nil
	c.uncover() // in another term members may lose entries acknowledged in this term
	switch role {
	case extend.Leader:
		c.begin()
	case extend.Winner:
		c.recover()
	case extend.Follower:
		c.unpinAll()
	}
}

// Tick lets a tick pass.
func (c *Coder) Tick() {
	c.ticks++
	c.noteHeldBack()
	if at, ok := c.stuckAt(); ok && at != c.saidStuck {
		c.saidStuck = at
		c.emit(Event{Kind: Stuck, Index: at})
	}
	c.shareDue()
	c.pull()
	if c.plain && !c.dense() {
		c.seek(0) // look whether all of the log is plain
	}
	if c.leads != nil {
		c.leads.tick()
	}
	if c.recovery != nil {
		c.recovery.tick()
	}
}

// MayRun says that coding keeps no node from campaigning.
func (c *Coder) MayRun() bool { return true }

// LeaderIndex is Raft's own.
func (c *Coder) LeaderIndex(*pb.Message) uint64 { return c.log.Committed() }

// TakeRead leaves reads to Raft.
func (c *Coder) TakeRead(*pb.Message) bool { return false }

// HoldRead leaves reads to Raft.
func (c *Coder) HoldRead(*pb.Message, uint64) bool { return false }

func idOf(e *pb.Entry) ecraft.ID { return ecraft.ID{Term: e.GetTerm(), Index: e.GetIndex()} }

// named returns an entry without a type.
func named(id ecraft.ID, data []byte) *pb.Entry {
	return &pb.Entry{Term: &id.Term, Index: &id.Index, Data: data}
}

// withData returns an entry that differs from e in its Data.
func withData(e *pb.Entry, data []byte) *pb.Entry {
	return &pb.Entry{Term: e.Term, Index: e.Index, Type: e.Type, Data: data}
}
