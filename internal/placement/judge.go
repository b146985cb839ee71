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
}

// Reason says why a leader hands over.
type Reason uint8

// The reasons.
const (
	Stay      Reason = iota // it does not
	Slow                    // another member is better by factor and Worth
	Preferred               // another member, which is as good, has a larger weight
)

// Verdict is the outcome of a look. To is the next leader; Own and Its are the figures that count.
type Verdict struct {
	Reason   Reason
	To       uint64
	Own, Its Figure
}

// Judge decides for one group, at one member, whether the member should hand leadership over. The zero value is
// ready, and takes little memory, because a node may have thousands of groups. timeout is an election timeout.
//
// A Judge compares this leader with what the others would be as leaders. A leader has more work than a
// follower, so that under load every leader may look worse than every follower; but a member that has led,
// and whose figure was bad then, is remembered with that figure (past). A leader therefore tries each member at
// most once, and stays if no change helps.
type Judge struct {
	// found is for how long looks found a better member, less the time for which they found none.
	found time.Duration
	// level is the number of changes of leader lately, the last of them at changedAt: see settle.
	level     int
	changedAt time.Duration
	// tried says that this member has begun the change of leader that comes next.
	tried bool
	// past has the figures of members when they led last.
	past map[uint64]ledWith
}

type ledWith struct {
	delay, at time.Duration
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
	j.level, j.changedAt, j.found = min(j.level+1, mostLevels), now, 0
}

// Changed notes that leadership has passed from one member to another; was is what the former leader's
// figure was.
func (j *Judge) Changed(now, timeout time.Duration, former uint64, was Figure) {
	if !j.tried {
		j.count(now, timeout)
	}
	j.tried, j.found = false, 0
	if former == 0 || !was.Known() {
		return
	}
	if j.past == nil {
		j.past = map[uint64]ledWith{}
	}
	j.past[former] = ledWith{was.Delay(), now}
}

// Idle reports whether a look could be skipped: there is nothing to take back.
func (j *Judge) Idle() bool { return j.found == 0 }

// Look decides whether the leader hands over. others are the other voters; passed is the time since the last
// look, which a slow machine takes late.
func (j *Judge) Look(now, passed, timeout time.Duration, group uint64, own Member, others []Member) Verdict {
	j.settle(now, timeout)
	passed = min(passed, timeout)
	v := j.compare(now, timeout, group, own, others)
	if v.Reason == Stay {
		if !own.Figure.Known() || slices.ContainsFunc(others, func(m Member) bool { return m.comparable(own) }) {
			j.found = max(j.found-passed, 0) // else nothing is known
		}
		return v
	}
	j.found += passed
	if j.found <= patience*timeout<<j.level {
		return Verdict{}
	}
	j.count(now, timeout)
	j.tried = true
	return v
}

// compare decides as if this were the only look.
func (j *Judge) compare(now, timeout time.Duration, group uint64, own Member, others []Member) Verdict {
	best := own.Figure.Delay()
	for _, m := range others {
		if m.comparable(own) {
			best = min(best, j.expected(now, timeout, m))
		}
	}
	ownDelay := own.Figure.Delay()
	slow := worse(ownDelay, best)
	good := slices.DeleteFunc(slices.Clone(others), func(m Member) bool {
		if m.comparable(own) {
			return worse(j.expected(now, timeout, m), best)
		}
		// Of a member without a figure nothing is known; as long as there is no load, that is no matter.
		return !m.eligible(own) || slow || ownDelay > Worth
	})
	if len(good) == 0 {
		return Verdict{}
	}
	slices.SortFunc(good, func(a, b Member) int { return cmp.Or(b.Weight-a.Weight, cmp.Compare(a.ID, b.ID)) })
	equal := slices.IndexFunc(good, func(m Member) bool { return m.Weight < good[0].Weight })
	if equal < 0 {
		equal = len(good)
	}
	to := good[group%uint64(equal)] // the groups of a slow node spread over the others
	switch {
	case slow:
		return Verdict{Reason: Slow, To: to.ID, Own: own.Figure, Its: to.Figure}
	case to.Weight > own.Weight:
		return Verdict{Reason: Preferred, To: to.ID, Own: own.Figure, Its: to.Figure}
	}
	return Verdict{}
}

// eligible reports whether a member could take over from a leader at all: a member of weight 0 leads only if
// no other member can.
func (m Member) eligible(leader Member) bool { return m.Fit && (m.Weight > 0 || leader.Weight == 0) }

// comparable reports whether the figures of a member and of a leader are of the same work.
func (m Member) comparable(leader Member) bool {
	return m.eligible(leader) && m.Figure.Known() && (m.Figure.Sync > 0 || leader.Figure.Sync == 0)
}

// expected returns the delay of a member as the leader. The figure from when the member led counts no more
// once the member's figure is bad without the leader's work, too: then the work was not the reason, and the
// member is as good as its present figure.
func (j *Judge) expected(now, timeout time.Duration, m Member) time.Duration {
	delay := m.Figure.Delay()
	was, ok := j.past[m.ID]
	switch since := now - was.at; {
	case !ok:
		return delay
	case since >= forgetAfter*timeout, since > afterglow*timeout && delay > was.delay/2:
		delete(j.past, m.ID)
		return delay
	}
	return max(delay, was.delay)
}

// Good reports whether a member could take over from a leader, and would not be worse.
func Good(leader, m Member) bool {
	return m.eligible(leader) && !worse(m.Figure.Delay(), leader.Figure.Delay())
}
