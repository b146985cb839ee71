// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/electorate"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Waiting configuration changes. A brake may hold a change back (MayChange): the leader
// keeps the change, refuses others meanwhile, and appends the held change when the
// brake lets go.

// holdBack keeps a configuration change if it must wait, and reports whether the
// proposal is kept. An error refuses the whole proposal, before any of it counts.
func (l *leader) holdBack(ents []*pb.Entry) (bool, error) {
	for i, e := range ents {
		if !electorate.IsChange(e) {
			if err := l.extension.MayPropose(e); err != nil {
				return false, fmt.Errorf("%w: %w", ErrProposalDropped, err)
			}
			continue
		}
		cc, err := electorate.Decode(e)
		if err != nil {
			return false, fmt.Errorf("%w: %w: %w", ErrProposalDropped, ErrMalformedMessage, err)
		}
		if l.objection(cc) != "" {
			continue
		}
		change := l.change(cc)
		change.Second = l.cfg.DisableConfChangeValidation && slices.ContainsFunc(ents[:i], electorate.IsChange)
		why := l.mustWait(change)
		if why == nil && l.held != nil {
			why = errAnotherWaits
		}
		switch {
		case why == nil:
		case len(ents) > 1:
			return false, fmt.Errorf("%w: a configuration change must wait: %w; propose it by itself", ErrProposalDropped, why)
		case l.held != nil:
			return false, fmt.Errorf("%w: %w", ErrProposalDropped, why)
		default:
			l.held = copyEntry(e, ecraft.ID{})
			l.cfg.Logger.Infof("raft: node %x has configuration change %s wait: %v", l.id, DescribeConfChange(cc), why)
			return true, nil
		}
	}
	return false, nil
}

var (
	errAnotherWaits = errors.New("another configuration change waits to be appended")
	errBefore       = errors.New("another configuration change stands before it in the same proposal")
)

// mustWait returns why a configuration change must not be appended now, or nil.
func (l *leader) mustWait(change *extend.Change) error {
	switch err := l.members.MayFollow(); {
	case err != nil:
		return err
	case change.Second && l.members.Tracks():
		return errBefore
	}
	return l.extension.MayChange(change)
}

// change returns a configuration change as brakes see it.
func (l *leader) change(cc *pb.ConfChangeV2) *extend.Change {
	c := &extend.Change{Insists: l.cfg.DisableConfChangeValidation}
	cfg, brings, err := l.members.After(cc)
	if err != nil {
		return c // will be refused
	}
	c.New = brings
	if _, joint := cc.EnterJoint(); !joint && (cc.LeaveJoint() || !maps.Equal(cfg.Voters[0], l.members.Incoming())) {
		c.To = cfg.Voters[0]
	}
	return c
}

// leave is the change that leaves the joint configuration in force automatically.
func (l *leader) leave() *extend.Change {
	return &extend.Change{To: l.members.Incoming(), Leaves: true}
}

// heldChange returns the waiting change, or nil.
func (l *leader) heldChange() *extend.Change {
	switch {
	case l.held != nil:
		if cc, err := electorate.Decode(l.held); err == nil {
			return l.change(cc)
		}
	case l.mustLeaveJoint():
		return l.leave()
	}
	return nil
}

// retryHeld appends the waiting configuration change, if the brake has let go.
func (l *leader) retryHeld() {
	if l.held == nil {
		l.leaveJointIfDue()
	} else if l.mustWait(l.heldChange()) == nil {
		l.appendHeld(l.held)
	}
}

// refuseHeld appends an empty entry in the place of the waiting change. Applying the
// empty entry tells the proposer that the change was refused.
func (l *leader) refuseHeld() {
	if l.held != nil {
		l.appendHeld(&pb.Entry{Type: pb.EntryNormal.Enum()})
	}
}

// appendHeld appends an entry in the place of the waiting change.
func (l *leader) appendHeld(e *pb.Entry) {
	held := l.held
	l.held = nil
	if l.propose([]*pb.Entry{e}) != nil {
		// A transfer is under way, for example. The change stays the next one, because
		// the host may have found that others fit behind this change.
		l.held = held
	}
}

// mustLeaveJoint reports whether the configuration is joint, is to be left
// automatically, and is the last one in the log.
func (l *leader) mustLeaveJoint() bool {
	return l.members.MustLeave() && l.log.applied >= l.confChangeAt
}

// leaveJointIfDue proposes to leave a joint configuration with AutoLeave. If the
// proposal fails, for example during a transfer, the node tries again after the next
// applied entry.
func (l *leader) leaveJointIfDue() {
	if !l.mustLeaveJoint() || l.held != nil || l.mustWait(l.leave()) != nil {
		return // a held change of the host waits for a tick
	}
	if l.leaveAt == l.confChangeAt {
		l.cfg.Logger.Warningf("raft: node %x hears that entry %d, which leaves %s, is applied before ApplyConfChange was called for it; call that first: "+
			"each node panics at the second such entry, which this leader appends as upstream's library does", l.id, l.leaveAt, l.members.Config())
	}
	// No data: read as the empty change, which leaves, and fits every limit.
	if err := l.propose([]*pb.Entry{{Type: pb.EntryConfChangeV2.Enum()}}); err != nil {
		l.cfg.Logger.Infof("raft: node %x does not leave %s yet: %v", l.id, l.members.Config(), err)
	}
}
