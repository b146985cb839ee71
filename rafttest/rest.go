// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import "slices"

// This file is the third phase: nobody asks for anything, and all members are where they
// should be. Then a group sends heartbeats and their answers, and nothing else: a message
// that is sent again and again, and changes nothing, costs most where there are many
// groups.

// How long a group, live again, may go on sending, and how long the group is watched
// afterwards.
const (
	settleTime = 3 * electionTime
	restTime   = 2 * electionTime
)

// settle lets the group have its say.
func (f *finale) settle() {
	f.membersAt, f.leader = f.s.check.newestConf().index, f.s.leading()
	f.settles = max(f.s.Now(), f.s.net.Latest, f.s.plan.duration+f.s.breaks().lasting()) + settleTime + f.tailTime()
	if l := f.s.plan.leased; l != nil {
		f.settles += l.cfg.Hold + electionTime // reads may wait so long before they go to the leader
		if l.unfit > 0 {
			f.settles += 3 * l.cfg.Lease // and a change of the members for a node whose clock was unfit
		}
	}
	f.deadline = f.settles + finaleTime
}

// rest looks at what the group sends from now on, and ends the run.
func (f *finale) rest() {
	f.s.end.resting = !f.changeWaits() && !f.writesWait() && !f.leadershipMoves() && !f.s.plan.joints.uneven()
	f.s.After(restTime, func() { f.s.end.done = true })
}

// changeWaits reports whether a change of the members waits, as for voters to come that
// nobody starts: then the group has something to do.
func (f *finale) changeWaits() bool {
	return slices.ContainsFunc(f.s.running(), func(n *node) bool { return n.proc.rn.CodingStatus().Waiting != "" })
}

// leadershipMoves reports whether a leader has yet to hand over to a member with a larger weight: it takes its time.
func (f *finale) leadershipMoves() bool {
	leader, weights := f.s.leading(), f.s.plan.weights
	return slices.ContainsFunc(f.s.check.newestConf().conf.GetVoters(), func(id uint64) bool {
		return leader != nil && weights[id] > weights[leader.id]
	})
}

// writesWait reports whether a slow disk has writes yet: a member may have applied what its disk has
// not (Config.MaxEarlyApplySize), and the leader sends it the rest once it is stored.
func (f *finale) writesWait() bool {
	return slices.ContainsFunc(f.s.running(), func(n *node) bool { return len(n.proc.appends.writing)+len(n.proc.appends.waiting) > 0 })
}
