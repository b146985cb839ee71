// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"math"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/raft"
)

// plan holds the choices that a schedule draws once: the size of the group, its configuration and
// start, and the probability of each step. New probabilities for each schedule ("swarm testing")
// reach states that a single set of probabilities, however balanced, does not reach: no losses at
// all, nothing but ticks, and so on.
type plan struct {
	ids               []uint64
	voters, learners  []uint64
	start             startKind
	async             bool
	lossless, inOrder bool
	earlyAdvance      bool // Advance before the entries are applied
	carelessHost      bool // applies every configuration change, fitting or not
	cumulative        []int
	maxPayload        int
	hostile           bool // a peer sends anything
	wire              bool // messages are encoded on their way
	lazy              bool // hosts write nothing that need not be durable
	older             bool // rejections come from a version that does not know terms of hints
}

// startKind is the kind of a group's initial state.
type startKind int

const (
	startBootstrap startKind = iota // Bootstrap on empty storage
	startMembers                    // a configuration, and an empty log
	startSnapshot                   // storage prepared with a snapshot
	startHistory                    // a snapshot, and logs after the snapshot that have diverged
	startKinds
)

var startNames = [startKinds]string{"start: bootstrap", "start: prepared configuration", "start: prepared snapshot", "start: diverged logs"}

// draw returns the position of an op, with the probabilities of the plan.
func (p *plan) draw(c chance) int {
	x := c.IntN(p.cumulative[len(p.cumulative)-1])
	for i, upTo := range p.cumulative {
		if x < upTo {
			return i
		}
	}
	panic("unreachable: x is below the last cumulative weight")
}

func (s *schedule) drawPlan() plan {
	p := plan{
		start:        startKind(s.IntN(int(startKinds))),
		async:        s.oneIn(2),
		lossless:     s.oneIn(4),
		inOrder:      s.oneIn(3),
		earlyAdvance: s.oneIn(3),
		carelessHost: s.oneIn(12),
		maxPayload:   pick(s.chance, 0, 8, 40, 200, 1000, 5000),
	}
	voters, learners, spares := pick(s.chance, 1, 1, 2, 3, 3, 3, 3, 4, 5, 5), pick(s.chance, 0, 0, 0, 1, 2), pick(s.chance, 0, 1, 1, 2, 3)
	if p.start == startBootstrap {
		learners = 0 // Bootstrap adds voters only
	}
	p.ids = s.drawIDs(voters + learners + spares)
	p.voters, p.learners = p.ids[:voters], p.ids[voters:voters+learners]
	compacting := s.oneIn(4)
	sum := 0
	for i := range s.ops() {
		w := ops[i].weight * s.between(1, 20)
		if compacting && ops[i].compacts {
			w *= 5
		}
		if !ops[i].essential && s.oneIn(4) {
			w = 0
		}
		sum += w
		p.cumulative = append(p.cumulative, sum)
	}
	if !s.bare {
		p.hostile, p.wire, p.lazy, p.older = s.oneIn(6), s.oneIn(4), s.oneIn(5), s.oneIn(5)
	}
	s.tally.Hit(startNames[p.start])
	return p
}

// drawIDs draws n different ids: mostly 1 to n, sometimes any numbers.
func (s *schedule) drawIDs(n int) []uint64 {
	ids := make([]uint64, 0, n)
	if !s.oneIn(5) {
		for i := range n {
			ids = append(ids, uint64(i)+1)
		}
		s.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		return ids
	}
	for len(ids) < n {
		ids = append(ids, 1+s.Uint64()>>pick(s.chance, 1, 8, 40))
	}
	return ids
}

