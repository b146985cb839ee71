// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/raft"
)

// codingCore is the methods of a coding core beyond Core. Weft's core has them.
type codingCore interface {
	CodingStatus() raft.CodingStatus
	Densify(on bool)
	NextDeadline() (time.Duration, bool)
	Poll()
	QueueHint(to uint64, bytes int, rate float64)
}

// coding is a replica's part in coded replication. Without it core is nil.
type coding struct {
	core   codingCore
	counts CodingCounters
}

// configure completes the core's configuration, if entries are to be coded.
func (c *coding) configure(cfg *Config, core *raft.Config) {
	if cfg.Coding == nil {
		return
	}
	own := *cfg.Coding
	own.Recorder = &codingRecorder{counts: &c.counts, next: own.Recorder}
	if names := cfg.Names; names != nil && names.Zone != nil {
		own.Zone = func(id uint64) string {
			if id != cfg.ID && !names.Relayed(id) {
				return ""
			}
			return names.Zone(id)
		}
	}
	core.Coding = &own
}

// start looks whether the core can code, if it should.
func (c *coding) start(cfg *Config, core Core) error {
	if cfg.Coding == nil {
		return nil
	}
	var ok bool
	if c.core, ok = core.(codingCore); !ok {
		return fmt.Errorf("%w: Coding is set, and the core does not code; want the core Weft, or no Coding", ErrInvalid)
	}
	return nil
}

// state returns nil without coding.
func (c *coding) state() *CodingState {
	if c.core == nil {
		return nil
	}
	return &CodingState{CodingStatus: c.core.CodingStatus(), Counters: c.counts}
}
