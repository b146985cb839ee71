// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import "time"

// rollTime bounds how long a group may take to change its library, faults and
// all.
const rollTime = 60 * time.Second

// upgrade moves a group from one library to the next, a member at a time.
type upgrade struct {
	w     *sim
	stage int // of Options.Rolling; all members of earlier stages have moved
	done  bool
	// densify says that coded entries are to come to an end.
	densify bool
}

// target is the library of new processes.
func (w *sim) target() library {
	if len(w.opts.Rolling) == 0 {
		return w.opts.Library
	}
	return w.opts.Rolling[min(w.roll.stage, len(w.opts.Rolling)-1)]
}

// types is how many message types hosts count. A host for several libraries is
// built for all of them.
func (w *sim) types() int {
	n := w.opts.Library.Types
	for _, lib := range w.opts.Rolling {
		n = max(n, lib.Types)
	}
	return n
}

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
	return m.lib.mayLeave == nil || m.lib.mayLeave(u.w, to)
}
