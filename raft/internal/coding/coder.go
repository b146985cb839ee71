// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Coder is the coding of a node, whatever the node's role. A node is
//
//  1. a follower or a candidate: neither leads nor recovery is set;
//  2. the winner of an election, with a recovery;
//  3. the leader, with leads.
type Coder struct {
	parts
	intake intake
	pushes pushes
	passes *passes // nil: nothing was passed on

	// Invariant: leads is set if and only if role is Leader, recovery if and only if it
	// is Winner; after each call, role and term are the View's.
	leads    *leading
	recovery *recovery
	role     extend.Role
	term     uint64

	// former is the last leader followed by this node.
	former uint64
	// heldBack is the last index at which CodingHeldBack was recorded, saidStuck the
	// last entry for which Stuck was.
	heldBack, saidStuck uint64
}

// New returns the coding of a node. Load must follow, with the entries of its log
// that are not applied.
func New(id uint64, cfg Config, log extend.Log, raft extend.View) *Coder {
	p := newParts(id, cfg, log, raft)
	return &Coder{
		parts:  p,
		intake: intake{payloads: p.payloads, accounts: p.accounts},
		pushes: pushes{node: p.node, ledger: p.ledger, accounts: p.accounts, later: gossip.NewDeferred(cfg.GossipGap, cfg.GossipDelay)},
	}
}

// Turned hears of a new role, term or leader.
func (c *Coder) Turned(role extend.Role, term, lead uint64) {
	if lead != 0 && lead != c.id {
		c.former = lead
	}
	if role == c.role && term == c.term {
		return
	}
	if term != c.term {
		c.accounts.forgetVotes()
	}
	c.role, c.term = role, term
	c.acked, c.leads, c.recovery = ecraft.ID{}, nil, nil
	c.wants.leader, c.payloads.pinsTail = nil, false
	c.uncover() // in another term members may lose entries acknowledged in this term
	switch role {
	case extend.Leader:
		c.leads = newLeading(&c.parts)
		c.wants.leader = c.leads
	case extend.Winner:
		c.recovery = c.payloads.recover(c.accounts)
	case extend.Follower:
		c.payloads.unpinAll()
	}
}

// Tick lets a tick pass.
func (c *Coder) Tick() {
	c.ticks++
	c.lookAtProcessors()
	c.noteHeldBack()
	if at, ok := c.wants.stuckAt(); ok && at != c.saidStuck {
		c.saidStuck = at
		c.emit(Event{Kind: Stuck, Index: at})
	}
	c.pushes.shareDue()
	c.wants.pull()
	if c.plain && !c.ledger.dense(c.log) {
		c.ledger.seek(c.node, 0) // look whether all of the log is plain
	}
	if c.leads != nil {
		c.leads.tick()
	}
	if c.recovery != nil {
		c.recovery.tick()
	}
}

// noteHeldBack records where committed entries wait for a payload.
func (c *Coder) noteHeldBack() {
	k := c.log.Committed()
	if to := c.payloads.completeTo(); to < k && c.heldBack != to {
		c.heldBack = to
		c.emit(Event{Kind: HeldBack, Index: to + 1, Count: int(k - to)})
	}
}
