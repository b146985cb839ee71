// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
)

// Configuration changes that wait. A brake may hold a change back (MayChange): the
// leader keeps one such change, refuses others meanwhile, and appends it when the
// brake lets go.

// holdBack reports whether a proposal is a configuration change that must wait; it is
// kept.
func (l *leader) holdBack(ents []*pb.Entry) (bool, error) {
	for i, e := range ents {
		if !isConfChange(e) {
			if err := l.coder.MayPropose(e); err != nil {
				return false, fmt.Errorf("%w: %w", ErrProposalDropped, err)
			}
			continue
		}
		cc, err := decodeConfChange(e)
		second := l.cfg.DisableConfChangeValidation && slices.ContainsFunc(ents[:i], isConfChange)
		if err != nil || l.objection(cc) != "" || l.held == nil && l.coder.MayChange(l.votersAfter(cc), second) {
			continue
		}
		if len(ents) > 1 {
			return false, fmt.Errorf("%w: a configuration change must wait until the one before is in force and coded entries are safe under it; propose it by itself", ErrProposalDropped)
		}
		if l.held != nil {
			return false, fmt.Errorf("%w: another configuration change waits until the one before is in force and coded entries are safe under it", ErrProposalDropped)
		}
		l.held = copyEntry(e, entryID{})
		l.logger.Infof("raft: node %x has configuration change %s wait until the one before is in force and coded entries are safe under it", l.id, DescribeConfChange(cc))
		return true, nil
	}
	return false, nil
}

// votersAfter returns the voters that count alone once a change is in force; nil if
// the present ones go on counting: on entering a joint configuration, and where
// only learners change.
func (l *leader) votersAfter(cc *pb.ConfChangeV2) quorum.MajorityConfig {
	if _, joint := cc.EnterJoint(); joint {
		return nil
	}
	if cc.LeaveJoint() {
		return l.members.Voters[0]
	}
	t := l.members
	t.Config, t.Progress = l.members.Clone(), cloneProgress(l.members.Progress)
	cfg, _, err := changed(t, cc)
	if err != nil || maps.Equal(cfg.Voters[0], l.members.Voters[0]) {
		return nil // it will be refused; or it is about learners
	}
	return cfg.Voters[0]
}

// heldVoters returns the voters that the change which waits leads to, or nil.
func (l *leader) heldVoters() quorum.MajorityConfig {
	switch {
	case l.held != nil:
		if cc, err := decodeConfChange(l.held); err == nil {
			return l.votersAfter(cc)
		}
	case l.mustLeaveJoint():
		return l.members.Voters[0]
	}
	return nil
}

// retryHeld appends the configuration change that waits, if it may be by now.
func (l *leader) retryHeld() {
	if l.held == nil {
		l.leaveJointIfDue()
		return
	}
	e := l.held
	cc, err := decodeConfChange(e)
	if err != nil || !l.coder.MayChange(l.votersAfter(cc), false) {
		return
	}
	l.held = nil
	if l.propose([]*pb.Entry{e}) != nil {
		// A transfer is under way, say. It stays the next one: the host may have
		// found that others fit behind it.
		l.held = e
	}
}

// mustLeaveJoint reports whether the configuration is joint, says that it is to be
// left by itself, and is the last one in the log.
func (l *leader) mustLeaveJoint() bool {
	return l.members.AutoLeave && l.log.applied >= l.confChangeAt
}

// leaveJointIfDue proposes to leave a joint configuration that is to be left by
// itself. If that fails, as during a transfer, the next applied entry brings us here
// again.
func (l *leader) leaveJointIfDue() {
	if !l.mustLeaveJoint() || l.held != nil || !l.coder.MayChange(l.members.Voters[0], false) {
		return // what the host has proposed waits for a tick
	}
	// No data: read as the empty change, which leaves, and fits every limit.
	if err := l.propose([]*pb.Entry{{Type: pb.EntryConfChangeV2.Enum()}}); err != nil {
		l.logger.Infof("raft: node %x does not leave %s yet: %v", l.id, l.members.Config, err)
	}
}
