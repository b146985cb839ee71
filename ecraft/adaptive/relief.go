// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

// Relief. Where full copies to the followers nearby are more than the interface can
// carry, the backlog grows, and a level of fewer bytes that waits for others farther
// away would be better. Yet an entry that waits for those holds up all behind it. Taken
// one by one no entry is worth that, so the backlog would grow for good.
//
// It is worth it for many at once: with one slow entry under way the next ones have to
// wait anyway. So a long backlog is worked off at a level that the interface can carry,
// until nothing waits any more. To go to and fro would be worst of all: entries that are
// fast by themselves would still wait for the slow ones in front of them.

const (
	// reliefShare is how long the backlog must be, as a share of the time that the
	// slower level takes longer. Much less, and most entries are slow ones.
	reliefShare = 0.25
	// reliefBusy is how busy a level may seem to keep the interface. Rates are those
	// of few entries, and to give up a level by mistake costs more than to keep it.
	reliefBusy = 1.1
	// reliefWindow is how many entries may be on their way to a far follower. Of
	// more, hosts keep some back until answers come, and the slow way is slower.
	reliefWindow = 2 * maxFlying
)

// relieve reports whether a backlog is to be worked off, where best is the level that
// entries would be given one by one. If so, it returns the time of the fastest level
// that the interface can carry.
func (a *Policy) relieve(levels []candidate, best candidate) (fastest float64, ok bool) {
	slow, carried := levels[0], false
	for _, l := range levels {
		switch {
		case l.busy <= maxBusy, l.level == a.relief && l.busy <= reliefBusy:
			if !carried || l.time < slow.time {
				slow, carried = l, true
			}
		case !carried && l.busy < slow.busy:
			slow = l // as long as none can be carried, the one that comes nearest
		}
	}
	if a.relief == 0 && !a.backlog(best, slow) || best.queued <= best.tx {
		a.relief = 0
		return 0, false
	}
	a.relief = slow.level
	return slow.time, true
}

// backlog reports whether there is one that a slower level should work off: one whose
// followers are farther away, so that it is not merely more of them that it waits for.
func (a *Policy) backlog(best, slow candidate) bool {
	near, far := best.last-best.queued, slow.last-slow.late-best.queued
	return best.busy > 1 && slow.busy < min(reliefBusy, hysteresis*best.busy) && far > unlikeBy*near &&
		best.queued > reliefShare*(slow.last-best.last) && a.choice.entries*slow.time < reliefWindow
}

// heldBack is how much longer than its round trip a follower takes because it has as
// many messages on their way as it may have: entries that others were sent wait until
// it answers, and leave at the rate at which it does.
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
