// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// A follower may lack what nobody has any more in parts: the others have applied
// the entry and compacted it. Then it needs a snapshot, although its log is as
// long as anybody's. It goes on acknowledging, which others may depend on, and
// says that it is stuck. A snapshot helps it only if it covers all that stands in
// its log: what it acknowledged must not be dropped. So the leader sends one
// when its state has caught up with what it has sent there; under load it holds
// new entries back from that follower for a while, so that it can.

// stuckAt returns the first committed entry that nobody can complete here.
func (c *coded) stuckAt() (uint64, bool) {
	rec := c.incomplete()
	if rec == nil || rec.id.index > c.r.log.committed || !c.puller.IsStuck(coID(rec.id)) {
		return 0, false
	}
	return rec.id.index, true
}

// withheld reports whether new entries are held back from a member: for one
// election timeout out of two, so that a host whose snapshots lag behind costs
// time and not the member.
func (l *leader) withheld(to uint64) bool {
	ticks, stuck := l.enc.stuck[to]
	return stuck && ticks%(2*l.cfg.ElectionTick) < l.cfg.ElectionTick
}

// serveStuck sends snapshots to members that cannot go on without.
func (l *leader) serveStuck() {
	lost, beyond := l.coded.puller.Stuck()
	beyond = beyond && lost <= l.log.applied // so a snapshot stands for it
	for _, id := range l.enc.members {
		a, pr := l.coded.accounts[id], l.members.Progress[id]
		if a == nil || pr == nil {
			continue
		}
		// The first index that the snapshot must cover: all that was sent; or
		// the one it waits for, if it does not read envelopes, or if nobody can
		// complete any more what it is to be sent.
		least := pr.Next - 1
		switch {
		case a.stuck:
			l.enc.stuck[id]++
		case a.known && !a.capable && l.enc.blocked[id]:
			least = pr.Next
			delete(l.enc.stuck, id) // an older one would be of no use, and nothing is to be held back
		case beyond && l.enc.blocked[id]:
			least = pr.Next
		default:
			continue
		}
		if pr.State == tracker.StateSnapshot || l.log.applied < least {
			continue
		}
		// Asking costs the host a snapshot, so it is asked only when one of
		// what is applied would do. Some hosts send their state of now instead
		// of a snapshot that is too old, so that one is sent now and then.
		s, err := l.log.snapshot()
		if err != nil || s.GetMetadata().GetIndex() < least && l.enc.stuck[id] < l.cfg.ElectionTick/2 {
			continue
		}
		l.coded.record(CodingEvent{Kind: CodingSnapshot, Peer: id, Index: s.GetMetadata().GetIndex()})
		if l.sendSnapshot(id, pr) && a.stuck {
			l.enc.stuck[id] = 0
		}
	}
}

// mayRestore reports whether a snapshot helps this node although its log holds
// the snapshot's last entry: it cannot complete an entry that the snapshot
// covers, and has acknowledged nothing behind it.
func (c *coded) mayRestore(id entryID) bool {
	if c == nil {
		return false
	}
	rec := c.incomplete()
	return rec != nil && rec.id.index <= id.index && id.index > c.r.log.applied && c.r.log.last().index <= id.index
}

// restored notes that a snapshot has replaced the log.
func (c *coded) restored(index uint64) {
	if c == nil {
		return
	}
	c.ledger = ledger{riders: riders{from: index + 1}}
	c.spans, c.stale = spans{before: index}, 0
	c.store.Cut(0)
	c.store.Applied(index)
	c.later.Cut(0)
	clear(c.wanted)
	clear(c.accounts) // who has left meanwhile, and come back, may be another
	c.pending = pendingConf{}
	c.puller.SetMembers(c.everyone())
}

// handOverIfStuck gives leadership away where this node cannot apply what it
// commits, and never will.
func (l *leader) handOverIfStuck() {
	c := l.coded
	if _, stuck := c.stuckAt(); !stuck || l.transferee != None {
		return
	}
	to, applied := l.successor()
	if to == None {
		return
	}
	l.logger.Warningf("raft: node %x cannot complete entries from %d on and hands leadership to %x, which has applied %d", l.id, l.log.applied+1, to, applied)
	c.record(CodingEvent{Kind: CodingHandOver, Peer: to, Index: applied})
	l.handTo(l.members.Progress[to], to)
}

// successor returns the member that has applied most, and more than this node, among
// the voters of the newest configuration in the log: who leaves with that may not
// campaign. A learner in force must have applied that configuration, or it would not
// know that it may.
func (l *leader) successor() (best, applied uint64) {
	p := &l.coded.pending
	applied = l.log.applied
	newest, since := p.newest, uint64(0)
	if newest == nil {
		newest = l.members.Voters.IDs()
	} else {
		since = p.changes[len(p.changes)-1]
	}
	for _, id := range slices.Sorted(maps.Keys(newest)) {
		a, pr := l.coded.accounts[id], l.members.Progress[id]
		if a == nil || pr == nil || id == l.id || !l.coded.healthy(id) || pr.IsLearner && a.applied < since {
			continue
		}
		if a.applied > applied {
			best, applied = id, a.applied
		}
	}
	return best, applied
}

// readyToLead reports whether a member has all payloads, so that leadership can
// go to it without a gap. If this leader is stuck, those that are committed must
// do: units of the rest may not go round without a leader that is not.
func (l *leader) readyToLead(id uint64) bool {
	c := l.coded
	if c == nil {
		return true
	}
	a := c.accounts[id]
	if a == nil || !a.capable {
		return len(l.inNeed()) == 0 // it holds nothing but plain entries
	}
	least := l.log.last().index
	if _, stuck := c.stuckAt(); stuck {
		least = l.log.committed
	}
	if a.completed >= least {
		return true
	}
	// It may have completed more since it last said; this makes it say.
	if pr := l.members.Progress[id]; pr != nil {
		e := l.message(pb.MsgHeartbeat, id).withCommit(min(pr.Match, l.log.committed))
		l.send(e)
	}
	return false
}
