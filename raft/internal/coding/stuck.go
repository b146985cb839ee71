// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"math/bits"

	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// A follower may lack units that no member has any more, because the others have
// applied the entry and compacted it. Then the follower needs a snapshot, although its
// log is as long as any. The follower goes on acknowledging, because commits may depend
// on its acknowledgements, and reports that it is stuck. A snapshot helps only if it
// covers the whole log of the follower: acknowledged entries must not be dropped, and
// the follower refuses a snapshot behind which its log goes on. So the leader sends a
// snapshot when the leader's state has reached the index where the follower's log may
// end; under load the leader holds new entries back from the follower for a while, so
// that the state can.
//
// No answer says where a follower's log ends. An acknowledgement may have been lost,
// and Progress.Next then goes back to the acknowledged index; a follower that refuses a
// snapshot acknowledges the entries that log and snapshot share, and may have more. Two
// bounds hold (mayReach):
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

// stuckAt returns the first committed entry lacking here that no peer can complete.
func (c *Coder) stuckAt() (uint64, bool) {
	rec := c.incomplete()
	if rec == nil || rec.id.Index > c.log.Committed() || !c.puller.IsStuck(rec.id) {
		return 0, false
	}
	return rec.id.Index, true
}

// mayReach returns the index that a snapshot for a stuck member must reach: behind the
// index the member's log ends, or before the index the log differs from this node's.
func (l *leading) mayReach(id uint64) uint64 { return max(l.sentTo[id], l.first) }

// mostFor returns the highest index that a member may be sent now. While entries are
// held back, the index is the end that the member's log may have, or a carrier that
// raises entries up to there.
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
// two, for four and so on, up to a bound. So a snapshot that takes a host long covers,
// in a span that is long enough, all entries that were sent until the snapshot is
// ready; and a member without which nothing is committed stops commits for half of the
// time, and not for all of the time.
func holdsBack(timeouts int) bool {
	n := uint(timeouts) + 2
	span := min(uint(1)<<(bits.Len(n)-1), 128)
	return n&(span/2) == 0
}

// serveStuck sends snapshots to stuck members.
func (l *leading) serveStuck() {
	lost, beyond := l.puller.Stuck()
	beyond = beyond && lost <= l.log.Applied() // so a snapshot covers the entry
	for _, id := range l.members {
		a := l.accounts[id]
		pr, follows := l.raft.Progress(id)
		if a == nil || !follows || !l.healthy(id) {
			continue // a member that is down would not get the snapshot
		}
		// The index that the snapshot must reach: where the member's log may end; or
		// the next index for the member, if the member does not read envelopes, or if
		// no peer can complete the entry there.
		var least uint64
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
		// A question costs the host a snapshot, so the leader asks only when a snapshot
		// of the applied state would do. Some hosts send their present state in place
		// of a snapshot that is too old, so an old one is sent now and then: not at
		// multiples of an election timeout, because the leader may check its quorum
		// then, and count no member as active.
		s, err := l.log.Snapshot()
		half, period := l.cfg.ElectionTick/2, l.cfg.ElectionTick+1
		if err != nil || s.GetMetadata().GetIndex() < least && l.stuck[id]%period != half {
			continue
		}
		l.emit(Event{Kind: Snapshot, Peer: id, Index: s.GetMetadata().GetIndex()})
		l.Ask(extend.Effect{Do: extend.Snapshot, To: id})
	}
}

// MayRestore reports whether a snapshot helps this node although its log holds the
// snapshot's last entry: the node cannot complete an entry that the snapshot covers,
// and has acknowledged nothing behind the snapshot.
func (c *Coder) MayRestore(id ecraft.ID) bool {
	rec := c.incomplete()
	return rec != nil && rec.id.Index <= id.Index && id.Index > c.log.Applied() && c.log.Last().Index <= id.Index
}

// handOverIfStuck gives leadership away if this leader can never apply entries that the
// leader commits.
func (l *leading) handOverIfStuck() {
	_, stuck := l.stuckAt()
	if heir, _ := l.raft.Transferee(); !stuck || heir != 0 {
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
// the voters of the newest configuration in the log, because a member removed by that
// configuration may not campaign. A learner in force must have applied the
// configuration, or the learner would not know of its right to campaign.
func (l *leading) successor() (best, applied uint64) {
	applied = l.log.Applied()
	heirs, since := l.raft.Electorate().Heirs()
	for _, id := range heirs {
		a := l.accounts[id]
		pr, follows := l.raft.Progress(id)
		if a == nil || !follows || id == l.id || !l.healthy(id) || pr.IsLearner && a.applied < since {
			continue
		}
		if a.applied > applied {
			best, applied = id, a.applied
		}
	}
	return best, applied
}

// MayHandTo reports whether a member has all payloads, so that leadership can move
// without a gap. If this leader is stuck, the committed payloads must suffice, because
// only a leader that is not stuck gets units of the later entries round.
func (c *Coder) MayHandTo(id uint64) bool {
	a := c.accounts[id]
	if a == nil || !a.capable {
		return len(c.leads.inNeed()) == 0 // all entries that the member needs are plain
	}
	least := c.log.Last().Index
	if _, stuck := c.stuckAt(); stuck {
		least = c.log.Committed()
	}
	return a.completed >= least
}

// readyTransferee has a transfer go on. A transferee that is not ready may have
// completed more since its last report; a heartbeat asks for the next one.
func (l *leading) readyTransferee() {
	id, _ := l.raft.Transferee()
	switch {
	case l.match(id) < l.log.Last().Index:
	case l.MayHandTo(id):
		l.Ask(extend.Effect{Do: extend.Continue})
	default:
		l.Ask(extend.Effect{Do: extend.Beat, To: id})
	}
}
