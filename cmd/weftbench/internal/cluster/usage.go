// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what processes have used since they started.
type Usage struct {
	CPU        time.Duration // user and system
	WriteBytes uint64        // given to the disk, as the kernel counts them
}

// Sub returns what was used since before.
func (u Usage) Sub(before Usage) Usage {
	return Usage{u.CPU - before.CPU, u.WriteBytes - before.WriteBytes}
}

// clockTick is the unit of times in /proc. It is 1/100 s on every Linux system
// that Go runs on.
const clockTick = 10 * time.Millisecond

// processUsage reads a living process's usage from /proc.
func processUsage(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("usage of a process: %w (this needs Linux)", err)
	}
	// Fields are counted from behind the name, which may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("/proc/%d/stat has %d fields behind the name, want 13 or more", pid, len(fields))
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	u := Usage{CPU: time.Duration(user+system) * clockTick}
	io, err3 := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	for line := range strings.Lines(string(io)) {
		if v, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			u.WriteBytes, err = strconv.ParseUint(strings.TrimSpace(v), 10, 64)
		}
	}
	return u, errors.Join(err, err1, err2, err3)
}
