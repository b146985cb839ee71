// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"slices"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// requests is what a [Replica] and a [Gateway] have in common: the calls of users, and the way
// of a command from its call to the log.
type requests struct {
	*facts
	around around
	calls  callList
	outbox outbox
}

// around is what requests need of what is around them.
type around interface {
	// leader returns the leader known here, or 0, and the term in which it leads.
	leader() (id, term uint64)
	// appendProposal takes a proposal of this node's own, if this node leads.
	appendProposal(wire.Proposal) wire.Verdict
	post(to uint64, body wire.Body)
	// unable returns why no command can be taken now, or nil; timeout returns the cause for a
	// call whose deadline passed now.
	unable() error
	timeout() error
	// callEnded takes the end of a call.
	callEnded(Done)
}

// takeOwn takes an own batch out of the outbox, if the entry is one.
func (r *requests) takeOwn(id wire.CommandID) *batch {
	if id.Origin != r.cfg.ID || id.Boot != r.outbox.boot {
		return nil
	}
	b := r.outbox.find(id.Sequence)
	if b != nil {
		r.outbox.remove(b)
		if b.conf == nil {
			r.outbox.took(r.now - b.since)
		}
	}
	return b
}

// superseded ends the calls of an own batch that was applied, so that nobody here ever sees the
// results.
func (r *requests) superseded(own *batch) {
	if own == nil {
		return
	}
	for _, c := range own.calls {
		c.open = true
		r.finishWith(c, ErrSuperseded)
	}
}

// jumped settles the fate of batches as of an entry: the entries up to there were not looked
// at. t has the row of this origin.
func (r *requests) jumped(t originTable, at logMark) {
	newest := t.boot(r.cfg.ID)
	for _, b := range slices.Clone(r.outbox.batches) {
		if t.applied(r.id(b)) || newest > r.outbox.boot && b.sends > 0 {
			r.superseded(b)
			r.outbox.remove(b)
		}
	}
	r.passed(at)
	r.bootTaken(newest)
}

var _ around = (*Replica)(nil)

func (r *Replica) leader() (id, term uint64) { return r.state.Lead, r.state.Term }
func (r *Replica) callEnded(d Done)          { r.out.Done = append(r.out.Done, d) }

func (r *Replica) unable() error {
	if r.err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, r.err)
	}
	if r.stall.reason != nil {
		return r.stalled()
	}
	return nil
}

// timeout is the cause for a call whose deadline passed now.
func (r *Replica) timeout() error {
	err := ErrTimeout
	if r.state.Lead == raft.None {
		err = fmt.Errorf("%w, and %w: this node may be cut off from a majority, or an election is under way", ErrTimeout, ErrNoLeader)
	}
	if len(r.unaddressed) > 0 {
		err = fmt.Errorf("%w; the transport has no address for members %v", err, r.unaddressed)
	}
	if barring := r.settings.barring(); barring != nil {
		err = fmt.Errorf("%w; %w", err, barring)
	}
	if stalled := r.stalled(); stalled != nil {
		err = fmt.Errorf("%w; %w", err, stalled)
	}
	return err
}

// StopCalls ends all calls, as the driver is about to stop.
func (r *Replica) StopCalls() {
	if r.err != nil {
		r.endAllCalls(fmt.Errorf("%w: %w", ErrFailed, r.err))
	} else {
		r.endAllCalls(ErrStopped)
	}
}
