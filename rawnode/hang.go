// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/replica"
)

// hangs watches the three places in which a host waits for others without a bound: a turn, which
// reads the log; the log, in Append; and the state machine, in Apply or Durable. A Restore is not
// watched: it lasts as long as the snapshot travels.
type hangs struct{ turn, write, apply work }

// work is something that may take long. One goroutine at a time begins and ends a work.
type work struct {
	began atomic.Int64 // in the replica's time; 0: not under way
	told  time.Duration
}

func (w *work) begin(now replica.Deadline) { w.began.Store(max(1, int64(now))) }
func (w *work) end()                       { w.began.Store(0) }

// rests reports whether there is nothing to say of the work.
func (w *work) rests() bool { return w.began.Load() == 0 && w.told == 0 }

// lasts returns for how long the work has been under way.
func (w *work) lasts(now replica.Deadline) time.Duration {
	if began := w.began.Load(); began > 0 {
		return now - replica.Deadline(began)
	}
	return 0
}

// hangsAfter is the time after which work is logged, for the first time. The next lines come after
// twice the time each.
const hangsAfter = 4 * time.Second

// lookForHangs logs the work that has lasted for long. Only the ticker calls it, at each tick of each
// host; a line has a goroutine of its own, because a Logger may wait.
func (h *Host) lookForHangs() {
	if w := &h.hangs; w.turn.rests() && w.write.rests() && w.apply.rests() {
		return
	}
	now := h.now()
	log := h.cfg.Logger.With("node", h.cfg.Replica.ID, "group", h.cfg.Replica.Group)
	for _, p := range [...]struct {
		*work
		name string
	}{
		{&h.hangs.turn, loopName},
		{&h.hangs.write, "the log, in Append"},
		{&h.hangs.apply, "the state machine, in Apply or Durable"},
	} {
		switch lasts := p.lasts(now); {
		case lasts >= max(hangsAfter, 2*p.told):
			p.told = lasts
			go log.Warn("a part does not return; calls wait for it, and end with their contexts", "part", p.name, "for", lasts.Round(time.Second))
		case lasts < p.told:
			go log.Info("the part has returned", "part", p.name, "after at least", p.told.Round(time.Second))
			p.told = 0
		}
	}
}

// stuck returns the last known status of a host whose turn does not end.
func (h *Host) stuck() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.last
	s.Stalled = fmt.Errorf("%w: %w: %s, for %v; this status is the last one known", ErrStalled, ErrNotEnded, loopName, h.hangs.turn.lasts(h.now()).Round(time.Millisecond))
	return s
}
