// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/process"
)

// tick is the unit of /proc/stat, for all programs of Linux.
const tick = 10 * time.Millisecond

// Columns of /proc/stat after the name: in column idle and the next column a processor does
// nothing; column guest and the next column are parts of other columns.
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

// machine is the processor time of the whole machine and of this process so far.
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
	m.at, m.self = time.Now(), process.OwnCPU()
	return m, nil
}

// others returns the share of the machine's processors, 0 to 1, that was used since before by
// neither this process nor the members. The share includes the kernel's work for the network.
func (m machine) others(before machine, members time.Duration) float64 {
	busy := m.busy - before.busy - (m.self - before.self) - members
	return max(0, busy.Seconds()/m.at.Sub(before.at).Seconds()/float64(runtime.NumCPU()))
}
