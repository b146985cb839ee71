// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package electorate

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/confchange"
	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

// IsChange reports whether an entry changes the members.
func IsChange(e *pb.Entry) bool {
	return e.GetType() == pb.EntryConfChange || e.GetType() == pb.EntryConfChangeV2
}

// Decode reads a change of either version. Changes impossible in every configuration are
// refused.
func Decode(e *pb.Entry) (*pb.ConfChangeV2, error) {
	cc, err := Unmarshal(e)
	if err != nil {
		return nil, fmt.Errorf("configuration change of %d bytes: %w", len(e.GetData()), err)
	}
	if t := cc.GetTransition(); t < pb.ConfChangeTransitionAuto || t > pb.ConfChangeTransitionJointExplicit {
		return nil, fmt.Errorf("configuration change with unknown transition %d", t)
	}
	return cc, nil
}

// Unmarshal reads a change of either version, whatever it asks for.
func Unmarshal(e *pb.Entry) (*pb.ConfChangeV2, error) {
	var m interface {
		proto.Message
		pb.ConfChangeI
	} = &pb.ConfChangeV2{}
	if e.GetType() == pb.EntryConfChange {
		m = &pb.ConfChange{}
	}
	if err := proto.Unmarshal(e.GetData(), m); err != nil {
		return nil, err
	}
	return m.AsV2(), nil
}

// The life of a change. Each of these reports whether others count than before.

// Appended hears of entries that now stand at the end of the log.
func (e *Electorate) Appended(ents []*pb.Entry) bool {
	if !e.rules.Tracks {
		return false
	}
	n := len(e.pending)
	for _, ent := range ents {
		if IsChange(ent) {
			e.pending = append(e.pending, ent.GetIndex())
		}
	}
	return len(e.pending) > n && e.derive()
}

// Cut hears that the log is about to be dropped from an index on.
func (e *Electorate) Cut(from uint64) bool {
	n, _ := slices.BinarySearch(e.pending, from)
	if n == len(e.pending) {
		return false
	}
	e.pending = e.pending[:n]
	return e.derive()
}

// Reported hears that the host has reported the log as applied up to an index, and whether it is the
// host of a leader.
func (e *Electorate) Reported(index uint64, leads bool) bool {
	held := e.held(index, leads)
	return e.end(func(i int, at uint64) bool { return at <= index && (e.rules.AppliedFirst || i < held) })
}

// Repeats hears, at the start, that the host is handed its log again, which ends at last and was
// committed to an index: its state may hold changes, and it does not say which.
func (e *Electorate) Repeats(committed, last uint64) {
	if e.rules.Tracks {
		e.past = &past{committed: committed, last: last}
	}
}

// held returns how many of the pending changes a report ends, because the state that the host began with
// may hold them. A follower puts what was committed at the start into force before it reports. A leader
// may be late, and it may be handed such changes, too: see MayCampaign of coding. There, and behind what
// was committed, changes end that leave the members in force as they are.
func (e *Electorate) held(index uint64, leads bool) (n int) {
	if e.past == nil || len(e.pending) == 0 {
		return 0
	}
	for !leads && n < len(e.pending) && e.pending[n] <= min(index, e.past.committed) {
		n++
	}
	t := inForce(e.members)
	for i := n; i < len(e.pending) && e.pending[i] <= min(index, e.past.last); i++ {
		cc, err := e.change(e.pending[i])
		if err == nil {
			t.Config, t.Progress, err = changed(confchange.Changer{Tracker: t, LastIndex: 1}, cc)
		}
		if err != nil {
			break
		}
		if t.ConfState().Equivalent(e.ConfState()) == nil {
			n = i + 1
		}
	}
	e.past.reported = append(e.past.reported, e.pending[:n]...)
	return n
}

// change reads a change in the log.
func (e *Electorate) change(index uint64) (*pb.ConfChangeV2, error) {
	ent, err := e.log.Entry(index)
	if err != nil {
		return nil, err
	}
	return Decode(ent)
}

