// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"math/bits"

	"go.etcd.io/raft/v3/tracker"

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

// stuckMembers is what a leader does for stuck members, possibly the leader itself.
type stuckMembers struct {
	*accounts
	wants *wants
	// stuck is how many ticks a member has been stuck.
	stuck map[uint64]int
	// first is the index of the first entry of this term, sentTo the highest index sent
	// to a member in this term.
	//
	// Invariant: neither falls, whatever becomes of the messages.
	first  uint64
	sentTo map[uint64]uint64
}

// mayReach returns the index that a snapshot for a stuck member must reach: behind the
// index the member's log ends, or before the index the log differs from this node's.
func (s *stuckMembers) mayReach(id uint64) uint64 { return max(s.sentTo[id], s.first) }

// mostFor returns the highest index that a member may be sent now. While entries are
// held back, the index is the end that the member's log may have, or a carrier that
// raises entries up to there.
func (s *stuckMembers) mostFor(to uint64) uint64 {
	ticks, stuck := s.stuck[to]
	if !stuck || !holdsBack(ticks/s.cfg.ElectionTick) {
		return noLimit
	}
	most := s.mayReach(to)
	for _, rec := range s.ledger.behind(s.log.Committed()) {
		if rec.id.Index > most {
			break
		}
		if n := len(rec.raised); n > 0 {
			most = max(most, rec.raised[n-1].at)
		}
	}
	return most
}

// holdsBack reports whether new entries are held back from a member that has been stuck for
// this number of election timeouts. Spans with and without new entries alternate, and grow: one
// election timeout each, then two, then four, up to 64. While entries are held back, the end of the
// member's log stands still, so even a slow host's snapshot reaches this end in one of the longer spans. A
// member without which nothing commits stops commits for half of the time only.
func holdsBack(timeouts int) bool {
	n := uint(timeouts) + 2
	span := min(uint(1)<<(bits.Len(n)-1), 128)
	return n&(span/2) == 0
}

// serve sends snapshots to stuck members; blocked members wait for entries that this
// leader must complete.
func (s *stuckMembers) serve(members []uint64, blocked map[uint64]bool) {
	lost, beyond := s.wants.puller.Stuck()
	beyond = beyond && lost <= s.log.Applied() // so a snapshot covers the entry
	for _, id := range members {
		a := s.of[id]
		pr, follows := s.raft.Progress(id)
		if a == nil || !follows || !s.healthy(id) {
			continue // a member that is down would not get the snapshot
		}
		// The index that the snapshot must reach: where the member's log may end; or
		// the next index for the member, if the member does not read envelopes, or if
		// no peer can complete the entry there.
		var least uint64
		switch {
		case a.stuck:
			least = s.mayReach(id)
			s.stuck[id]++
		case a.known && !a.capable && blocked[id]:
			least = pr.Next
			delete(s.stuck, id) // an older one would be of no use, and nothing is to be held back
		case beyond && blocked[id]:
			least = pr.Next
		default:
			continue
		}
		if pr.State == tracker.StateSnapshot || s.log.Applied() < least {
			continue
		}
		// A question costs the host a snapshot, so the leader asks only when a snapshot
		// of the applied state would do. Some hosts send their present state in place
		// of a snapshot that is too old, so an old one is sent now and then: not at
		// multiples of an election timeout, because the leader may check its quorum
		// then, and count no member as active.
		snap, err := s.log.Snapshot()
		half, period := s.cfg.ElectionTick/2, s.cfg.ElectionTick+1
		if err != nil || snap.GetMetadata().GetIndex() < least && s.stuck[id]%period != half {
			continue
		}
		s.emit(Event{Kind: Snapshot, Peer: id, Index: snap.GetMetadata().GetIndex()})
		s.Ask(extend.Effect{Do: extend.Snapshot, To: id})
	}
}

// handOver gives leadership away if this leader can never apply entries that the
// leader commits.
func (s *stuckMembers) handOver() {
	_, stuck := s.wants.stuckAt()
	if heir, _ := s.raft.Transferee(); !stuck || heir != 0 {
		return
	}
	to, applied := s.successor()
	if to == 0 {
		s.askHeirs()
		return
	}
	s.cfg.Logger.Warningf("raft: node %x cannot complete entries from %d on and hands leadership to %x, which has applied %d", s.id, s.log.Applied()+1, to, applied)
	s.emit(Event{Kind: HandOver, Peer: to, Index: applied})
	s.Ask(extend.Effect{Do: extend.HandOver, To: to})
}

// askHeirs has those who may take over report again, once in an election timeout: a report may
// have been lost, and a member without news sends no other.
func (s *stuckMembers) askHeirs() {
	if s.ticks%s.cfg.ElectionTick != 0 {
		return
	}
	heirs, _ := s.raft.Electorate().Heirs()
	for _, id := range heirs {
		if id != s.id {
			s.Ask(extend.Effect{Do: extend.Probe, To: id})
		}
	}
}

// successor returns the member that has applied most, and more than this node, among
// the voters of the newest configuration in the log, because a member removed by that
// configuration may not campaign. A learner in force must have applied the
// configuration, or the learner would not know of its right to campaign.
func (s *stuckMembers) successor() (best, applied uint64) {
	applied = s.log.Applied()
	heirs, since := s.raft.Electorate().Heirs()
	for _, id := range heirs {
		a := s.of[id]
		pr, follows := s.raft.Progress(id)
		if a == nil || !follows || id == s.id || !s.healthy(id) || pr.IsLearner && a.applied < since {
			continue
		}
		if a.applied > applied {
			best, applied = id, a.applied
		}
	}
	return best, applied
}

// mayHandTo reports whether a member has all payloads, so that leadership can move
// without a gap. If this leader is stuck, the committed payloads must suffice, because
// only a leader that is not stuck gets units of the later entries round.
func (s *stuckMembers) mayHandTo(id uint64) bool {
	a := s.of[id]
	if a == nil || !a.capable {
		return len(s.inNeed()) == 0 // all entries that the member needs are plain
	}
	least := s.log.Last().Index
	if _, stuck := s.wants.stuckAt(); stuck {
		least = s.log.Committed()
	}
	return a.completed >= least
}

// readyTransferee has a transfer go on. A transferee that is not ready may have
// completed more since its last report; a heartbeat asks for the next one.
func (s *stuckMembers) readyTransferee() {
	id, _ := s.raft.Transferee()
	switch {
	case s.match(id) < s.log.Last().Index:
	case s.mayHandTo(id):
		s.Ask(extend.Effect{Do: extend.Continue})
	default:
		s.Ask(extend.Effect{Do: extend.Beat, To: id})
	}
}
