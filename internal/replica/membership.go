// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/confchange"
	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// The leader checks a configuration change before the change enters the log:
//
//   - Is the change not empty, and does the change fit the configuration? Otherwise the
//     change would enter the log all the same, and make every member panic when applied.
//   - Does the node of the change exist, and does the state machine admit the change? The
//     state machine may look into what it has applied, because the core puts an empty entry in
//     the place of a change while an earlier one is not applied.
//   - Will the group go on? A majority of each half of the next configuration must be
//     present: heard from within an election timeout, and, because a node may have died
//     since, again behind a question on behalf of this change: see inquiry. A node that
//     gets a vote must be present, too. A learner that gets a vote must have the log, but
//     for MaxPromoteLag entries, or the first write after the change waits for all missing
//     entries. A caller can override this check. (A new leader has not heard from all
//     members yet, and lets the change wait.)
//
// A leader about to lose its vote hands over first, and its successor makes the change: the
// group is then without a leader for the time of a transfer, not for an election timeout.
type changes struct {
	*facts
	changer  changedCore
	around   aroundChanges
	founding *founding
	placing  *placing

	leaving   parting
	inquiries inquiries
}

// changedCore is what changes need of a core.
type changedCore interface {
	ProposeConfChange(pb.ConfChangeI) error
	TransferLeader(to uint64)
}

// aroundChanges is what changes need of what is around them.
type aroundChanges interface {
	askLogEnd(to, number uint64)
	postRaft(*pb.Message)
}

// parting is what a leader does about the loss of its vote.
type parting struct {
	tried  int    // transfers in this term
	lastAt uint64 // tick of the last
}

func (c *changes) leaderChanged() {
	c.leaving = parting{}
	clear(c.inquiries.open)
}

// maxPartings bounds the transfers tried by a leader before the leader makes a change that
// ends its own leadership.
const maxPartings = 3

// check returns the outcome for a change that is not to be made, and why.
func (c *changes) check(id wire.CommandID, cc *pb.ConfChangeV2, force bool) (next tracker.Config, outcome wire.Outcome, err error) {
	now, progress := c.core.Members()
	if next, err = c.fits(cc, now, progress); err != nil {
		return next, wire.Malformed, err
	}
	if err := c.knowsMembers(cc, progress); err != nil {
		return next, wire.NoMember, err
	}
	if c.cfg.Admit != nil {
		if err := c.cfg.Admit(c.host.conf, cc); err != nil {
			return next, wire.Malformed, err
		}
	}
	if force || cc.LeaveJoint() {
		return next, 0, nil
	}
	if err := c.survives(now, next, progress, c.reachable); err != nil {
		if c.ticks-c.ledSince <= 2*uint64(c.cfg.ElectionTick) {
			return next, wire.Busy, err
		}
		return next, wire.Unsafe, err
	}
	if sameVoters(now, next) {
		return next, 0, nil
	}
	outcome, err = c.inquire(id, now, next, progress)
	return next, outcome, err
}

// readable reports what is wrong with a change by itself.
func readable(cc *pb.ConfChangeV2) error {
	if cc == nil {
		return errors.New("it is nil, want a change")
	}
	if t := cc.GetTransition(); t < pb.ConfChangeTransitionAuto || t > pb.ConfChangeTransitionJointExplicit {
		return fmt.Errorf("its transition is %d, want %d to %d", t, pb.ConfChangeTransitionAuto, pb.ConfChangeTransitionJointExplicit)
	}
	if len(cc.GetChanges()) == 0 && !cc.LeaveJoint() {
		return fmt.Errorf("it has no steps, and its transition is %v: name the members to add or remove, or leave out both to leave a joint configuration", cc.GetTransition())
	}
	if n := len(cc.GetChanges()); n > maxChanges {
		return fmt.Errorf("it has %d steps, the bound is %d", n, maxChanges)
	}
	for i, c := range cc.GetChanges() {
		if id := c.GetNodeId(); id == raft.None || id >= raft.LocalApplyThread {
			return fmt.Errorf("step %d of %d is of node %d, want 1 to %d", i+1, len(cc.GetChanges()), id, raft.LocalApplyThread-1)
		}
	}
	return nil
}

// fits returns the configuration behind a change, or why there is none.
func (c *changes) fits(cc *pb.ConfChangeV2, now tracker.Config, progress map[uint64]tracker.Progress) (next tracker.Config, err error) {
	if err := readable(cc); err != nil {
		return next, err
	}
	if cc.LeaveJoint() && len(now.Voters[1]) == 0 {
		return next, fmt.Errorf("it is empty, which leaves a joint configuration; %v is none", now)
	}
	t := tracker.MakeProgressTracker(c.cfg.MaxInflightMsgs, uint64(c.cfg.MaxInflightBytes))
	t.Config = now
	for id, p := range progress {
		t.Progress[id] = &p
	}
	change := confchange.Changer{Tracker: t, LastIndex: c.last}
	if cc.LeaveJoint() {
		next, _, err = change.LeaveJoint()
	} else if autoLeave, joint := cc.EnterJoint(); joint {
		next, _, err = change.EnterJoint(autoLeave, cc.GetChanges()...)
	} else {
		next, _, err = change.Simple(cc.GetChanges()...)
	}
	if err != nil {
		return next, fmt.Errorf("it does not fit the configuration %v: %w", now, err)
	}
	return next, nil
}