// end drops the leading pending changes for which over holds.
func (e *Electorate) end(over func(i int, at uint64) bool) bool {
	n := 0
	for n < len(e.pending) && over(n, e.pending[n]) {
		n++
	}
	if n == 0 {
		return false
	}
	e.pending = e.pending[n:]
	return e.derive()
}

// Apply puts a change into force, for a log that ends at last. A change of node 0 changes
// nothing: the host has refused the change that it was handed.
func (e *Electorate) Apply(cc *pb.ConfChangeV2, last uint64) (before tracker.ProgressMap, err error) {
	change := confchange.Changer{Tracker: inForce(e.members), LastIndex: last}
	cfg, progress, err := changed(change, cc)
	if err != nil {
		return nil, err
	}
	before = change.Tracker.Progress
	for id, pr := range progress {
		// A leader already follows members of configurations to come.
		if was := e.members.Progress[id]; was != nil && before[id] == nil {
			was.IsLearner = pr.IsLearner
			progress[id] = was
		}
	}
	e.members.Config, e.members.Progress = cfg, progress
	n := e.handed(cc)
	if e.since = last; n > 0 {
		e.since = e.pending[n-1]
	}
	e.pending = e.pending[n:]
	e.derive()
	return before, nil
}

// handed returns how many of the pending changes are over when the host calls
// ApplyConfChange with cc. Hosts call in the order of the log, so these are the changes up to
// the one with the same content; or the first, for a change of node 0. In a bootstrap the
// host puts changes into force that it was not handed, and a late host calls for one that its
// report has ended: that ends none that the host was handed since, and the host will call for those
// that the report ended beside it, too.
func (e *Electorate) handed(cc *pb.ConfChangeV2) int {
	n := 0
	for n < len(e.pending) && e.pending[n] <= e.log.HandedOut() {
		n++
		if is, err := e.change(e.pending[n-1]); err == nil && proto.Equal(is, cc) {
			return n
		}
	}
	if p := e.past; p != nil {
		for i, at := range p.reported {
			if is, err := e.change(at); err == nil && proto.Equal(is, cc) {
				e.pending, p.reported = slices.Concat(p.reported[i+1:], e.pending), nil
				return 0
			}
		}
	}
	return min(n, 1)
}

// Members is a configuration with the progress of its members.
type Members struct {
	config   tracker.Config
	progress tracker.ProgressMap
}

// Restored returns the members that a snapshot's ConfState names, for a log that ends at last.
func (e *Electorate) Restored(cs *pb.ConfState, last uint64) (Members, error) {
	if cs == nil {
		return Members{}, fmt.Errorf("it is nil")
	}
	t := tracker.MakeProgressTracker(e.members.MaxInflight, e.members.MaxInflightBytes)
	cfg, progress, err := confchange.Restore(confchange.Changer{Tracker: t, LastIndex: last}, cs)
	if err != nil {
		return Members{}, err
	}
	t.Config = cfg
	return Members{config: cfg, progress: progress}, cs.Equivalent(t.ConfState())
}

// Take puts restored members into force, for a state that holds the log up to index at most. No
// change in the log is pending: a snapshot has taken the log's place, or the log was not looked
// at yet.
func (e *Electorate) Take(m Members, index uint64) {
	e.members.Config, e.members.Progress = m.config, m.progress
	e.pending, e.since = nil, index
	e.derive()
}

// Learn takes the members that another node has in force at an index, if the log here has the
// same entry there and the host has not applied a change up to there. It reports whether
// others count than before.
func (e *Electorate) Learn(m Members, index uint64) bool {
	if first := e.FirstPending(); !e.rules.Foresees || first == 0 || first > index || index <= e.LearnedAt() {
		return false
	}
	e.learned = &learned{m, index}
	return e.derive()
}

