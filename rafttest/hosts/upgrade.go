// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import "time"

// rollTime bounds how long a group may take to change its library, faults and
// all.
const rollTime = 60 * time.Second

// beginRolling begins the moves, if there are any.
func (w *sim) beginRolling() {
	w.roll.w = w
	if len(w.opts.Rolling) == 0 {
		w.roll.done = true
		return
	}
	w.After(w.faults.Within(0, time.Second), w.roll.next)
}

// next takes a step, if possible.
func (u *upgrade) next() {
	w := u.w
	if u.done || w.err != nil {
		return
	}
	to, stays := w.target(), true
	for _, m := range w.live() {
		if m.lib.Name == to.Name || m.lazy && m.proc == nil {
			continue
		}
		stays = false
		if u.mayMove(m, to) {
			w.say(m.id, "moves from %s to %s", m.lib.Name, to.Name)
			w.reach.LibraryChanges++
			if m.proc != nil {
				m.stop()
			}
			m.lib = to
			m.start()
			break
		}
	}
	wait := w.faults.Within(20*time.Millisecond, 200*time.Millisecond)
	if stays {
		if u.stage++; u.stage == len(w.opts.Rolling) {
			u.done = true
			return
		}
		wait += time.Second // some time with all members on the same library
	}
	w.After(wait, u.next)
}

// mayMove reports whether an operator would restart a member now: all members
// run, and what it leaves behind can be read by the next library.
func (u *upgrade) mayMove(m *machine, to library) bool {
	for _, other := range u.w.live() {
		if other.proc == nil && !other.lazy {
			return false
		}
	}
	return !m.lib.Coded || m.lib.hasty || leaveCoded(u.w, to)
}

// leaveCoded has all members write plain entries from now on, and lets the first
// go when the logs of all have none that are coded: a member whose own log is
// free of them could still be sent some.
func leaveCoded(w *sim, to library) bool {
	if to.Coded {
		return true
	}
	w.roll.densify = true
	dense := true
	for _, m := range w.live() {
		if m.proc == nil || !m.lib.Coded {
			continue
		}
		m.proc.common().densify()
		if !m.proc.common().core.(codedCore).CodingStatus().Dense {
			dense = false
			continue
		}
		for _, e := range m.disk.live.entries {
			if w.isCoded(e) {
				w.fail("n%d says that its log is dense; entry %d of term %d is coded", m.id, e.GetIndex(), e.GetTerm())
			}
		}
	}
	return dense
}
