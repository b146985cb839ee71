// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/raft"
)

// hostCoding returns the configuration of coding for a host with this transport: LateSeal is set if
// the transport makes each receiver's form of an entry, and, unless the user has set others, Busy looks at
// this machine's processors and Policy tries together with other groups.
func hostCoding(cfg *Config) *raft.Coding {
	if cfg.Replica.Coding == nil {
		return nil
	}
	own := *cfg.Replica.Coding
	if _, ok := cfg.Transport.(lateSealer); ok {
		own.LateSeal = true
	}
	if own.Policy == nil && cfg.Trials != nil {
		own.Policy = adaptive.New(adaptive.Options{Trials: cfg.Trials})
	}
	if own.Busy == nil {
		own.Busy = process.Busy
	}
	return &own
}
