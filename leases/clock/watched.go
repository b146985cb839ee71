// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"cmp"
	"fmt"

	"github.com/weftraft/weft/leases"
)

// Watched is Boottime for leases that stand aside while the clock is not fit. Package raft
// asks Fit at each tick. Watch has to be called for that, and not stopped: a clock that
// nobody watches is always fit.
type Watched struct {
	Boottime
	// DriftPPM is the bound that the leases count on, in microseconds a second; 0 means
	// [leases.DefaultDriftPPM], as in the configuration of leases.
	DriftPPM int
}

// Fit returns how far the clock was beyond the bound in the last minute, or nil. After a minute
// of measurements within the bound the clock is fit again. The call takes a lock, which is
// held for some microseconds every 10 seconds, and otherwise for one reading of a clock.
func (w Watched) Fit() error {
	watch.mu.Lock()
	measure()
	worst := watch.recent.worst()
	watch.mu.Unlock()
	return fitness(worst, cmp.Or(w.DriftPPM, leases.DefaultDriftPPM))
}

func fitness(worst int64, driftPPM int) error {
	if (Health{WorstPPM: worst}).Within(driftPPM) {
		return nil
	}
	than := "faster"
	if worst < 0 {
		than = "slower"
	}
	return fmt.Errorf("in the last minute the clock of leases ran %d microseconds a second %s than the hardware, and Leases.DriftPPM is %d: mend the clock, or raise DriftPPM at all members",
		max(worst, -worst), than, driftPPM)
}

// recentCount is how many measurements must be within the bound before a clock is fit
// again: those of a minute.
const recentCount = 6

// rates are those of the last measurements, in microseconds a second.
type rates struct {
	ppm  [recentCount]int64
	next int
}

func (r *rates) add(ppm int64) {
	r.ppm[r.next] = ppm
	r.next = (r.next + 1) % recentCount
}

// worst returns the rate furthest from 0.
func (r *rates) worst() (worst int64) {
	for _, ppm := range r.ppm {
		if max(ppm, -ppm) > max(worst, -worst) {
			worst = ppm
		}
	}
	return worst
}
