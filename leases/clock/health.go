// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"slices"
	"sync"
	"time"
)

// Health is how well the clock has kept time since it is watched.
type Health struct {
	// Source is the system's clock source, empty if that is not known; Doubtful says
	// that it is one that is known to lose time.
	Source   string
	Doubtful bool
	// Measurements is how often the clock's rate was compared with that of the
	// hardware: after a second, and every 10 seconds from then on.
	Measurements uint64
	// RatePPM is how much faster than the hardware the clock ran in the last
	// measurement, in microseconds a second; negative if slower. WorstPPM is the one
	// furthest from 0. The hardware's own error is not in them.
	RatePPM, WorstPPM int64
	// Suspended is for how long the system was suspended.
	Suspended time.Duration
}

// Within reports whether no measurement was further off than a bound on drift.
func (h Health) Within(driftPPM int) bool {
	return max(h.WorstPPM, -h.WorstPPM) <= int64(driftPPM)
}

// doubtful are clock sources that lose time when interrupts do, or stand still in some
// states of the processor.
var doubtful = []string{"jiffies", "refined-jiffies", "pit", "tsc-early"}

// reading is the system's clocks at one moment.
type reading struct {
	raw  time.Duration // the hardware's, not corrected
	mono time.Duration // corrected by NTP; without the time of suspension
	boot time.Duration // the same, with it
	blur time.Duration // how exact the moment is
}

const (
	firstInterval = time.Second
	nextInterval  = 10 * time.Second
	// maxBlurPPM is how exact a measurement has to be, as a part of the interval.
	maxBlurPPM = 50
	// minSuspension is what counts: the clocks are read one after the other.
	minSuspension = 10 * time.Millisecond
)

// add takes the next measurement: from one reading to another. It reports whether the
// measurement was exact enough to count.
func (h *Health) add(from, to reading) bool {
	real, shown := to.raw-from.raw, to.mono-from.mono
	if asleep := to.boot - from.boot - shown; asleep >= minSuspension {
		h.Suspended += asleep
	}
	if real <= 0 || from.blur+to.blur > real/1_000_000*maxBlurPPM {
		return false // this process had to wait between two readings
	}
	h.Measurements++
	h.RatePPM = int64((shown - real) / (real / 1_000_000))
	if max(h.RatePPM, -h.RatePPM) > max(h.WorstPPM, -h.WorstPPM) {
		h.WorstPPM = h.RatePPM
	}
	return true
}

// The clock is the process's, and so is the watch. Whoever asks for the result takes the
// measurement that is due: there is no goroutine, which would outlive hosts that do not tell
// when their last node has stopped.
var watch struct {
	mu       sync.Mutex
	watchers int
	from     reading       // of the last measurement, or of the first watcher
	due      time.Duration // when to measure next, on the hardware's clock
	health   Health
	recent   rates
}

// Watch has the clock measured until stop is called, by the calls of Latest and of
// Watched.Fit: hosts make them at each tick.
func Watch() (stop func()) {
	watch.mu.Lock()
	defer watch.mu.Unlock()
	if watch.watchers++; watch.watchers == 1 {
		watch.health.Source = source()
		watch.health.Doubtful = slices.Contains(doubtful, watch.health.Source)
		watch.from, _ = sample()
		watch.due = watch.from.raw + firstInterval
	}
	return sync.OnceFunc(func() {
		watch.mu.Lock()
		defer watch.mu.Unlock()
		watch.watchers--
	})
}

// Latest returns what is known of the clock: nothing, unless it was watched.
func Latest() Health {
	watch.mu.Lock()
	defer watch.mu.Unlock()
	measure()
	return watch.health
}

// measure takes a measurement if one is due. The caller holds watch.mu.
func measure() {
	if watch.watchers == 0 || hardware() < watch.due {
		return
	}
	to, ok := sample()
	if !ok {
		return
	}
	if watch.health.add(watch.from, to) {
		watch.recent.add(watch.health.RatePPM)
	}
	watch.from, watch.due = to, to.raw+nextInterval
}
