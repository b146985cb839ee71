// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
)

// This file is breaking connections, and hosts slow with snapshots.
//
// A break loses all messages under way on the connection, in both directions, and both
// ends hear of the break. A break does most harm to an acknowledgement: the leader then
// goes back to its knowledge before, and the follower has more. The calm ends neither
// kind of fault, so both kinds go on for a while in the calm.

// breaksPlan is a seed's draws about connections and snapshots, for a brief
// run.
type breaksPlan struct {
	// chance is that of an acknowledgement to be lost with its connection, until so
	// long after the calm began.
	chance float64
	calm   time.Duration
	// snapshot is a host's time for a snapshot asked for; busy says that the host
	// has no snapshot until then, not even the one before.
	snapshot time.Duration
	busy     bool
	// strand is the chance of a commit of coded entries to leave a member that has them
	// without units, and with no more than a majority alive: see strand.
	strand float64
	draws  world.Draws
}

// drawBreaks adds connections that break, and slow snapshots, to a brief run, in a
// stream of its own. Two thirds of the runs get none of it.
func (p *plan) drawBreaks(d world.Draws) {
	if !d.Chance(0.33) {
		return
	}
	p.coded.brief.breaks = &breaksPlan{
		chance: d.Scale(0.02, 0.5), calm: world.Pick(d, 0, d.Span(electionTime, 10*electionTime)),
		snapshot: world.Pick(d, 0, d.Span(10*time.Millisecond, 5*electionTime)), busy: d.Chance(0.5), draws: d,
	}
	if d.Chance(0.5) {
		p.drawStrand(d)
	}
}

// drawStrand has a member be left behind, and little else happen but proposals.
func (p *plan) drawStrand(d world.Draws) {
	c := p.coded
	b := c.brief
	b.breaks.strand = world.Pick(d, 0.2, 1)
	b.breaks.chance = d.Scale(0.1, 0.6)
	b.breaks.calm = d.Span(electionTime, 20*electionTime)
	b.breaks.snapshot = d.Span(10*time.Millisecond, 5*electionTime)
	c.dead, p.trailing, c.late = 1, 0, 0
	c.policy, c.level, c.threshold = policyFixed, d.Between(2, 3), 1
	b.acts = b.acts[:1]
	for range d.Between(1, 8) {
		b.acts = append(b.acts, act{kind: actPropose, wait: d.Span(time.Millisecond, 2*electionTime), led: true})
	}
	b.topple, b.unheard, b.deaf, b.blocked = 0, 0, 0, 0
}

// String says how likely connections break.
func (b *breaksPlan) String() string {
	if b == nil {
		return "never"
	}
	return fmt.Sprintf("%.2f until %v after the calm, snapshots in %v, busy %v, strand %v", b.chance, b.calm, b.snapshot, b.busy, b.strand)
}

// breaks is the plan of breaks; nil if there is none.
func (s *sim) breaks() *breaksPlan {
	if c := s.plan.coded; c != nil && c.brief != nil {
		return c.brief.breaks
	}
	return nil
}

// lasting is for how long connections break in the calm.
func (b *breaksPlan) lasting() time.Duration {
	if b == nil {
		return 0
	}
	return b.calm
}

// mayBreak perhaps breaks the connection before an acknowledgement goes out,
// and reports whether the connection broke.
func (s *sim) mayBreak(m *pb.Message) bool {
	b := s.breaks()
	if b == nil || m.GetType() != pb.MsgAppResp || m.GetReject() || s.Now() > s.plan.duration+b.lasting() || !b.draws.Chance(b.chance) {
		return false
	}
	s.coded.Breaks++
	from, to := m.GetFrom(), m.GetTo()
	s.tell(from, "connection to %d breaks with an acknowledgement of %d", to, m.GetIndex())
	s.net.Break(from, to, 0)
	for _, end := range [][2]uint64{{from, to}, {to, from}} {
		n := s.node(end[0])
		if p, ok := n.proc.(*coreProcess); ok {
			n.later(time.Microsecond, func() {
				p.rn.ReportUnreachable(end[1])
				p.did(nil)
			})
		}
	}
	return true
}

// strand keeps the others' units of a committed entry from a member that has the
// entry. The others apply the entry, and cut the entry from their logs; and then so
// many fail that a commit needs all the members left.
func (f *faults) strand(leader *node, e entryName) {
	s := f.s
	n := f.follower(leader, e)
	if n == nil {
		return
	}
	s.coded.Stranded++
	f.starveNode(n, 2*s.plan.duration)
	s.After(s.falls.Span(2*time.Millisecond, 60*time.Millisecond), func() {
		if s.calm() {
			return
		}
		left := len(s.check.newestConf().conf.GetVoters())/2 - 1
		for _, m := range s.running() {
			switch f.compactNode(m); {
			case m == n || m == leader:
			case left > 0:
				left--
			default:
				m.crash(false)
			}
		}
	})
}