// drawConfig draws the configuration of the group; members vary it.
func (s *schedule) drawConfig() raft.Config {
	c := s.chance
	heartbeat := c.between(1, 3)
	cfg := raft.Config{
		HeartbeatTick:               heartbeat,
		ElectionTick:                heartbeat + c.between(1, 9),
		AsyncStorageWrites:          s.plan.async,
		MaxSizePerMsg:               pick[uint64](c, 0, 1, uint64(c.between(10, 300)), 4096, 1<<20, math.MaxUint64),
		MaxCommittedSizePerReady:    pick[uint64](c, 0, 0, uint64(c.between(1, 60)), uint64(c.between(60, 900)), 1<<20),
		MaxUncommittedEntriesSize:   pick[uint64](c, 0, 0, uint64(c.between(1, 200)), 3000, math.MaxUint64),
		MaxInflightMsgs:             pick(c, 1, 2, 3, 8, 256),
		CheckQuorum:                 c.oneIn(2),
		PreVote:                     c.oneIn(2),
		DisableProposalForwarding:   c.oneIn(4),
		DisableConfChangeValidation: c.oneIn(5),
		StepDownOnRemoval:           c.oneIn(2),
		TraceLogger:                 pick[raft.TraceLogger](c, nil, struct{}{}),
	}
	if cfg.MaxSizePerMsg == 0 && cfg.MaxCommittedSizePerReady == 0 && !c.oneIn(25) {
		cfg.MaxCommittedSizePerReady = 100 // otherwise the first committed entry panics
	}
	if cfg.MaxSizePerMsg < math.MaxUint64 && c.oneIn(3) {
		cfg.MaxInflightBytes = cfg.MaxSizePerMsg + pick[uint64](c, 1, 50, 5000)
	}
	if cfg.CheckQuorum && c.oneIn(3) {
		cfg.ReadOnlyOption = raft.ReadOnlyLeaseBased
	}
	if c.oneIn(2) {
		cfg.Logger = silent.Logger{}
	}
	if !s.bare && c.oneIn(30) { // hosts that want no elections; twice the largest number overflows
		cfg.ElectionTick = pick(c, math.MaxInt32, 1<<40, 1<<62, math.MaxInt, math.MaxInt-1)
	}
	if !s.bare && c.oneIn(20) {
		cfg.MaxInflightMsgs, cfg.MaxCommittedSizePerReady = math.MaxInt, math.MaxUint64
	}
	if s.strange && c.oneIn(5) {
		cfg.MaxInflightBytes = pick(c, cfg.MaxSizePerMsg, math.MaxUint64)
	}
	if s.strange && c.oneIn(10) {
		cfg.ReadOnlyOption = 2 // which upstream does not refuse
	}
	return cfg
}

// reconfigure draws another configuration for the next start of a member, as an operator may.
func (s *schedule) reconfigure(m *member) {
	m.cfg = s.drawConfig()
	m.cfg.ID, m.cfg.AsyncStorageWrites = m.id, s.oneIn(2)
	s.tallyConfig(&m.cfg)
	s.tally.Hit("restart: with another configuration")
}

// timeout returns a member's election timeout, or less of a timeout that is not to be waited for.
func (m *member) timeout() int { return min(m.cfg.ElectionTick, 12) }

// vary changes a part of the group's configuration for a member.
func (s *schedule) vary(cfg raft.Config) raft.Config {
	if !s.oneIn(4) {
		return cfg
	}
	other := s.drawConfig()
	switch s.IntN(6) {
	case 0:
		cfg.ElectionTick, cfg.HeartbeatTick = other.ElectionTick, other.HeartbeatTick
	case 1:
		cfg.PreVote = other.PreVote
	case 2:
		cfg.CheckQuorum, cfg.ReadOnlyOption = other.CheckQuorum, other.ReadOnlyOption
	case 3:
		cfg.MaxSizePerMsg, cfg.MaxCommittedSizePerReady = other.MaxSizePerMsg, other.MaxCommittedSizePerReady
		cfg.MaxInflightBytes = other.MaxInflightBytes
	case 4:
		cfg.MaxUncommittedEntriesSize, cfg.MaxInflightMsgs = other.MaxUncommittedEntriesSize, other.MaxInflightMsgs
	case 5:
		cfg.DisableProposalForwarding, cfg.StepDownOnRemoval = other.DisableProposalForwarding, other.StepDownOnRemoval
	}
	return cfg
}
