// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"runtime"
	"sync"
	"time"
)

const (
	// busyEvery is the least time between two looks at processors: the system counts in
	// hundredths of a second.
	busyEvery = 100 * time.Millisecond
	// busyGain is the weight of the last look.
	busyGain = 0.5
	// ownCounts is the share of processors from which on a process counts for what it is: the more it takes, the
	// more its own work is what keeps processors busy, and the more it gains by taking less.
	ownCounts = 0.2
)

// Busy returns the share of time, 0 to 1, for which processors were busy in about the last quarter
// of a second: the processors that this process may use, busy with this process, or those of the whole
// machine, whichever share is larger. The machine's share counts less for a process that takes less than a fifth
// of the processors' time: others keep them busy. Any number of callers share one look.
// Systems other than Linux tell of this process alone, and some of nothing; then the share is 0.
func Busy() float64 { return looks.busy(time.Now()) }

var looks processorLooks

// processorLooks is what was seen of processors.
type processorLooks struct {
	mu     sync.Mutex
	at     time.Time
	own    time.Duration
	system Machine
	share  float64
}

// Machine is the time of all processors of a machine since its start, of any process.
type Machine struct{ Busy, All time.Duration }

func (l *processorLooks) busy(now time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	passed := now.Sub(l.at)
	if passed < busyEvery {
		return l.share
	}
	first := l.at.IsZero()
	own, system := OwnCPU(), MachineTime()
	share := busyShare(shareOf((own-l.own).Seconds(), passed.Seconds()*float64(runtime.GOMAXPROCS(0))),
		shareOf((system.Busy-l.system.Busy).Seconds(), (system.All-l.system.All).Seconds()))
	l.at, l.own, l.system = now, own, system
	if !first {
		l.share += (share - l.share) * busyGain
	}
	return l.share
}

// busyShare returns what counts of a process's own share and the machine's.
func busyShare(own, machine float64) float64 { return max(own, machine*min(1, own/ownCounts)) }

// shareOf is a part of a whole, 0 to 1; 0 without a whole.
func shareOf(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(max(part/whole, 0), 1)
}
