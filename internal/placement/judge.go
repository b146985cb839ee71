// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
	"time"
)

// Member is a member of a group, as its leader sees it.
type Member struct {
	ID     uint64
	Weight int
	Figure Figure
	// Fit says that the member could lead at once: a voter that is heard from, has caught up, has
	// no stalled log, and has reported lately.
	Fit bool
	// Surely is, of the leader, how long it takes at least to reach a majority; 0 if not known. Limps says that the leader's
	// process stands still again and again.
	Surely time.Duration
	Limps  bool
}

// Reason says why a leader hands over.
type Reason uint8

// The reasons.
const (
	Stay      Reason = iota // it does not
	Slow                    // another member is better by factor and worth, or nearer to a majority by both
	Preferred               // another member, which is as good, has a larger weight
)

// Verdict is the outcome of a look. To is the next leader; Own and Its are the figures that count.
type Verdict struct {
	Reason   Reason
	To       uint64
	Own, Its Figure

	// sudden says that there is no doubt, and no reason to wait.
	sudden bool
}

// Judge decides for one group, at one member, whether the member should hand leadership over. The zero value is
// ready, and takes little memory, because a node may have thousands of groups. timeout is an election timeout.
//
// A Judge compares this leader with what the others would be as leaders. A leader has more work than a
// follower, so that under load every leader may look worse than every follower; but a member that has led,
// and whose figure was bad then, is remembered with that figure (past). A leader therefore tries each member at
// most once, and stays if no change helps.
//
// Members are compared by three things, one after the other: whether the delay is much worse than the best, the
// weight, and whether the reach is much worse than the best. So a slow machine does not lead for its weight. Links
// count between members of the same weight only: an operator who prefers nodes that are far from the others gets
// leaders there, and they stay.
//
// A leader that was near to a majority, and whose links have become long, hands over at once, if each of the last round
// trips says so, nothing waits to be sent, and leadership has not moved lately. A pause makes one round trip long,
// jitter makes those of all nodes long, and a queue comes and goes with the load. So does a leader whose process has stood
// still several times within an election timeout.
type Judge struct {
	// found is for how long looks found a better member, less the time for which they found none.
	found time.Duration
	// level is the number of changes of leader lately, the last of them at changedAt: see settle.
	level     int
	changedAt time.Duration
	// near says that this leader has been as near to a majority as the others.
	near bool
	// tried says that this member has begun the change of leader that comes next.
	tried bool
	// past has the figures of members when they led last.
	past map[uint64]ledWith
}

type ledWith struct {
	pace
	reach, at time.Duration
}

// settle forgets changes of leader that were long ago.
func (j *Judge) settle(now, timeout time.Duration) {
	for j.level > 0 && now-j.changedAt >= forgetAfter*timeout {
		j.level--
		j.changedAt += forgetAfter * timeout
	}
}

// count notes a change of leader, or an attempt at one.
func (j *Judge) count(now, timeout time.Duration) {
	j.settle(now, timeout)
	j.level, j.changedAt, j.found, j.near = min(j.level+1, mostLevels), now, 0, false
}

// Changed notes that leadership has passed from one member to another; was is what the former leader's
// figure was.
func (j *Judge) Changed(now, timeout time.Duration, former uint64, was Figure) {
	if !j.tried {
		j.count(now, timeout)
	}
	j.tried, j.found, j.near = false, 0, false
	if former == 0 || !was.Known() {
		return
	}
	if j.past == nil {
		j.past = map[uint64]ledWith{}
	}
	j.past[former] = ledWith{was.pace(), was.Reach, now}
}

// Idle reports whether a look could be skipped: there is nothing to take back.
func (j *Judge) Idle() bool { return j.found == 0 }

// Near notes, in place of a look, that this leader is not far.
func (j *Judge) Near() { j.near = true }

// Look decides whether the leader hands over. others are the other voters; passed is the time since the last
// look, which a slow machine takes late.
func (j *Judge) Look(now, passed, timeout time.Duration, group uint64, own Member, others []Member) Verdict {
	j.settle(now, timeout)
	passed = min(passed, timeout)
	v := j.compare(now, timeout, group, own, others)
	if v.Reason == Stay {
		j.near = j.near || own.Surely > 0
		if !own.Figure.Known() || slices.ContainsFunc(others, func(m Member) bool { return m.comparable(own) }) {
			j.found = max(j.found-passed, 0) // else nothing is known
		}
		return v
	}
	j.found += passed
	if j.found <= j.patience(v, timeout) {
		return Verdict{}
	}
	j.count(now, timeout)
	j.tried = true
	return v
}

