// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
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
//     present: heard from within an election timeout. A node that gets a vote must be
//     present, too. A learner that gets a vote must have the log, but for MaxPromoteLag
//     entries, or the first write after the change waits for all missing entries. A caller
//     can override this check. (A new leader has not heard from all members yet, and lets
//     the change wait; so does a leader that has just asked a new voter, see askNewVoters.)
//
// A leader about to lose its vote hands over first, and its successor makes the change: the
// group is then without a leader for the time of a transfer, not for an election timeout.
type parting struct {
	tried  int    // transfers in this term
	lastAt uint64 // tick of the last
}

// maxPartings bounds the transfers tried by a leader before the leader makes a change that
// ends its own leadership.
const maxPartings = 3

// checkChange returns the outcome for a change that is not to be made, and why.
func (r *Replica) checkChange(cc *pb.ConfChangeV2, force bool) (next tracker.Config, outcome wire.Outcome, err error) {
	now, progress := r.core.Members()
	if next, err = r.fits(cc, now, progress); err != nil {
		return next, wire.Malformed, err
	}
	if err := r.knowsMembers(cc, progress); err != nil {
		return next, wire.NoMember, err
	}
	if r.cfg.Admit != nil {
		if err := r.cfg.Admit(r.host.conf, cc); err != nil {
			return next, wire.Malformed, err
		}
	}
	if force || cc.LeaveJoint() {
		return next, 0, nil
	}
	if err := r.survives(now, next, progress); err != nil {
		if r.ticks-r.ledSince <= 2*uint64(r.cfg.ElectionTick) {
			return next, wire.Busy, err
		}
		return next, wire.Unsafe, err
	}
	outcome, err = r.askNewVoters(next, progress)
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
	for i, c := range cc.GetChanges() {
		if id := c.GetNodeId(); id == raft.None || id >= raft.LocalApplyThread {
			return fmt.Errorf("step %d of %d is of node %d, want 1 to %d", i+1, len(cc.GetChanges()), id, raft.LocalApplyThread-1)
		}
	}
	return nil
}

// fits returns the configuration behind a change, or why there is none.
func (r *Replica) fits(cc *pb.ConfChangeV2, now tracker.Config, progress map[uint64]tracker.Progress) (next tracker.Config, err error) {
	if err := readable(cc); err != nil {
		return next, err
	}
	if cc.LeaveJoint() && len(now.Voters[1]) == 0 {
		return next, fmt.Errorf("it is empty, which leaves a joint configuration; %v is none", now)
	}
	t := tracker.MakeProgressTracker(r.cfg.MaxInflightMsgs, uint64(r.cfg.MaxInflightBytes))
	t.Config = now
	for id, p := range progress {
		t.Progress[id] = &p
	}
	change := confchange.Changer{Tracker: t, LastIndex: r.last}
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
func (r *Replica) knowsMembers(cc *pb.ConfChangeV2, progress map[uint64]tracker.Progress) error {
	for i, c := range cc.GetChanges() {
		id := c.GetNodeId()
		_, member := progress[id]
		if typ := c.GetType(); typ == pb.ConfChangeAddNode || typ == pb.ConfChangeAddLearnerNode || member {
			continue
		}
		if !slices.ContainsFunc(cc.GetChanges()[:i], func(c *pb.ConfChangeSingle) bool { return c.GetNodeId() == id }) {
			return fmt.Errorf("%v of node %d, which is no member: the voters are %v, the learners %v",
				c.GetType(), id, r.host.conf.GetVoters(), r.host.conf.GetLearners())
		}
	}
	return nil
}

// survives reports why the group might not go on behind a change.
func (r *Replica) survives(now, next tracker.Config, progress map[uint64]tracker.Progress) error {
	lagging := func(id uint64) bool {
		p, ok := progress[id]
		return !ok || p.Match+r.cfg.MaxPromoteLag < r.last
	}
	for id := range next.Voters[0] {
		p, member := progress[id]
		if member && p.IsLearner && !r.reachable(id) {
			return fmt.Errorf("learner %d cannot be reached: it may be promoted when it answers", id)
		}
		if member && p.IsLearner && lagging(id) {
			return fmt.Errorf("learner %d is at index %d and the log at %d: it may be promoted when it is within %d entries; wait until it has caught up", id, p.Match, r.last, r.cfg.MaxPromoteLag)
		}
	}
	var lacking []uint64
	fit := func(id uint64) bool {
		_, voted := now.Voters.IDs()[id]
		return r.reachable(id) && (voted || !lagging(id))
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

// askNewVoters returns the outcome for a change unless all voters to come that are no
// members have been heard from within an election timeout. A node that waits to be
// added says nothing by itself. So the leader sends it a heartbeat, which commits
// nothing and which a node without a log answers, too; for an election timeout the
// change waits for the answer.
func (r *Replica) askNewVoters(next tracker.Config, progress map[uint64]tracker.Progress) (wire.Outcome, error) {
	var silent []uint64
	outcome := wire.Unsafe
	for _, id := range next.Voters[0].Slice() {
		if _, member := progress[id]; member || r.reachable(id) {
			delete(r.asked, id)
			continue
		}
		silent = append(silent, id)
		if _, asked := r.asked[id]; !asked {
			r.asked[id] = r.ticks
		}
		if r.ticks-r.asked[id] <= uint64(r.cfg.ElectionTick) {
			outcome = wire.Busy
		}
		r.post(id, r.body(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(r.cfg.ID), To: new(id), Term: new(r.state.Term)}))
	}
	if len(silent) == 0 {
		return 0, nil
	}
	if outcome == wire.Unsafe {
		clear(r.asked) // a caller that tries again waits again
	}
	return outcome, fmt.Errorf("nodes %v would get a vote and have not answered: start them, and see that each node has the addresses of all; or add them as learners first, or force the change", silent)
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
func (r *Replica) parts(next tracker.Config) bool {
	if _, stays := next.Voters[0][r.cfg.ID]; stays || r.leaving.tried >= maxPartings {
		return false
	}
	if r.leaving.tried > 0 && r.ticks-r.leaving.lastAt <= uint64(r.cfg.ElectionTick) {
		return true
	}
	heirs := r.heirs(next.Voters[0].Slice())
	if len(heirs) == 0 {
		return false
	}
	to := heirs[r.leaving.tried%len(heirs)]
	r.leaving.tried++
	r.leaving.lastAt = r.ticks
	r.count.HandOversLeaving++
	r.core.TransferLeader(to)
	r.dirty = true
	return true
}

// appendConfChange appends a change to the log of a leader.
func (r *Replica) appendConfChange(cc *pb.ConfChangeV2, force bool) (wire.Outcome, error) {
	next, outcome, err := r.checkChange(cc, force)
	if err != nil {
		return outcome, err
	}
	if r.parts(next) {
		return wire.Busy, raft.ErrProposalDropped
	}
	if err := r.core.ProposeConfChange(cc); err != nil {
		return wire.Busy, err
	}
	return wire.Accepted, nil
}
