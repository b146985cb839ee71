// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"strconv"
	"strings"
)

// machineTime reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq
// and steal, of all processors. Without the line the time is zero.
func machineTime() systemTime {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return systemTime{}
	}
	defer func() { _ = f.Close() }() // only read
	var buf [512]byte                // the line has less than 200 bytes
	n, _ := f.Read(buf[:])
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	return parseMachineTime(line)
}

func parseMachineTime(line string) (t systemTime) {
	const idle, iowait, steal = 3, 4, 7
	fields := strings.Fields(line)
	if len(fields) <= steal || fields[0] != "cpu" {
		return systemTime{}
	}
	for i, f := range fields[1:] {
		x, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return systemTime{}
		}
		if i > steal {
			break // time of guests is in the user's, too
		}
		t.all += x
		if i != idle && i != iowait {
			t.busy += x
		}
	}
	return t
}
