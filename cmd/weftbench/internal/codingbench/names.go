// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package codingbench

import "fmt"

// bytesName writes a number of bytes in the unit that suits it.
func bytesName(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}

// rateName writes what leaves a node, as cards are sold.
func rateName(bytesPerSecond int) string {
	switch bits := 8 * bytesPerSecond; {
	case bytesPerSecond == 0:
		return "no bound"
	case bits%1e9 == 0:
		return fmt.Sprintf("%d Gbit/s", bits/1e9)
	case bits%1e6 == 0:
		return fmt.Sprintf("%d Mbit/s", bits/1e6)
	}
	return fmt.Sprintf("%d B/s", bytesPerSecond)
}
