// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc/stat, for all programs of Linux.
const tick = 10 * time.Millisecond

// idle is the place of the first of the two columns of /proc/stat, behind the name,
// in which a processor does nothing; the other one is next to it. The last two are
// a part of others.
const (
	idle  = 3
	guest = 8
)

// busyFrom returns how long the machine's processors have been busy, from the first
// line of /proc/stat.
func busyFrom(stat string) (sum time.Duration, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	words := strings.Fields(line)
	if len(words) < idle+3 || words[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q, want cpu and figures", line)
	}
	for i, word := range words[1:] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		if i != idle && i != idle+1 && i < guest {
			sum += time.Duration(n) * tick
		}
	}
	return sum, nil
}

// machine is what the whole machine and this process have used by now.
type machine struct {
	at         time.Time
	busy, self time.Duration
}

func readMachine() (m machine, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return m, fmt.Errorf("%w (this needs Linux)", err)
	}
	if m.busy, err = busyFrom(string(stat)); err != nil {
		return m, err
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return m, err
	}
	m.at, m.self = time.Now(), time.Duration(used.Utime.Nano()+used.Stime.Nano())
	return m, nil
}

// others returns the share of the machine's processors, 0 to 1, that neither this
// process nor members used since before. What the kernel does for the network is
// in it.
func (m machine) others(before machine, members time.Duration) float64 {
	busy := m.busy - before.busy - (m.self - before.self) - members
	return max(0, busy.Seconds()/m.at.Sub(before.at).Seconds()/float64(runtime.NumCPU()))
}
