// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"maps"
	"math/bits"
	"slices"

	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// A follower may lack what nobody has any more in parts: the others have applied
// the entry and compacted it. Then it needs a snapshot, although its log is as
// long as anybody's. It goes on acknowledging, which others may depend on, and
// says that it is stuck. A snapshot helps it only if it covers all that stands in
// its log: what it acknowledged must not be dropped, and the follower refuses one
// that its log goes on behind. So the leader sends one when its state has caught
// up with where that log may end; under load it holds new entries back from that
// follower for a while, so that it can.
//
// No answer says where a follower's log ends. An acknowledgement may have been
// lost, and Progress.Next then goes back to what was acknowledged; a follower that
// refuses a snapshot acknowledges the entries that it shares with the snapshot, and
// may have more. Two bounds hold (mayReach):
//
//   - Of the leader's own term the follower has nothing but what the leader sent
//     it in this term. The highest index sent never falls, whatever was lost.
//   - Of earlier terms the follower may have anything, from any leader. A snapshot
//     that ends in the leader's own term settles these. If the follower has the
//     snapshot's last entry, all behind that entry is of the same term, as terms
//     never fall along a log. If it has another entry there, or none, it takes the
//     snapshot, like any follower whose log differs from what is committed.
//
// So a snapshot that reaches both bounds helps, in whatever order reports, snapshots
// and probes come. Entries up to there are never held back, nor carriers that raise
// them. These entries add nothing to what the snapshot must cover, and without their
// acknowledgement the leader may not be able to commit, and then apply, what the
// snapshot is to cover: all members that are alive may be needed for that.

// stuckAt returns the first committed entry that nobody can complete here.
func (c *Coder) stuckAt() (uint64, bool) {
	rec := c.incomplete()
	if rec == nil || rec.id.Index > c.log.Committed() || !c.puller.IsStuck(rec.id) {
		return 0, false
	}
	return rec.id.Index, true
}

// mayReach returns the index that a snapshot for a stuck member must reach: the member's
// log does not go on behind that index, or differs from this one before it.
func (l *leading) mayReach(id uint64) uint64 { return max(l.sentTo[id], l.first) }

// mostFor returns the highest index that a member may be sent now. Where entries are
// held back, that is how far the member's log may reach, with the carriers that raise
// entries up to there.
func (l *leading) mostFor(to uint64) uint64 {
	ticks, stuck := l.stuck[to]
	if !stuck || !holdsBack(ticks/l.cfg.ElectionTick) {
		return noLimit
	}
	most, g := l.mayReach(to), &l.ledger
	for _, rec := range g.recs[g.at(l.log.Committed()+1):] {
		if rec.id.Index > most {
			break
		}
		if n := len(rec.raised); n > 0 {
			most = max(most, rec.raised[n-1].at)
		}
	}
	return most
}

// holdsBack reports whether new entries are held back from a member that has been
// stuck for so many election timeouts: for one and not for one, for two and not for
// two, for four and so on, up to a bound. So a snapshot that a host takes long to make
// covers, sooner or later, all that was sent until it is there; and a member without
// which nothing is committed stops commits for half of the time, and not for all of it.
func holdsBack(timeouts int) bool {
	n := uint(timeouts) + 2
	span := min(uint(1)<<(bits.Len(n)-1), 128)
	return n&(span/2) == 0
}

