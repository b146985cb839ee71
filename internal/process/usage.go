// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package process

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

// Add returns what two have used.
func (u Usage) Add(v Usage) Usage { return Usage{u.CPU + v.CPU, u.WriteBytes + v.WriteBytes} }

// Usage asks the kernel what a child that lives has used. It needs Linux.
func (p *Process) Usage() (u Usage, err error) {
	pid := p.PID()
	if u.CPU, err = processCPU(pid); err != nil {
		return Usage{}, fmt.Errorf("CPU time of process %d: %w (this needs Linux)", pid, err)
	}
	io, ioErr := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	for line := range strings.Lines(string(io)) {
		if v, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			u.WriteBytes, err = strconv.ParseUint(strings.TrimSpace(v), 10, 64)
		}
	}
	return u, errors.Join(err, ioErr)
}
