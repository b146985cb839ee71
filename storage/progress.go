// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import "time"

// A disk can hang: a write or a sync neither returns nor fails. The engine can do nothing about
// that, and cannot know whether the call will return; the writer waits. What the engine does know
// is whether it gets on.
type progress struct {
	ended   uint64    // writes, in whatever way
	since   time.Time // the last end of a batch, or the first write after a rest
	refused time.Time // when the disk had no room last
}

// Progress returns the number of writes, of all groups, that have ended since Open, and whether
// further writes wait. While writes wait and the number stands still, the disk hangs or is full: a
// host looks at the number again and again, in its own time, and decides what is late.
func (g *Group) Progress() (ended uint64, waits bool) {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.e.progress.ended, g.e.queuedBytes > 0
}

// watch calls Options.Hung once when writes have waited for Options.HungAfter, and looks again until
// then. A full disk does not hang while it refuses.
func (e *Engine) watch() {
	e.mu.Lock()
	waits := e.waits()
	if e.stall.reason != nil {
		waits = min(waits, time.Since(e.progress.refused)-retryFull)
	}
	e.mu.Unlock()
	select {
	case <-e.stopped:
		return
	default:
	}
	if left := e.opts.HungAfter - waits; left > 0 {
		time.AfterFunc(left, e.watch)
		return
	}
	e.opts.Logf("storage: directory %s: the disk hangs: writes wait, and none has ended for %v", e.w.dir.path, waits.Round(time.Millisecond))
	e.opts.Hung()
}

// waits is for how long writes wait and none has ended. The caller holds e.mu.
func (e *Engine) waits() time.Duration {
	if e.queuedBytes == 0 {
		return 0
	}
	return time.Since(e.progress.since)
}
