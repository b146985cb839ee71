// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/raft"
)

// codedThreshold is small, so that most commands with a payload are coded.
const codedThreshold = 128

// codingMemory is small, so that units compete for room.
const codingMemory = 256 << 10

// coded is this module's library with coded entries, configured for each kind
// of host: a host that looks into entries names how far, and the entries needed
// whole. Changes, if any, are made to this configuration.
func coded(kind kind, changes ...func(*raft.Coding)) library {
	return library{
		Name: "weft coded", Coded: true, Types: int(raft.MsgUnitsAsk) + 1,
		New: func(reach *reach, cfg raft.Config) (core, error) {
			c := codingFor(kind)
			c.Recorder = reach
			if cfg.Rand != nil {
				drawCoding(c, cfg.Rand)
			}
			for _, change := range changes {
				change(c)
			}
			cfg.Coding = c
			return newWeft(reach, cfg)
		},
	}
}

// drawCoding draws the settings that may differ between members: the times of
// gossip, and the policy, because on links without a bandwidth the adaptive
// policy alone would hardly code.
func drawCoding(c *raft.Coding, r raft.Rand) {
	if r.IntN(3) == 0 {
		c.GossipGap, c.GossipDelay = r.IntN(128<<10), r.IntN(6)
	}
	switch n := r.IntN(6); n {
	case 0:
		c.Policy = adaptive.New(adaptive.Options{})
	case 1:
		c.Policy = ecraft.Levelled{}
	case 2:
		c.Policy = ecraft.Full{}
	default:
		c.Policy = ecraft.Fixed(n - 1)
	}
}

func codingFor(kind kind) *raft.Coding {
	c := &raft.Coding{Threshold: codedThreshold, Memory: codingMemory}
	if kind == cockroachLike {
		c.ClearPrefix = headLen
		c.Veto = func(data []byte) bool { return len(data) > 0 && encoding(data[0]) == sideloaded }
	}
	return c
}

// codedCore is what a core with coded entries has beside the rest.
type codedCore interface {
	CodingStatus() raft.CodingStatus
	Densify(on bool)
}
