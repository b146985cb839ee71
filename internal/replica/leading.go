// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/wire"
)

// appendProposal appends to the log of the leader of a term, in the turn in
// which the term is compared: the entry gets this term, or there is none.
//
// A core that codes lets a change of members wait until the log is safe under it,
// and appends it later. Where it will stand is not known then, so the verdict has
// no outcome: its origin hears nothing, and asks again. Of two that get into the
// log the first counts.
func (r *Replica) appendProposal(p wire.Proposal) wire.Verdict {
	r.drain() // the core may have lost, or won, leadership since it was looked at
	if !r.leads() || r.state.Term != p.Term {
		return wire.Verdict{Outcome: wire.NotLeader, Term: r.state.Term, Leader: r.state.Lead}
	}
	if r.stalled != nil {
		return wire.Verdict{Outcome: wire.Busy, Term: r.state.Term}
	}
	r.dirty = true
	r.coding.proposes(&r.facts, len(p.Data))
	if p.ConfChange {
		cc := &pb.ConfChangeV2{}
		outcome, err := wire.Malformed, proto.Unmarshal(p.Data, cc)
		if err == nil {
			outcome, err = r.changes.append(p.ID, cc, p.Force)
		}
		if err != nil {
			return wire.Verdict{Outcome: outcome, Term: r.state.Term, Reason: err.Error()}
		}
		last := r.last
		if r.drain(); r.last == last || r.lastHasData {
			return wire.Verdict{} // nothing was appended, or only units that the proposal waits for
		}
		return wire.Verdict{Outcome: wire.Accepted, Index: r.last, Term: r.state.Term}
	} else if err := r.core.Propose(p.Data); err != nil {
		return wire.Verdict{Outcome: wire.Busy, Term: r.state.Term}
	}
	r.last++
	return wire.Verdict{Outcome: wire.Accepted, Index: r.last, Term: r.state.Term}
}

// transferTo asks the core to hand leadership over.
func (r *Replica) transferTo(to uint64) {
	r.core.TransferLeader(to)
	r.dirty = true
}

// Stalled gives the reason why the log or the state machine has no room, or nil once both
// have room again, and returns the reason in force, which may be another: see lateness. Waiting
// writes are the driver's work: the driver goes on trying, and calls AppendDone when the writes
// are durable.
func (r *Replica) Stalled(full error) (reason error) {
	r.stall.full = full
	if full != nil && len(r.keep.holds) > 0 {
		r.compact() // what is held for others may be the room
	}
	r.stall.decide()
	return r.stalled
}

// tickCore lets a tick pass for the core. The core of a stalled node does not campaign,
// but as a last resort, and the core of a node with a smaller weight than others not at once.
func (r *Replica) tickCore() {
	if r.stall.quiet() || r.placing.waits() || r.rivals.wait() {
		r.core.TickQuiesced()
		return
	}
	r.core.Tick()
	r.dirty = true
}

// CatchUpWithin has followers catch up within a budget; nil ends that. free is how many bytes each gets without the
// budget, and post runs a function in a turn of this replica.
func (r *Replica) CatchUpWithin(budget *catchup.Budget, free int64, post func(func(*Replica))) {
	r.catching.within(budget, free, func(to uint64, l *laggard) {
		post(func(r *Replica) {
			if r.catching.waits(to, l) {
				r.core.ResumeAppends(to)
				r.dirty = true
			}
		})
	})
}