// patience returns for how long looks must have found what a verdict says.
func (j *Judge) patience(v Verdict, timeout time.Duration) time.Duration {
	switch {
	case j.level > 0 || v.Reason == Preferred:
		return patience * timeout << j.level
	case v.sudden:
		return 0
	}
	return patience*timeout - timeout/LooksPerTimeout // the figures of a pause are gone by then
}

// compare decides as if this were the only look.
func (j *Judge) compare(now, timeout time.Duration, group uint64, own Member, others []Member) Verdict {
	is := own.Figure.pace()
	best := is
	for _, m := range others {
		if m.comparable(own) {
			best = best.best(j.expected(now, timeout, m).pace)
		}
	}
	slow := is.slower(best)
	good := slices.DeleteFunc(slices.Clone(others), func(m Member) bool {
		if m.comparable(own) {
			return j.expected(now, timeout, m).slower(best)
		}
		// Of a member without a figure nothing is known; as long as there is no load, that is no matter.
		return !m.eligible(own) || slow || is.delay > worth
	})
	if len(good) == 0 {
		return Verdict{}
	}
	slices.SortFunc(good, func(a, b Member) int { return cmp.Or(b.Weight-a.Weight, cmp.Compare(a.ID, b.ID)) })
	if i := slices.IndexFunc(good, func(m Member) bool { return m.Weight < good[0].Weight }); i > 0 {
		good = good[:i]
	}
	near, reach := j.nearest(now, timeout, good)
	far := near[0].Weight == own.Weight && reach > 0 && worse(own.Figure.Reach, reach)
	to := near[group%uint64(len(near))] // the groups of a slow node spread over the others
	switch {
	case slow || far:
		long := far && j.near && own.Figure.Send < worth && worse(own.Surely, reach) && own.Surely-reach >= timeout/suddenly
		return Verdict{Reason: Slow, To: to.ID, Own: own.Figure, Its: to.Figure, sudden: long || own.Limps && is.limps(best)}
	case to.Weight > own.Weight:
		return Verdict{Reason: Preferred, To: to.ID, Own: own.Figure, Its: to.Figure}
	}
	return Verdict{}
}

// nearest returns the members whose reach is not worse than the best, and the best reach. If no reach is known, it
// returns all and 0.
func (j *Judge) nearest(now, timeout time.Duration, members []Member) (near []Member, best time.Duration) {
	for _, m := range members {
		if reach := j.expected(now, timeout, m).reach; reach > 0 && (best == 0 || reach < best) {
			best = reach
		}
	}
	if best == 0 {
		return members, 0
	}
	return slices.DeleteFunc(members, func(m Member) bool {
		reach := j.expected(now, timeout, m).reach
		return reach == 0 || worse(reach, best)
	}), best
}

// eligible reports whether a member could take over from a leader at all: a member of weight 0 leads only if
// no other member can.
func (m Member) eligible(leader Member) bool { return m.Fit && (m.Weight > 0 || leader.Weight == 0) }

// comparable reports whether the figures of a member and of a leader are of the same work.
func (m Member) comparable(leader Member) bool {
	return m.eligible(leader) && m.Figure.Known() && (m.Figure.Sync > 0 || leader.Figure.Sync == 0)
}

// expected returns delay and reach of a member as the leader. The figure from when the member led counts no more
// once the member's figure is bad without the leader's work, too: then the work was not the reason, and the
// member is as good as its present figure.
func (j *Judge) expected(now, timeout time.Duration, m Member) ledWith {
	is := ledWith{pace: m.Figure.pace(), reach: m.Figure.Reach}
	was, ok := j.past[m.ID]
	if !ok {
		return is
	}
	since := now - was.at
	if since > afterglow*timeout {
		if is.delay > was.delay/2 {
			was.delay = 0
		}
		if is.process > was.process/2 {
			was.process = 0
		}
		if is.reach > was.reach/2 {
			was.reach = 0
		}
		j.past[m.ID] = was
	}
	if since >= forgetAfter*timeout || was.pace == (pace{}) && was.reach == 0 {
		delete(j.past, m.ID)
		return is
	}
	if is.reach > 0 { // else nothing is known
		is.reach = max(is.reach, was.reach)
	}
	is.delay, is.process = max(is.delay, was.delay), max(is.process, was.process)
	return is
}

// Good reports whether a member could take over from a leader, and would not be worse.
func Good(leader, m Member) bool {
	return m.eligible(leader) && !m.Figure.pace().slower(leader.Figure.pace())
}
