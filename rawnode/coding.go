// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/raft"
)

// hostCoding returns the configuration of coding for a host with this transport: LateSeal is set if
// the transport makes each receiver's form of an entry, and Busy looks at this machine's processors
// unless the user has set another.
func hostCoding(c *raft.Coding, t Transport) *raft.Coding {
	if c == nil {
		return nil
	}
	own := *c
	if _, ok := t.(lateSealer); ok {
		own.LateSeal = true
	}
	if own.Busy == nil {
		own.Busy = process.Busy
	}
	return &own
}
