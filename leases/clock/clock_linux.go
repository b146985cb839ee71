// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func now() time.Duration { return read(unix.CLOCK_BOOTTIME) }

func read(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		// Check has read this clock. Any made-up reading would end a right or a
		// duty at the wrong time.
		panic(fmt.Sprintf("clock: clock %d cannot be read any more: %v", id, err))
	}
	return time.Duration(ts.Nano())
}

func precision() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}

// hardware reads the clock that nothing corrects.
func hardware() time.Duration { return read(unix.CLOCK_MONOTONIC_RAW) }

// sample reads the three clocks of a measurement together.
func sample() (s reading, ok bool) {
	for range 5 {
		before := hardware()
		mono, boot := read(unix.CLOCK_MONOTONIC), now()
		after := hardware()
		if between := after - before; !ok || between < s.blur {
			s, ok = reading{raw: before + between/2, mono: mono, boot: boot, blur: between}, true
		}
	}
	return s, ok
}

func source() string {
	b, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return "" // a container may not see it
	}
	return strings.TrimSpace(string(b))
}
