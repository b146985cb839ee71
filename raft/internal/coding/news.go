// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"github.com/weftraft/weft/raft/internal/extend"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// News of the log and of the members.

// Load notes the entries of the log found at this node's start, in order.
func (c *Coder) Load(ents []*pb.Entry) error {
	if err := extend.Foreign(ents, c.cfg.ClearPrefix); err != nil {
		return err
	}
	envs, err := c.openAll(ents)
	if err == nil {
		c.intake.took(ents, envs)
	}
	return err
}

// Survey looks at applied entries; Surveyed hears that all entries behind
// an index were looked at or will be.
func (c *Coder) Survey(ents []*pb.Entry) error {
	for _, e := range ents {
		if c.isEnvelope(e) {
			c.ledger.spans.add(e.GetIndex())
		}
	}
	return extend.Foreign(ents, c.cfg.ClearPrefix)
}

// Surveyed ends what Survey begins.
func (c *Coder) Surveyed(before uint64) { c.ledger.spans.before = before }

// Appended notes new entries of the log. Here the ledger learns where an entry stands, also
// one that this leader has made.
func (c *Coder) Appended(ents []*pb.Entry) {
	if l := c.leads; l != nil && len(l.unplaced.made) > 0 {
		l.unplaced.appended(ents)
	}
	if f := c.intake.fresh; len(f.ents) > 0 && f.ents[0] == ents[0] {
		c.intake.took(f.ents, f.envs)
	}
}

// Truncated forgets entries from index on, which are about to leave the log.
func (c *Coder) Truncated(index uint64) {
	c.ledger.cut(c.log, index)
	c.payloads.cut(index)
	c.pushes.later.Cut(index)
}

// Committed hears that the commit index has risen: payloads take their time from
// then on.
func (c *Coder) Committed(from, to uint64) {
	if c.leads != nil {
		c.leads.committed(from, to)
	}
	c.noteHeldBack()
	if c.cfg.Clock == nil {
		return
	}
	now := c.now()
	for _, rec := range c.ledger.behind(from) {
		if rec.id.Index > to {
			break
		}
		if rec.since = now; rec.complete {
			c.emit(Event{Kind: Delayed, Index: rec.id.Index})
		}
	}
}

// Applied forgets all that was only needed to apply entries up to index.
func (c *Coder) Applied(index uint64) {
	c.pushes.shareUpTo(index)
	c.payloads.applied(index)
	c.ledger.forgetUpTo(index)
	c.ledger.forgetRiders(c.log)
	if c.leads != nil {
		c.leads.changes.work() // a change may have waited for this report
	}
}

// Restored forgets everything, because a snapshot is about to take the place of the
// log. Units that were held back leave before.
func (c *Coder) Restored(index uint64) {
	c.pushes.shareUpTo(index)
	c.ledger.restored(index)
	c.payloads.cut(0)
	c.payloads.store.Applied(index)
	c.pushes.later.Cut(0)
	clear(c.accounts.of) // a member may have left meanwhile, and another node have its id
}

// Offered hears that the host was given entries up to an index, or none where
// Releasable let some pass: then a payload is not there after all.
func (c *Coder) Offered(index uint64) {
	if rec := c.ledger.find(index + 1); rec != nil && rec.complete && !c.payloads.here(rec) {
		c.ledger.complete(rec, false)
	}
}

// HandedOut hears that the host was given entries to store, Stored that they are stored.
func (c *Coder) HandedOut() { c.reports.handedOut() }

// Stored ends what HandedOut begins.
func (c *Coder) Stored() {
	if c.leads != nil {
		c.leads.hedger.stored = moment{c.now(), c.ticks}
	}
	c.reports.stored()
}

// Switched hears that another configuration is in force; before are the members until
// now.
func (c *Coder) Switched(before tracker.ProgressMap) {
	c.accounts.switched(before)
	if c.leads != nil {
		c.leads.check.forget()
	}
	c.wants.puller.SetMembers(c.raft.Electorate().Everyone())
	c.VotersChanged()
}

// VotersChanged hears that other voters count: entries must be covered anew, and a
// leader has other followers.
func (c *Coder) VotersChanged() {
	c.uncover()
	if c.leads != nil {
		c.leads.votersChanged()
	}
}

// Cuts hears that the log will be cut from an index on; 0: not at all. The
// recovery is over.
func (c *Coder) Cuts(index uint64) {
	if index > 0 {
		c.emit(Event{Kind: Cut, Index: index, Count: int(c.log.Last().Index - index + 1)})
	}
	c.emit(Event{Kind: Recovered, Count: c.recovery.taken})
}

// TakeOver begins a leader's term, and reports whether carriers take the place of Raft's
// empty entry.
func (c *Coder) TakeOver() bool { return c.leads.takeOver(c.former) }
