// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

// Relief. If full copies to the followers nearby are more than the interface can carry,
// the backlog grows, and a level of fewer bytes that waits for followers farther away
// would be better. Yet an entry that waits for far followers holds up all entries
// behind. For no single entry does the wait pay, so the backlog would go on growing.
//
// For many entries at once the wait pays, because behind one slow entry the next
// entries have to wait anyway. So a long backlog is worked off at a level that the
// interface can carry, until no entry waits any more. Levels that alternate would be
// worst of all: fast entries would still wait for the slow entries in front.

const (
	// reliefShare is the least length of a backlog, as a share of the additional time of the slower
	// level. With a much smaller share, most entries would go at the slower level.
	reliefShare = 0.25
	// reliefBusy bounds the estimated load of the interface at which a level is kept. Rates are
	// measured over few entries, and a level given up by mistake costs more than a level kept by
	// mistake.
	reliefBusy = 1.1
	// reliefWindow bounds the entries on their way to a far follower. Beyond the bound, hosts keep
	// entries back until answers come, and the far way becomes slower.
	reliefWindow = 2 * maxFlying
)

// relieve reports whether a backlog is to be worked off; best is the best level for a single entry.
// For a backlog, fastest is the time of the fastest level that the interface can carry.
func (a *Policy) relieve(levels []candidate, best candidate) (fastest float64, ok bool) {
	slow, carried := levels[0], false
	for _, l := range levels {
		switch {
		case l.busy <= maxBusy, l.level == a.relief && l.busy <= reliefBusy:
			if !carried || l.time < slow.time {
				slow, carried = l, true
			}
		case !carried && l.busy < slow.busy:
			slow = l // as long as no level can be carried, the level nearest to being carried
		}
	}
	if a.relief == 0 && !a.backlog(best, slow) || best.queued <= best.tx {
		a.relief = 0
		return 0, false
	}
	a.relief = slow.level
	return slow.time, true
}

// backlog reports whether there is a backlog that a slower level should work off: a level with
// followers that are farther away, and not only more followers.
func (a *Policy) backlog(best, slow candidate) bool {
	near, far := best.last-best.queued, slow.last-slow.late-best.queued
	return best.busy > 1 && slow.busy < min(reliefBusy, hysteresis*best.busy) && far > unlikeBy*near &&
		best.queued > reliefShare*(slow.last-best.last) && a.choice.entries*slow.time < reliefWindow
}

// heldBack is the time by which a follower takes longer than its round trip because its window of
// messages is full: entries already sent to other followers wait for its answers, and leave at
// their rate.
func (a *Policy) heldBack(l *link) float64 {
	if l.out.Len() == 0 {
		return 0
	}
	last := l.out.Back().last
	if a.sentUpTo <= last || last <= l.answered {
		return 0
	}
	return (l.base + l.held) * float64(a.sentUpTo-last) / float64(last-l.answered)
}
