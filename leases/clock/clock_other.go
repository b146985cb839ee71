// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package clock

import "time"

var start = time.Now()

func now() time.Duration { return time.Since(start) }

func precision() (time.Duration, error) { return 0, nil }

func hardware() time.Duration { return now() }

// sample has no second clock to compare with.
func sample() (reading, bool) { return reading{}, false }

func source() string { return "" }
