// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"strings"
)

// CPUModel returns the name of the processor, as far as the system tells.
func CPUModel() string {
	info, _ := os.ReadFile("/proc/cpuinfo") // systems other than Linux have no such file
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), ":"))
		}
	}
	return "unknown processor"
}
