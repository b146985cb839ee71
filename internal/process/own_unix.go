// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"syscall"
	"time"
)

// OwnCPU returns the CPU time that this process has used.
func OwnCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// OwnSleeps returns how often threads of this process have given a processor back because they had to wait: for a
// frame, for each other, for a disk.
func OwnSleeps() uint64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return uint64(max(u.Nvcsw, 0))
}
