// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package machine tells a core about the process and the machine that it runs on. Hosts that drive
// package raft themselves and code entries set raft.Config.Clock to a [Clock] and raft.Coding.Busy to
// [Busy]: the adaptive policy then measures links and processors. rawnode.Host does so by itself.
package machine

import (
	"time"

	"github.com/weftraft/weft/internal/process"
)

// Clock is the monotonic time since the start of the process. It serves coding; roster leases need a
// clock of package leases/clock, which serves coding, too.
type Clock struct{}

// Now returns the time.
func (Clock) Now() time.Duration { return time.Since(start) }

var start = time.Now()

// Busy returns the share of time, 0 to 1, for which processors were busy in about the last quarter of a second: the
// processors that this process may use, busy with this process, or all of the machine, whichever share
// is larger. The machine's share counts less for a process that takes less than a fifth of the processors' time, because
// others keep them busy. Calls are cheap: the system is asked at most ten times a second. Systems other than Linux
// tell of this process alone, and some of nothing; then the share is 0.
func Busy() float64 { return process.Busy() }
