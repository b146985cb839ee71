// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Quantile returns the least of some times such that a share q of them is not
// above it. 0 if there are none.
func Quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Millis returns a time in milliseconds with three digits behind the point.
func Millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 3, 64)
}

// Spread returns times in milliseconds, one after the other.
func Spread(times ...time.Duration) string {
	var text []string
	for _, d := range times {
		text = append(text, Millis(d))
	}
	return strings.Join(text, " / ")
}

// Rate returns a number of bits a second, as cards are sold.
func Rate(bits int64) string {
	switch {
	case bits == 0:
		return "no bound"
	case bits%1e9 == 0:
		return fmt.Sprintf("%d Gbit/s", bits/1e9)
	case bits%1e6 == 0:
		return fmt.Sprintf("%d Mbit/s", bits/1e6)
	}
	return fmt.Sprintf("%d bit/s", bits)
}

// Bytes returns a number of bytes, with a unit if it is a multiple of one.
func Bytes(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + " MB"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + " KB"
	}
	return strconv.Itoa(n) + " B"
}
