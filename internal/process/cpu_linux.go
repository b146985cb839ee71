// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// processCPU returns the CPU time of a process, user and system. /proc has it in
// hundredths of a second, which is too coarse; a process's clock is exact.
func processCPU(pid int) (time.Duration, error) {
	const ofProcess = 2 // the clock that counts what the scheduler gave it
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|ofProcess, &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}
