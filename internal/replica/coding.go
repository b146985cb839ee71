// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
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
	// backlog is Config.Backlog, nil without coding; asked is the time of the last question.
	backlog func(member uint64) (bytes int, known bool)
	asked   time.Duration
	// threshold is the size from which entries may be coded.
	threshold int
}

// configure completes the core's configuration, if entries are to be coded.
func (c *coding) configure(cfg *Config, core *raft.Config) {
	if cfg.Coding == nil {
		return
	}
	own := *cfg.Coding
	own.Recorder = &codingRecorder{counts: &c.counts, next: own.Recorder}
	if names := cfg.Names; names != nil && names.Zone != nil && names.Zone(cfg.ID) != "" {
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
	c.backlog, c.asked = cfg.Backlog, -backlogEvery
	c.threshold = cmp.Or(cfg.Coding.Threshold, raft.DefaultCodingThreshold)
	return nil
}

// backlogEvery is how often, at most, a leader looks at what waits. In between, the policy reckons
// with what it knows of rates.
const backlogEvery = time.Millisecond

// proposes tells the core what waits for each member, where that is known, before the core chooses
// the units of an entry of a size. The question costs a system call a member, so entries below the
// threshold, which travel whole in any case, ask nothing.
func (c *coding) proposes(f *facts, size int) {
	if c.backlog == nil || size < c.threshold || f.now-c.asked < backlogEvery {
		return
	}
	c.asked = f.now
	for _, members := range [][]uint64{f.host.conf.GetVoters(), f.host.conf.GetVotersOutgoing(), f.host.conf.GetLearners()} {
		for _, id := range members {
			if bytes, known := c.backlog(id); known {
				c.core.QueueHint(id, bytes, 0)
			}
		}
	}
}

// state returns nil without coding.
func (c *coding) state() *CodingState {
	if c.core == nil {
		return nil
	}
	return &CodingState{CodingStatus: c.core.CodingStatus(), Counters: c.counts}
}
