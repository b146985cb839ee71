// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Forms, brakes and reads: the questions that Raft asks of coding.

// Seal turns entries about to be appended by a leader into the leader's own form. Until
// then the entries share the memory of the proposal.
func (c *Coder) Seal(ents []*pb.Entry) {
	for _, e := range ents {
		data := e.Data
		e.Data = nil
		c.leads.sealer.seal(e, data)
	}
}

// Form turns entries of a leader's log into a member's form. It stops when there is no
// room for more, and before the first entry whose form cannot be made yet, which is
// then completed. The host makes the result shorter by saved bytes.
func (c *Coder) Form(to uint64, ents []*pb.Entry, room int) (made []*pb.Entry, saved int) {
	l := c.leads
	if most, first := l.stuck.mostFor(to), ents[0].GetIndex(); most-first < uint64(len(ents)) {
		ents = ents[:most-first+1]
	}
	made, l.forms.saved = l.forms.form(to, ents, room)
	return made, l.forms.saved
}

// Room returns how many bytes of entries, from index next on, a member may be sent now;
// 0: none.
func (c *Coder) Room(to, next uint64) int {
	if next > c.leads.stuck.mostFor(to) {
		return 0
	}
	return c.leads.forms.room(to, next)
}

// Accept refuses entries from a leader that are without use to this node.
func (c *Coder) Accept(ents []*pb.Entry) error { return c.intake.accept(ents) }

// Unwrap returns committed entries as the host is to see them.
func (c *Coder) Unwrap(ents []*pb.Entry, most uint64) ([]*pb.Entry, error) {
	return c.payloads.unwrap(ents, most)
}

// Committable returns the highest index up to k that may be committed, or an index at
// or below the commit index.
func (c *Coder) Committable(k uint64) uint64 {
	if c.leads == nil {
		return k
	}
	return c.upTo(k, c.node)
}

// CommittableBy returns the same at any node, by what members are said to hold.
func (c *Coder) CommittableBy(k uint64, held func(id uint64) uint64) uint64 {
	return c.upTo(k, said(held))
}

// Releasable bounds the entries handed out by the first incomplete entry.
func (c *Coder) Releasable(k uint64) uint64 { return min(k, c.payloads.completeTo()) }

// ShownMatch returns the index up to which a member's log matches, as shown to hosts:
// incomplete entries do not count, because hosts truncate and hand over by that index.
func (c *Coder) ShownMatch(id, match uint64) uint64 {
	if a := c.accounts.of[id]; c.leads != nil && id != c.id && a != nil && a.capable && a.known {
		return min(match, a.completed)
	}
	return match
}

// MayPropose returns why a leader must not append an entry as it was proposed.
func (c *Coder) MayPropose(e *pb.Entry) error {
	if c.isReserved(e.GetType(), e.GetData()) && !c.leads.sealer.everyoneReads() {
		return extend.ErrReserved
	}
	return nil
}

// MayChange returns why a change of members must not be appended now, or nil.
func (c *Coder) MayChange(change *extend.Change) error { return c.leads.changes.may(change) }

// MayVote reports whether this node may vote for a candidate: while the node may need a
// committed coded entry, only if the candidate reports that it reads envelopes like
// this node's. A leader that hands over has checked that report.
func (c *Coder) MayVote(m *pb.Message, wished bool) bool {
	if wished || c.ledger.spans.lastUpTo(c.log.Committed()) <= c.released() {
		return true
	}
	p, err := parseReport(m.GetContext())
	return err == nil && p.prefix == uint64(c.cfg.ClearPrefix)
}

// MayRun says that coding keeps no node from campaigning.
func (c *Coder) MayRun() bool { return true }

// MayHandTo reports whether leadership may go to a member whose log is complete.
func (c *Coder) MayHandTo(id uint64) bool { return c.leads.stuck.mayHandTo(id) }

// MayLead reports whether the winner of an election may lead at once: no payload
// behind its commit index is lacking, and one configuration at most is not in force.
// With more, the winner learns the commit index first.
func (c *Coder) MayLead() bool {
	return !c.raft.Electorate().Torn() && len(c.payloads.lackingTail()) == 0
}

// Recovered reports whether the winner of an election may lead, and the index from
// which on its log is to be cut before; 0: nowhere.
func (c *Coder) Recovered() (cut uint64, done bool) { return c.recovery.recovered() }

// MayCampaign reports whether this node may campaign although it has not applied a
// committed configuration, because a payload before the configuration is lacking here.
// With the longest log the node may be the only possible winner, and a leader can ask
// for the payload.
func (c *Coder) MayCampaign() bool {
	rec := c.ledger.incomplete()
	return rec != nil && rec.id.Index < c.raft.Electorate().FirstPending()
}

// MayRestore reports whether a snapshot helps this node although its log holds the
// snapshot's last entry: the node cannot complete an entry that the snapshot covers,
// and has acknowledged nothing behind the snapshot.
func (c *Coder) MayRestore(id ecraft.ID) bool {
	rec := c.ledger.incomplete()
	return rec != nil && rec.id.Index <= id.Index && id.Index > c.log.Applied() && c.log.Last().Index <= id.Index
}

// LeaderIndex is Raft's own.
func (c *Coder) LeaderIndex(*pb.Message) uint64 { return c.log.Committed() }

// TakeRead leaves reads to Raft.
func (c *Coder) TakeRead(*pb.Message) bool { return false }

// HoldRead leaves reads to Raft.
func (c *Coder) HoldRead(*pb.Message, uint64) bool { return false }
