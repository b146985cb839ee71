// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3/confchange"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/rawnode/wire"
)

// sending is the last proposal that came from a node.
type sending struct{ boot, number uint64 }

// receiveProposal answers a proposal that another node sent here as to the
// leader of a term.
func (r *Replica) receiveProposal(from uint64, p wire.Proposal) {
	r.count.ForwardedIn++
	seen := r.sendings[from]
	if p.ID.Boot < seen.boot || p.ID.Boot == seen.boot && p.Number <= seen.number {
		return // delivered twice, or behind a later one: see wire.Proposal.Number
	}
	r.sendings[from] = sending{boot: p.ID.Boot, number: p.Number}
	v := r.checkProposal(from, p)
	if v.Outcome == 0 {
		v = r.appendProposal(p)
	}
	if v.Outcome != wire.Accepted {
		r.count.RefusedIn++
	}
	v.ID, v.Number = p.ID, p.Number
	r.post(from, v)
}

// checkProposal looks at what a leader must not put into its log: nobody could
// read it, and the log's readers stop there.
func (r *Replica) checkProposal(from uint64, p wire.Proposal) wire.Verdict {
	malformed := func(format string, args ...any) wire.Verdict {
		r.count.BadMessages++
		return wire.Verdict{Outcome: wire.Malformed, Term: r.state.Term, Reason: fmt.Sprintf(format, args...)}
	}
	if p.ID.Origin != from {
		return malformed("proposal %v from node %d", p.ID, from)
	}
	var env envelope
	if p.ConfChange {
		cc := &pb.ConfChangeV2{}
		if err := proto.Unmarshal(p.Data, cc); err != nil {
			return malformed("configuration change: %v", err)
		}
		var ok bool
		if env, ok = decodeConfContext(cc.GetContext()); !ok {
			return malformed("configuration change without an id")
		}
	} else {
		var err error
		if env, err = decodeEnvelope(p.Data); err != nil {
			return malformed("%v", err)
		}
	}
	if env.id != p.ID {
		return malformed("proposal %v contains %v", p.ID, env.id)
	}
	return wire.Verdict{}
}

// appendProposal appends to the log of the leader of a term, in the turn in
// which the term is compared: the entry gets this term, or there is none.
func (r *Replica) appendProposal(p wire.Proposal) wire.Verdict {
	r.drain() // the core may have lost, or won, leadership since it was looked at
	if !r.leads() || r.state.Term != p.Term {
		return wire.Verdict{Outcome: wire.NotLeader, Term: r.state.Term, Leader: r.state.Lead}
	}
	if r.stall.reason != nil {
		return wire.Verdict{Outcome: wire.Busy, Term: r.state.Term}
	}
	r.dirty = true
	var err error
	if p.ConfChange {
		cc := &pb.ConfChangeV2{}
		if err := proto.Unmarshal(p.Data, cc); err != nil {
			return wire.Verdict{Outcome: wire.Malformed, Term: r.state.Term, Reason: err.Error()}
		}
		if err := r.fits(cc); err != nil {
			return wire.Verdict{Outcome: wire.Malformed, Term: r.state.Term, Reason: err.Error()}
		}
		err = r.core.ProposeConfChange(cc)
	} else {
		err = r.core.Propose(p.Data)
	}
	if err != nil {
		return wire.Verdict{Outcome: wire.Busy, Term: r.state.Term}
	}
	r.last++
	return wire.Verdict{Outcome: wire.Accepted, Index: r.last, Term: r.state.Term}
}

// fits reports what is wrong with a change for the present configuration. One
// that does not fit would enter the log all the same, and when it is applied
// every member would panic.
func (r *Replica) fits(cc *pb.ConfChangeV2) error {
	if t := cc.GetTransition(); t < pb.ConfChangeTransitionAuto || t > pb.ConfChangeTransitionJointExplicit {
		return fmt.Errorf("unknown transition %d", t)
	}
	cfg, progress := r.core.Members()
	t := tracker.MakeProgressTracker(r.cfg.MaxInflightMsgs, uint64(r.cfg.MaxInflightBytes))
	t.Config = cfg
	for id, p := range progress {
		t.Progress[id] = &p
	}
	change := confchange.Changer{Tracker: t, LastIndex: r.last}
	var err error
	if cc.LeaveJoint() {
		_, _, err = change.LeaveJoint()
	} else if autoLeave, joint := cc.EnterJoint(); joint {
		_, _, err = change.EnterJoint(autoLeave, cc.GetChanges()...)
	} else {
		_, _, err = change.Simple(cc.GetChanges()...)
	}
	if err != nil {
		return fmt.Errorf("it does not fit the configuration %v: %w", cfg, err)
	}
	return nil
}
