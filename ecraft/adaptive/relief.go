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
	// reliefShare is how long the backlog must be, as a share of the time that the
	// slower level takes longer. Much less, and most entries are slow ones.
	reliefShare = 0.25
	// reliefBusy is how busy a level may seem to keep the interface. Rates are measured
	// over few entries, and a level given up by mistake costs more than a level kept.
	reliefBusy = 1.1
	// reliefWindow is how many entries may be on their way to a far follower. Of
	// more, hosts keep some back until answers come, and the slow way is slower.
	reliefWindow = 2 * maxFlying
)

// relieve reports whether a backlog is to be worked off; best is the best level for a
// single entry. If so, it returns the time of the fastest level that the interface can
// carry.
func (a *Policy) relieve(levels []candidate, best candidate) (fastest float64, ok bool) {
	slow, carried := levels[0], false
	for _, l := range levels {
		switch {
		case l.busy <= maxBusy, l.level == a.relief && l.busy <= reliefBusy:
			if !carried || l.time < slow.time {
				slow, carried = l, true
			}
		case !carried && l.busy < slow.busy:
			slow = l // as long as no level can be carried, the nearest to it
		}
	}
	if a.relief == 0 && !a.backlog(best, slow) || best.queued <= best.tx {
		a.relief = 0
		return 0, false
	}
	a.relief = slow.level
	return slow.time, true
}

// backlog reports whether there is a backlog that a slower level should work off: a
// level whose followers are farther away, and not only more.
func (a *Policy) backlog(best, slow candidate) bool {
	near, far := best.last-best.queued, slow.last-slow.late-best.queued
	return best.busy > 1 && slow.busy < min(reliefBusy, hysteresis*best.busy) && far > unlikeBy*near &&
		best.queued > reliefShare*(slow.last-best.last) && a.choice.entries*slow.time < reliefWindow
}

// heldBack is how much longer than its round trip a follower takes because its window
// of messages is full: entries that other followers were sent wait for its answers, and
// leave at their rate.
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
