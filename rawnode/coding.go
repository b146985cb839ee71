// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import "github.com/weftraft/weft/raft"

// sealsLate returns the configuration of coding for a host with this transport: LateSeal is set if
// the transport makes each receiver's form of an entry.
func sealsLate(c *raft.Coding, t Transport) *raft.Coding {
	if _, ok := t.(lateSealer); !ok || c == nil {
		return c
	}
	own := *c
	own.LateSeal = true
	return &own
}
