// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"maps"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/gossip"
)

// account is a node's knowledge of a member.
type account struct {
	report
	// capable says that the member reads envelopes like this node's, as its report says
	// or a slot in an entry of the log.
	capable bool
	// codes says that the member codes, or did: it was capable at some time, or an answer
	// whose report was lost says so. Its log may have coded entries.
	codes bool
	// votedPlain says that the member's vote for this node in this term tells that it does not code.
	votedPlain bool
	// known says that the member has reported to this node, or acknowledged an entry.
	known bool
	// heardTick is the tick of the member's last message; unreachable says that the
	// host could not reach the member since, and lostTick when, or when the member was asked
	// for a sign of life.
	heardTick, lostTick int
	unreachable         bool
	// shown is the highest index that the member reported as released, fellTick the
	// tick since which its reports say less, or 0. warned says that the log has a line
	// about the fall.
	shown    uint64
	fellTick int
	warned   bool
	// acked is the moment of the last acknowledgement of a new entry.
	acked moment
}

// setCapable notes whether the member reads envelopes.
func (a *account) setCapable(capable bool) {
	a.capable = capable
	a.codes = a.codes || capable
}

// accounts is this node's knowledge of the members.
type accounts struct {
	*node
	ledger *ledger
	of     map[uint64]*account
}

func (all *accounts) account(id uint64) *account {
	a := all.of[id]
	if a == nil {
		a = &account{heardTick: all.ticks}
		all.of[id] = a
	}
	return a
}

// reads notes that a member reads envelopes.
func (all *accounts) reads(id uint64) {
	if all.follows(id) {
		all.account(id).setCapable(true)
	}
}

// heard notes a sign of life, and reports whether it is a member's.
func (all *accounts) heard(id uint64) bool {
	if id == all.id || !all.follows(id) {
		return false
	}
	a := all.account(id)
	a.heardTick, a.unreachable = all.ticks, false
	return true
}

// healthy reports whether a member was heard from of late: within two
// heartbeats and a tick. A node hears itself.
func (all *accounts) healthy(id uint64) bool {
	a := all.of[id]
	return id == all.id || a != nil && !a.unreachable && all.ticks-a.heardTick <= 2*all.cfg.HeartbeatTick+1
}

// unreachable reports whether the host could not reach a member since the member was heard.
func (all *accounts) unreachable(id uint64) bool {
	a := all.of[id]
	return a != nil && a.unreachable
}

// seekLost asks those members of an entry that could not be reached for a sign of life, each once in an election timeout, by a
// question for nothing. Followers hear of each other by pushes, and push nothing to a member that they have lost: two that have
// lost each other would go on so for as long as others have the units that they lack.
func (all *accounts) seekLost(members []uint64) {
	for _, id := range members {
		if a := all.of[id]; a != nil && a.unreachable && all.ticks-a.lostTick >= all.cfg.ElectionTick {
			a.lostTick = all.ticks
			all.send(all.unitsMessage(MsgUnitsAsk, id, forAsk))
		}
	}
}

// peers is what the schedule of pushes goes by.
func (all *accounts) peers() gossip.Peers {
	return gossip.Peers{Reader: all.learns, Zone: all.cfg.Zone, Down: all.unreachable}
}

// reported takes a member's report from an acknowledgement, and says whether it is one.
func (all *accounts) reported(a *account, m *pb.Message) bool {
	p, err := parseReport(m.GetContext())
	if err == nil {
		all.watchCut(m.GetFrom(), a, p.released)
	}
	if p.dense && !m.GetReject() {
		p.released = max(p.released, min(m.GetIndex(), all.log.Committed())) // nothing is lacking there
	}
	p.released = max(p.released, a.released) // a late message says less
	a.report, a.known = p, a.known || err == nil || !m.GetReject()
	a.codes = a.codes || err != nil && saysThatItCodes(m)
	a.setCapable(err == nil && p.prefix == uint64(all.cfg.ClearPrefix))
	return err == nil
}

// watchCut looks whether a member's log begins before a cut that the member has shown.
// If late messages are not the reason, the member's host showed the cut before it was
// durable, and the member may need units that others left out because of the cut.
func (all *accounts) watchCut(id uint64, a *account, released uint64) {
	if released >= a.shown {
		a.shown, a.fellTick = released, 0
		return
	}
	if a.fellTick == 0 {
		a.fellTick = max(all.ticks, 1)
	}
	if all.ticks-a.fellTick >= all.cfg.ElectionTick && !a.warned {
		a.warned = true
		all.cfg.Logger.Warningf("raft: member %x has released its log up to %d, and said %d before; a host must not show a cut of its log, nor an index as released, "+
			"until it is durable: what nobody else has any more of the entries between them is lost", id, released, a.shown)
	}
}

// releasedBy returns the index up to which a member has released the log.
func (all *accounts) releasedBy(id uint64) uint64 {
	if id == all.id {
		if all.ledger.dense(all.log) {
			return all.log.Committed()
		}
		return all.released()
	}
	a := all.of[id]
	pr, follows := all.raft.Progress(id)
	switch {
	case a == nil:
		return 0
	case a.known && !a.codes && follows && !all.someNeed():
		// The member has no coded entry, and is sent none: each answer by which its match rose
		// would have said that the member codes.
		return pr.Match
	}
	return a.released
}

// someNeed reports whether this node, or a member that reports, may still need a coded entry. A member without coding
// belongs into a group in which nobody does; beside others it was perhaps started on a log that it cannot read.
func (all *accounts) someNeed() bool {
	last := all.ledger.spans.last()
	for id, a := range all.of {
		if a.capable && a.released < last && all.healthy(id) {
			return true
		}
	}
	return all.releasedBy(all.id) < last
}

// inNeed returns the members that may still need a coded entry, in order of id.
func (all *accounts) inNeed() (ids []uint64) {
	last := all.ledger.spans.last()
	for _, id := range all.raft.Electorate().Everyone() {
		if all.releasedBy(id) < last {
			ids = append(ids, id)
		}
	}
	return ids
}

// askAnew forgets who reads envelopes, and which members are stuck.
func (all *accounts) askAnew() {
	for _, a := range all.of {
		a.capable, a.known, a.stuck, a.stuckAt = false, false, false, 0
	}
}

// forgetVotes forgets what votes for this node have told: another term has begun.
func (all *accounts) forgetVotes() {
	for _, a := range all.of {
		a.votedPlain = false
	}
}

// switched forgets nodes that were no members before, or are none now. A joining node
// may be another than the former owner of its id, whatever the log says of the id.
func (all *accounts) switched(before tracker.ProgressMap) {
	maps.DeleteFunc(all.of, func(id uint64, _ *account) bool {
		return before[id] == nil || !all.follows(id)
	})
}
