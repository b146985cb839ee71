// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import "time"

// Measured is the table.
var Measured = Costs{
	Turn: 4 * time.Microsecond, Message: 2 * time.Microsecond, Call: 2 * time.Microsecond,
	Sent: 2 * time.Microsecond, Received: 2 * time.Microsecond,
	Write: 5 * time.Microsecond, Entry: time.Microsecond,
	Apply: 5 * time.Microsecond, Command: time.Microsecond,
	LoopKiB: 100, WireKiB: 500, LogKiB: 500, ApplyKiB: 500,
	Sync: time.Millisecond, DiskKiB: 2 * time.Microsecond, Delay: 100 * time.Microsecond, LinkKiB: time.Microsecond,
}
