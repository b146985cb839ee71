// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft/internal/extend"
)

// Waiting configuration changes. A brake may hold a change back (MayChange): the leader
// keeps the change, refuses others meanwhile, and appends the held change when the
// brake lets go.

// holdBack keeps a configuration change if it must wait, and reports whether the
// proposal is kept.
func (l *leader) holdBack(ents []*pb.Entry) (bool, error) {
	for i, e := range ents {
		if !isConfChange(e) {
			if err := l.coder.MayPropose(e); err != nil {
				return false, fmt.Errorf("%w: %w", ErrProposalDropped, err)
			}
			continue
		}
		cc, err := decodeConfChange(e)
		if err != nil || l.objection(cc) != "" {
			continue
		}
		change := l.change(cc)
		change.Second = l.cfg.DisableConfChangeValidation && slices.ContainsFunc(ents[:i], isConfChange)
		if l.held == nil && l.coder.MayChange(change) {
			continue
		}
		if len(ents) > 1 {
			return false, fmt.Errorf("%w: a configuration change must wait until the one before is in force, coded entries are safe under it and no lease stands against it; propose it by itself", ErrProposalDropped)
		}
		if l.held != nil {
			return false, fmt.Errorf("%w: another configuration change waits until the one before is in force, coded entries are safe under it and no lease stands against it", ErrProposalDropped)
		}
		l.held = copyEntry(e, entryID{})
		l.logger.Infof("raft: node %x has configuration change %s wait until the one before is in force, coded entries are safe under it and no lease stands against it", l.id, DescribeConfChange(cc))
		return true, nil
	}
	return false, nil
}

// change returns a configuration change as brakes see it.
func (l *leader) change(cc *pb.ConfChangeV2) *extend.Change {
	c := &extend.Change{Insists: l.cfg.DisableConfChangeValidation}
	t := l.members
	t.Config, t.Progress = l.members.Clone(), cloneProgress(l.members.Progress)
	cfg, _, err := changed(t, cc)
	if err != nil {
		return c // will be refused
	}
	for id := range cfg.Voters.IDs() {
		if !isVoter(l.members.Config, id) {
			c.New = append(c.New, id)
		}
	}
	slices.Sort(c.New)
	if _, joint := cc.EnterJoint(); !joint && (cc.LeaveJoint() || !maps.Equal(cfg.Voters[0], l.members.Voters[0])) {
		c.To = cfg.Voters[0]
	}
	return c
}

// leave is the change that leaves the joint configuration in force automatically.
func (l *leader) leave() *extend.Change {
	return &extend.Change{To: l.members.Voters[0], Leaves: true}
}

// heldChange returns the waiting change, or nil.
func (l *leader) heldChange() *extend.Change {
	switch {
	case l.held != nil:
		if cc, err := decodeConfChange(l.held); err == nil {
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
	} else if l.coder.MayChange(l.heldChange()) {
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
	return l.members.AutoLeave && l.log.applied >= l.confChangeAt
}

// leaveJointIfDue proposes to leave a joint configuration with AutoLeave. If the
// proposal fails, for example during a transfer, the node tries again after the next
// applied entry.
func (l *leader) leaveJointIfDue() {
	if !l.mustLeaveJoint() || l.held != nil || !l.coder.MayChange(l.leave()) {
		return // a held change of the host waits for a tick
	}
	if l.leaveAt == l.confChangeAt {
		l.logger.Warningf("raft: node %x hears that entry %d, which leaves %s, is applied before ApplyConfChange was called for it; call that first: "+
			"each node panics at the second such entry that a leader appends otherwise", l.id, l.leaveAt, l.members.Config)
		if l.electorate.foresees {
			return // upstream's library appends the entry
		}
	}
	// No data: read as the empty change, which leaves, and fits every limit.
	if err := l.propose([]*pb.Entry{{Type: pb.EntryConfChangeV2.Enum()}}); err != nil {
		l.logger.Infof("raft: node %x does not leave %s yet: %v", l.id, l.members.Config, err)
	}
}