// serveStuck sends snapshots to members that cannot go on without.
func (l *leading) serveStuck() {
	lost, beyond := l.puller.Stuck()
	beyond = beyond && lost <= l.log.Applied() // so a snapshot stands for it
	for _, id := range l.members {
		a, pr := l.accounts[id], l.raft.Members().Progress[id]
		if a == nil || pr == nil || !l.healthy(id) {
			continue // a member that is not there would not get it
		}
		// The index that the snapshot must reach: where the member's log may end; or
		// the one it waits for, if it does not read envelopes, or if nobody can
		// complete any more what it is to be sent.
		least := uint64(0)
		switch {
		case a.stuck:
			least = l.mayReach(id)
			l.stuck[id]++
		case a.known && !a.capable && l.blocked[id]:
			least = pr.Next
			delete(l.stuck, id) // an older one would be of no use, and nothing is to be held back
		case beyond && l.blocked[id]:
			least = pr.Next
		default:
			continue
		}
		if pr.State == tracker.StateSnapshot || l.log.Applied() < least {
			continue
		}
		// Asking costs the host a snapshot, so it is asked only when one of
		// what is applied would do. Some hosts send their state of now instead
		// of a snapshot that is too old, so that one is sent now and then: not at
		// multiples of an election timeout, because that may be when the leader
		// checks its quorum, and counts nobody as active.
		s, err := l.log.Snapshot()
		half, period := l.cfg.ElectionTick/2, l.cfg.ElectionTick+1
		if err != nil || s.GetMetadata().GetIndex() < least && l.stuck[id]%period != half {
			continue
		}
		l.emit(Event{Kind: Snapshot, Peer: id, Index: s.GetMetadata().GetIndex()})
		l.Ask(extend.Effect{Do: extend.Snapshot, To: id})
	}
}

// MayRestore reports whether a snapshot helps this node although its log holds
// the snapshot's last entry: it cannot complete an entry that the snapshot
// covers, and has acknowledged nothing behind it.
func (c *Coder) MayRestore(id ecraft.ID) bool {
	rec := c.incomplete()
	return rec != nil && rec.id.Index <= id.Index && id.Index > c.log.Applied() && c.log.Last().Index <= id.Index
}

// handOverIfStuck gives leadership away where this node cannot apply what it
// commits, and never will.
func (l *leading) handOverIfStuck() {
	if _, stuck := l.stuckAt(); !stuck || l.raft.Transferee() != 0 {
		return
	}
	to, applied := l.successor()
	if to == 0 {
		return
	}
	l.cfg.Logger.Warningf("raft: node %x cannot complete entries from %d on and hands leadership to %x, which has applied %d", l.id, l.log.Applied()+1, to, applied)
	l.emit(Event{Kind: HandOver, Peer: to, Index: applied})
	l.Ask(extend.Effect{Do: extend.HandOver, To: to})
}

// successor returns the member that has applied most, and more than this node, among
// the voters of the newest configuration in the log: who leaves with that may not
// campaign. A learner in force must have applied that configuration, or it would not
// know that it may.
func (l *leading) successor() (best, applied uint64) {
	e := l.raft.Electorate()
	applied = l.log.Applied()
	newest, since := e.Newest(), uint64(0)
	if newest == nil {
		newest = l.raft.Members().Voters.IDs()
	} else {
		since = slices.Max(e.Changes())
	}
	for _, id := range slices.Sorted(maps.Keys(newest)) {
		a, pr := l.accounts[id], l.raft.Members().Progress[id]
		if a == nil || pr == nil || id == l.id || !l.healthy(id) || pr.IsLearner && a.applied < since {
			continue
		}
		if a.applied > applied {
			best, applied = id, a.applied
		}
	}
	return best, applied
}

// MayHandTo reports whether a member has all payloads, so that leadership can go to
// it without a gap. If this leader is stuck, the committed ones must do: units of
// the rest may not go round without a leader that is not stuck.
func (c *Coder) MayHandTo(id uint64) bool {
	a := c.accounts[id]
	if a == nil || !a.capable {
		return len(c.leads.inNeed()) == 0 // it holds nothing but plain entries
	}
	least := c.log.Last().Index
	if _, stuck := c.stuckAt(); stuck {
		least = c.log.Committed()
	}
	return a.completed >= least
}

// readyTransferee has a transfer go on. A transferee that is not ready may have
// completed more since it last said; a heartbeat makes it say.
func (l *leading) readyTransferee() {
	id := l.raft.Transferee()
	pr := l.raft.Members().Progress[id]
	switch {
	case pr == nil || pr.Match < l.log.Last().Index:
	case l.MayHandTo(id):
		l.Ask(extend.Effect{Do: extend.Continue})
	default:
		l.Ask(extend.Effect{Do: extend.Beat, To: id})
	}
}
