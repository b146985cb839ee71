// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package codingbench compares coded replication with full copies on real
// processes and sockets.
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
