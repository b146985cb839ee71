// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// sizes is a flag of numbers of bytes, separated by commas: 16, 1KiB, 4MiB.
type sizes []int

// Type implements pflag.Value.
func (s *sizes) Type() string { return "sizes" }

// String implements pflag.Value.
func (s *sizes) String() string {
	texts := make([]string, len(*s))
	for i, n := range *s {
		switch {
		case n > 0 && n%(1<<20) == 0:
			texts[i] = fmt.Sprintf("%dMiB", n>>20)
		case n > 0 && n%(1<<10) == 0:
			texts[i] = fmt.Sprintf("%dKiB", n>>10)
		default:
			texts[i] = strconv.Itoa(n)
		}
	}
	return strings.Join(texts, ",")
}

// Set implements pflag.Value.
func (s *sizes) Set(text string) error {
	var got sizes
	for _, t := range strings.Split(text, ",") {
		digits, shift := t, 0
		if d, ok := strings.CutSuffix(t, "KiB"); ok {
			digits, shift = d, 10
		} else if d, ok := strings.CutSuffix(t, "MiB"); ok {
			digits, shift = d, 20
		}
		n, err := strconv.ParseUint(digits, 10, 31-shift)
		if err != nil {
			return fmt.Errorf("%q, want a number of bytes below 2GiB, such as 512, 64KiB or 1MiB", t)
		}
		got = append(got, int(n)<<shift)
	}
	*s = got
	return nil
}