// derive computes who comes, and returns true.
func (e *Electorate) derive() bool {
	e.coming, e.everybody, e.newest = nil, nil, nil
	if first := e.FirstPending(); first == 0 || first > e.LearnedAt() {
		e.learned = nil
	}
	if len(e.pending) == 0 || !e.rules.Foresees {
		return true
	}
	t := tracker.MakeProgressTracker(1, 0)
	t.Config, t.Progress = e.members.Clone(), cloneProgress(e.members.Progress)
	later := e.pending
	if e.learned != nil {
		t.Config, t.Progress = e.learned.config.Clone(), cloneProgress(e.learned.progress)
		n, _ := slices.BinarySearch(later, e.learned.at+1)
		later, e.newest = later[n:], t.Config.Voters.IDs()
		e.expect(t.Progress)
	}
	for _, index := range later {
		cc, err := e.change(index)
		if err != nil {
			return true
		}
		cfg, progress, err := changed(confchange.Changer{Tracker: inForce(t), LastIndex: 1}, cc)
		if err != nil {
			// Refused on applying, as a host may. A host may refuse further changes,
			// and so reach configurations not derived here. With up to three changes
			// each such configuration is one step away from a derived one, and so
			// covered. Four changes at once need a host that applied none of the first
			// three, although a leader had, and lost their commit index in one crash.
			continue
		}
		t.Config, t.Progress, e.newest = cfg, progress, cfg.Voters.IDs()
		if len(later) < 2 {
			return true
		}
		for _, v := range cfg.Voters {
			if len(v) > 0 {
				e.coming = append(e.coming, v)
			}
		}
		e.expect(progress)
	}
	return true
}

// expect adds members to everybody.
func (e *Electorate) expect(members tracker.ProgressMap) {
	if e.everybody == nil {
		e.everybody = make(map[uint64]struct{}, len(members))
	}
	for id := range members {
		e.everybody[id] = struct{}{}
	}
}

// Follow has a leader replicate to members of configurations to come, from index next on:
// their acknowledgements count. Others, but for the leader itself, are followed no longer.
func (e *Electorate) Follow(leader, next uint64) {
	t := &e.members
	for id := range e.everybody {
		if t.Progress[id] == nil {
			voter := slices.ContainsFunc(e.Sets(), func(v quorum.MajorityConfig) bool { _, ok := v[id]; return ok })
			pr := e.NewProgress(next, !voter)
			t.Progress[id] = &pr
		}
	}
	for id := range t.Progress {
		if id != leader && !isMember(t.Config, id) && !e.Expects(id) {
			delete(t.Progress, id)
		}
	}
}

func changed(change confchange.Changer, cc *pb.ConfChangeV2) (tracker.Config, tracker.ProgressMap, error) {
	if cc.LeaveJoint() {
		return change.LeaveJoint()
	}
	if autoLeave, joint := cc.EnterJoint(); joint {
		return change.EnterJoint(autoLeave, cc.Changes...)
	}
	return change.Simple(cc.Changes...)
}

// inForce returns a tracker with the members of its configuration only. For a change the
// members to come, which a leader follows, are no members yet, or the outcome here would
// differ from the outcome elsewhere.
func inForce(t tracker.ProgressTracker) tracker.ProgressTracker {
	for id := range t.Progress {
		if !isMember(t.Config, id) {
			only := tracker.ProgressMap{}
			for id, pr := range t.Progress {
				if isMember(t.Config, id) {
					only[id] = pr
				}
			}
			t.Progress = only
			break
		}
	}
	return t
}

// isMember reports whether a node is a voter or learner of a configuration.
func isMember(c tracker.Config, id uint64) bool {
	_, learner := c.Learners[id]
	_, next := c.LearnersNext[id]
	return learner || next || isVoter(c, id)
}

func isVoter(c tracker.Config, id uint64) bool {
	_, incoming := c.Voters[0][id]
	_, outgoing := c.Voters[1][id]
	return incoming || outgoing
}

func cloneProgress(m tracker.ProgressMap) tracker.ProgressMap {
	out := make(tracker.ProgressMap, len(m))
	for id, pr := range m {
		p := *pr
		out[id] = &p
	}
	return out
}
