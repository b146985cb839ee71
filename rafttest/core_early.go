// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
)

// Runs of TestEarly have cores that hand out what a majority has stored before their own hosts have
// (raft.Config.MaxEarlyApplySize), hosts with slow disks, and crashes of hosts that have applied what
// their disks lack. The simulator measures what is handed out by itself (rule E2 in raft/early.go);
// its host makes a checkpoint only of what it has written (rules E3 and E4), and all other invariants
// are those of TestSim.

// handsEarly looks at entries that the core hands out to be applied.
func (p *coreProcess) handsEarly(ents []*pb.Entry) {
	if p.s.plan.earlySize == 0 || len(ents) == 0 {
		return
	}
	to, sizes := ents[len(ents)-1].GetIndex(), map[uint64]uint64{}
	for _, list := range [][]*pb.Message{p.appends.writing, p.appends.waiting} {
		for _, m := range list {
			for _, e := range m.GetEntries() {
				if e.GetIndex() <= to {
					sizes[e.GetIndex()] = uint64(proto.Size(e))
				}
			}
		}
	}
	bytes := uint64(0)
	for _, size := range sizes {
		bytes += size
	}
	most := p.s.plan.earlySize
	switch {
	case bytes > most:
		p.s.fail(budget, "node %d: %d bytes of entries up to %d are handed out and not stored, the bound is %d", p.n.id, bytes, to, most)
		return
	case bytes == 0:
		return
	}
	p.s.early.Applies++
	if bytes+uint64(proto.Size(ents[0])) > most {
		p.s.early.Full++
	}
	if !p.s.calm() && p.s.rng.Chance(p.s.plan.fallWhenEarly) {
		p.n.later(p.s.rng.Within(0, 5*time.Millisecond), func() {
			if !p.s.calm() {
				p.s.faults.crash(p.n)
			}
		})
	}
}

// written returns the term of the entry that the host applied last, if it has written that entry. If
// not, the next write brings the checkpoint that is due.
func (p *coreProcess) written() (term uint64, ok bool) {
	term, ok = p.n.disk.live.term(p.applied)
	switch {
	case p.s.plan.earlySize == 0:
		return term, ok // not written only if a snapshot comes in between
	case p.s.opts.Bug == earlyCheckpoint:
		return p.appliedTerm, true
	case !ok || term != p.appliedTerm:
		p.owes = true
		p.s.early.Held++
		return 0, false
	}
	return term, true
}

// payOwed makes the checkpoint that waited for a write.
func (p *coreProcess) payOwed() {
	if p.owes {
		p.owes = false
		p.maybeCheckpoint(true)
	}
}

// crashedEarly looks at what a crash has left.
func (n *node) crashedEarly() {
	if p := n.proc; p != nil && n.s.plan.earlySize > 0 && p.applied > n.disk.live.last() {
		n.s.early.Behind++
	}
}

// plantEarly changes the settings of a core for a planted bug.
func (p *coreProcess) plantEarly(c *raft.Config) {
	if p.s.opts.Bug == earlyUnbounded && c.MaxEarlyApplySize > 0 {
		c.MaxEarlyApplySize = 1 << 50
	}
}
