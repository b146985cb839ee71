// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// sending is the last proposal that came from a node.
type sending struct{ boot, number uint64 }

// receiveProposal answers a proposal sent here by another node, as to the leader of a term.
// An error describes a faulty proposal.
//
// After a restart, a proposal for a term from before the restart gets no answer. The network may
// bring a message twice: this node may have led that term, and may have appended the proposal, in
// its earlier life. Its origin hears the fate of the proposal from the log of a later term.
func (r *Replica) receiveProposal(from uint64, p wire.Proposal) error {
	r.count.ForwardedIn++
	if p.Term <= r.bornTerm {
		return nil
	}
	seen := r.sendings[from]
	switch {
	case p.ID.Boot < seen.boot:
		// Of an earlier life; or of this one, if its clock was set back meanwhile.
		r.post(from, wire.Verdict{ID: p.ID, Number: p.Number, Outcome: wire.Busy, Term: r.state.Term, Index: seen.boot})
		return nil
	case p.ID.Boot == seen.boot && p.Number <= seen.number:
		return nil // delivered twice, or behind a later one: see wire.Proposal.Number
	}
	r.sendings[from] = sending{boot: p.ID.Boot, number: p.Number}
	v, err := r.checkProposal(from, p)
	if v.Outcome == 0 {
		v = r.overCredit(from, p)
	}
	if v.Outcome == 0 {
		if v = r.appendProposal(p); v.Outcome == wire.Accepted {
			r.grant(from, p)
		}
	}
	if v.Outcome == 0 {
		return nil // the proposal waits: see appendProposal
	}
	if v.Outcome != wire.Accepted {
		r.count.RefusedIn++
	}
	v.ID, v.Number = p.ID, p.Number
	if v.Outcome == wire.Accepted && !p.ConfChange && len(r.answers) < maxAnswers {
		r.answers = append(r.answers, lateAnswer{from, v})
		return nil
	}
	r.post(from, v)
	return err
}

// lateAnswer is a leader's word that a batch was appended. The answer waits for a tick: an
// origin that meets its batch in the log by then needs no answer, and any other origin must
// hear the answer before sending the batch again.
type lateAnswer struct {
	to      uint64
	verdict wire.Verdict
}

// maxAnswers bounds the waiting answers.
const maxAnswers = 4096

// answer sends the waiting answers, except for committed batches: their origins are about
// to hear of the commit.
func (r *Replica) answer() {
	for _, a := range r.answers {
		if a.verdict.Index > r.emitted.index {
			r.post(a.to, a.verdict)
		}
	}
	r.answers = r.answers[:0]
}

// checkProposal looks for data that a leader must not put into its log, because the log's
// readers cannot decode the data and stop there. The result is a verdict against the
// proposal, or none, and an error if the proposal is malformed.
func (r *Replica) checkProposal(from uint64, p wire.Proposal) (wire.Verdict, error) {
	malformed := func(format string, args ...any) (wire.Verdict, error) {
		reason := fmt.Sprintf(format, args...)
		return wire.Verdict{Outcome: wire.Malformed, Term: r.state.Term, Reason: reason},
			fmt.Errorf("%w: proposal %v from node %d: %s", ErrBadMessage, p.ID, from, reason)
	}
	if p.ID.Origin != from {
		return malformed("proposal %v from node %d", p.ID, from)
	}
	var env envelope
	if p.ConfChange {
		if n := changesIn(p.Data); n > maxChanges {
			return malformed("a configuration change has %d changes at once, the bound is %d", n, maxChanges)
		}
		cc := &pb.ConfChangeV2{}
		if err := proto.Unmarshal(p.Data, cc); err != nil {
			return malformed("configuration change: %v", err)
		}
		var ok bool
		if env, ok = decodeConfContext(cc.GetContext()); !ok {
			return malformed("configuration change without an id")
		}
	} else {
		if n := commandsIn(p.Data); n > maxBatchCommands {
			return malformed("a batch of %d commands, the bound is %d", n, maxBatchCommands)
		}
		var err error
		if env, err = decodeEnvelope(p.Data); err != nil {
			return malformed("%v", err)
		}
	}
	if env.id != p.ID {
		return malformed("proposal %v contains %v", p.ID, env.id)
	}
	if env.id.Sequence-env.floor > maxWindow || r.host.origins.applied(env.id) {
		return wire.Verdict{Outcome: wire.Busy, Term: r.state.Term}, nil // until the origin knows more
	}
	return wire.Verdict{}, nil
}

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
	if r.stall.reason != nil {
		return wire.Verdict{Outcome: wire.Busy, Term: r.state.Term}
	}
	r.dirty = true
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
