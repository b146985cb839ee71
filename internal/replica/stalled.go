// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weftraft/weft/raft"
)

// A log that does not get on is not a failure: the log keeps its waiting writes, acknowledges
// nothing, and goes on when it can. The reason may be a full disk, of which the log knows. A state
// machine without room does the same: its Apply waits. Or the disk is late: it hangs, without an
// error, and no write has ended for an election timeout (lateness). Until the log gets on, this
// node is of little use to its group, and must not stand in the group's way:
//
//   - the node takes no new commands, because their outcome would be unknown;
//   - a node that leads hands over. The node cannot know which voters have room, so it
//     tries one voter after the other, in the order of their logs, the longest first;
//   - the node does not campaign, and ignores a call to campaign from a leader that hands
//     over. The node's core goes on to measure the leader's silence: only a member that
//     knows of the silence votes for another (raft.Config.CheckQuorum), and a node with a
//     full disk often has room left for a vote. If nobody leads for a while, a full node may
//     be the only possible winner, because the others lack some of its entries: then the
//     node does campaign, and hands over. A late disk takes no vote either, so a late node
//     never campaigns.
//
// The node goes on to receive entries, up to the bounds of its group's leader.
type stalling struct {
	reason error  // nil while the log gets on; wraps storage.ErrLate if the disk is late
	tried  uint64 // transfers since the stall began
	lastAt uint64 // tick of the last
	ledAt  uint64 // tick at which this node has last heard of a leader, or stalled
	silent bool   // a leader whose transfer has failed is silent: see silenced
}

// lastResort is the number of election timeouts without a leader before a stalled node
// campaigns: in less time, a node with room is elected if any can win.
const lastResort = 4

// Stalled gives the reason why the log or the state machine has no room, or nil once both
// have room again, and returns the reason in force, which may be another: see lateness. Waiting
// writes are the driver's work: the driver goes on trying, and calls AppendDone when the writes
// are durable.
func (r *Replica) Stalled(full error) (reason error) {
	r.slow.full = full
	if full != nil && len(r.keep.holds) > 0 {
		r.compact() // what is held for others may be the room
	}
	r.stallFor(r.slow.reason(r.ticks, r.cfg.ElectionTick))
	return r.stall.reason
}

// stallFor takes the reason, or nil, that the log does not get on.
func (r *Replica) stallFor(reason error) {
	if (reason == nil) != (r.stall.reason == nil) {
		r.stall = stalling{ledAt: r.ticks}
		if reason != nil {
			r.count.Stalls++
		}
	}
	r.stall.reason = reason
}

// stalled returns why nothing new is taken, or nil.
func (r *Replica) stalled() error {
	if r.stall.reason == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrStalled, r.stall.reason)
}

// handOver tries to give leadership away while the log is stalled: a transfer
// that does not succeed has ended, at the latest, after an election timeout.
func (r *Replica) handOver() {
	s := &r.stall
	if s.reason == nil || r.err != nil || !r.leads() || s.tried > 0 && r.ticks-s.lastAt <= uint64(r.cfg.ElectionTick) {
		return
	}
	if r.late() {
		switch r.standing() {
		case level:
			return // nobody is known to do better
		case outrun:
			if s.tried > 0 { // nobody has taken over
				r.fallSilent()
				return
			}
		}
	}
	heirs := r.heirs(r.host.conf.GetVoters())
	if len(heirs) == 0 {
		return
	}
	to := heirs[s.tried%uint64(len(heirs))]
	s.tried++
	s.lastAt = r.ticks
	if r.late() {
		r.count.HandOversLate++
	} else {
		r.count.HandOversFull++
	}
	r.transferTo(to)
}

// heirs returns the voters that this leader could hand over to: voters heard from, the
// longest log first, and at last those of weight 0.
func (r *Replica) heirs(voters []uint64) []uint64 {
	_, progress := r.core.Members()
	heirs := slices.DeleteFunc(slices.Clone(voters), func(id uint64) bool {
		p, ok := progress[id]
		return !ok || id == r.cfg.ID || p.IsLearner || !r.reachable(id)
	})
	slices.SortStableFunc(heirs, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(r.placing.lastChoice(a), r.placing.lastChoice(b)), cmp.Compare(progress[b].Match, progress[a].Match))
	})
	return heirs
}

// tickCore lets a tick pass for the core. That of a stalled node does not campaign,
// but as a last resort, and that of a node with a smaller weight than others not at once.
func (r *Replica) tickCore() {
	s := &r.stall
	s.ledAt = max(s.ledAt, r.heard[r.state.Lead])
	if s.reason != nil && r.core.State().Role != raft.StateLeader && (r.late() || r.ticks-s.ledAt <= uint64(lastResort*r.cfg.ElectionTick)) {
		r.core.TickQuiesced()
		return
	}
	if r.placing.waits() {
		r.core.TickQuiesced()
		return
	}
	r.core.Tick()
	r.dirty = true
}
