// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"strconv"
	"strings"
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

// machineTick is the unit of /proc/stat, for all programs of Linux.
const machineTick = 10 * time.Millisecond

// MachineTime reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq
// and steal, of all processors. Without the line the time is zero.
func MachineTime() Machine {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return Machine{}
	}
	defer func() { _ = f.Close() }() // only read
	var buf [512]byte                // the line has less than 200 bytes
	n, _ := f.Read(buf[:])
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	return parseMachineTime(line)
}

func parseMachineTime(line string) (t Machine) {
	const idle, iowait, steal = 3, 4, 7
	fields := strings.Fields(line)
	if len(fields) <= steal || fields[0] != "cpu" {
		return Machine{}
	}
	for i, f := range fields[1:] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return Machine{}
		}
		if i > steal {
			break // time of guests is in the user's, too
		}
		x := time.Duration(n) * machineTick
		t.All += x
		if i != idle && i != iowait {
			t.Busy += x
		}
	}
	return t
}