// knowsMembers reports whether a change is about a node that there is not.
func (c *changes) knowsMembers(cc *pb.ConfChangeV2, progress map[uint64]tracker.Progress) error {
	for i, step := range cc.GetChanges() {
		id := step.GetNodeId()
		_, member := progress[id]
		if typ := step.GetType(); typ == pb.ConfChangeAddNode || typ == pb.ConfChangeAddLearnerNode || member {
			continue
		}
		if !slices.ContainsFunc(cc.GetChanges()[:i], func(c *pb.ConfChangeSingle) bool { return c.GetNodeId() == id }) {
			return fmt.Errorf("%v of node %d, which is no member: the voters are %v, the learners %v",
				step.GetType(), id, c.host.conf.GetVoters(), c.host.conf.GetLearners())
		}
	}
	return nil
}

// survives returns the reason why the group might stop after a change if no node is alive but those present, or nil.
func (c *changes) survives(now, next tracker.Config, progress map[uint64]tracker.Progress, present func(uint64) bool) error {
	lagging := func(id uint64) bool {
		p, ok := progress[id]
		return !ok || p.Match+c.cfg.MaxPromoteLag < c.last
	}
	for id := range next.Voters[0] {
		p, member := progress[id]
		if member && p.IsLearner && !present(id) {
			return fmt.Errorf("learner %d cannot be reached: it may be promoted when it answers%s", id, c.founding.strange(id))
		}
		if member && p.IsLearner && lagging(id) {
			return fmt.Errorf("learner %d is at index %d and the log at %d: it may be promoted when it is within %d entries; wait until it has caught up", id, p.Match, c.last, c.cfg.MaxPromoteLag)
		}
	}
	var lacking []uint64
	fit := func(id uint64) bool {
		_, voted := now.Voters.IDs()[id]
		return present(id) && (voted || !lagging(id))
	}
	for _, half := range next.Voters {
		short := slices.DeleteFunc(half.Slice(), fit)
		if len(half) > 0 && len(half)-len(short) < len(half)/2+1 {
			lacking = append(lacking, short...)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	slices.Sort(lacking)
	return fmt.Errorf("no majority of the voters %v would be left: %v cannot be reached or have not caught up; add nodes as learners first, remove dead members first, or force the change",
		voters(next.Voters), slices.Compact(lacking))
}

// sameVoters reports whether a change leaves the voters as they are, so that the group needs
// behind the change whom it needs already.
func sameVoters(now, next tracker.Config) bool {
	return !slices.ContainsFunc(next.Voters[:], func(half quorum.MajorityConfig) bool {
		return len(half) > 0 && !maps.Equal(half, now.Voters[0]) && !maps.Equal(half, now.Voters[1])
	})
}

// voters returns the voters of both halves.
func voters(c quorum.JointConfig) []uint64 {
	ids := make([]uint64, 0, len(c[0])+len(c[1]))
	for id := range c.IDs() {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// parts reports whether a change is to wait, because the change takes the vote from this
// leader and another leader is to make the change. parts then begins to hand over.
func (c *changes) parts(next tracker.Config) bool {
	if _, stays := next.Voters[0][c.cfg.ID]; stays || c.leaving.tried >= maxPartings {
		return false
	}
	if c.leaving.tried > 0 && c.ticks-c.leaving.lastAt <= uint64(c.cfg.ElectionTick) {
		return true
	}
	heirs := c.placing.heirs(next.Voters[0].Slice())
	if len(heirs) == 0 {
		return false
	}
	to := heirs[c.leaving.tried%len(heirs)]
	c.leaving.tried++
	c.leaving.lastAt = c.ticks
	c.count.HandOversLeaving++
	c.changer.TransferLeader(to)
	return true
}

// append appends a change to the log of a leader.
func (c *changes) append(id wire.CommandID, cc *pb.ConfChangeV2, force bool) (wire.Outcome, error) {
	next, outcome, err := c.check(id, cc, force)
	if outcome != wire.Busy && outcome != 0 {
		delete(c.inquiries.open, id) // a caller that tries again waits again
	}
	if err != nil {
		return outcome, err
	}
	if c.parts(next) {
		return wire.Busy, raft.ErrProposalDropped
	}
	if err := c.changer.ProposeConfChange(cc); err != nil {
		return wire.Busy, err
	}
	delete(c.inquiries.open, id)
	return wire.Accepted, nil
}
