// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/simkit"
)

// This file is bad luck that waits for its moment. Acts of brief runs happen at times
// that a seed draws, which seldom are those at which a node is in the middle of
// something rare: it raises what is late, asks for what it lacks, cuts its log. An
// ambush lies in wait for one kind of what nodes say that they do, and then something
// happens, to that node or to another: while what it has just decided is not written
// yet, or a little later.

// moment is what an ambush waits for: a raft.CodingEventKind, or one of these.
type moment int

const (
	momentElected  moment = -1 - iota // a node leads
	momentLogged                      // it writes a change of the members
	momentInForce                     // it puts one into force
	momentSnapshot                    // it writes a snapshot that it was sent
	momentCut                         // it cuts what a checkpoint covers from its log
)

// ambush is one thing that waits.
type ambush struct {
	// on is what it waits for, and chance how likely it then happens.
	on     moment
	chance float64
	// kind is what happens; self says that it happens to the node that does what it
	// waits for, if not to another.
	kind actKind
	self bool
	// most is the longest time between the two, and left how often it may yet happen.
	most time.Duration
	left int
	// draws is a stream of its own, so that to leave one out leaves the others alone.
	draws simkit.Draws
	skip  bool
}

// mostAmbushes bounds the ambushes of a run. Their bits of Options.Skip follow those
// of the acts.
const mostAmbushes = 4

// ambushOn is what nodes do that is rare, or undecided for a while; often more than
// once if it is more likely to lead somewhere.
var ambushOn = []moment{
	moment(raft.CodingFallback), moment(raft.CodingFallback), moment(raft.CodingHedged), moment(raft.CodingHedged), moment(raft.CodingRiderCommit),
	moment(raft.CodingRecovery), moment(raft.CodingRecovery), moment(raft.CodingRecovered), moment(raft.CodingCut),
	moment(raft.CodingStuck), moment(raft.CodingSnapshot), moment(raft.CodingHandOver), moment(raft.CodingLeftOut),
	moment(raft.CodingChecked), moment(raft.CodingChecked), moment(raft.CodingEncoded), moment(raft.CodingAsked),
	moment(raft.CodingAnswered), moment(raft.CodingCompleted), moment(raft.CodingRejected),
	momentElected, momentLogged, momentLogged, momentInForce, momentInForce, momentSnapshot, momentSnapshot, momentCut,
}

// ambushActs is what may happen then.
var ambushActs = []actKind{
	actCrash, actCrash, actDoom, actSwap, actSwap, actIsolate, actPause, actSlowDisk, actCampaign, actForget, actTransfer,
	actCompact, actPropose, actChange, actReplace, actBlackout, actRestart, actUpset, actStarve,
}

// drawAmbushes adds to a brief run, in a stream of its own, what the draws before
// leave out: ambushes, unusual numbers of voters, a follower that is blocked. More than
// a third of the runs get none of it, and are what they were before there was any.
func (p *plan) drawAmbushes(seed, skip uint64) {
	d, b := simkit.NewDraws(seed, 13), p.coded.brief
	switch n := d.IntN(100); {
	case n < 3:
		p.voters = 2
	case n < 6:
		p.voters = 6 + d.IntN(2)
	}
	if d.Chance(0.06) {
		p.drawSwaps(d, seed, skip)
	} else if d.Chance(0.5) {
		for i := range d.Between(1, mostAmbushes) {
			b.ambushes = append(b.ambushes, &ambush{
				on: ambushOn[d.IntN(len(ambushOn))], chance: simkit.Pick(d, 0.2, 0.7, 1), kind: ambushActs[d.IntN(len(ambushActs))],
				self: d.Chance(0.5), most: simkit.Pick(d, 0, 100*time.Microsecond, 2*time.Millisecond, 30*time.Millisecond), left: simkit.Pick(d, 1, 2, 8),
				draws: simkit.NewDraws(seed, uint64(2000+i)), skip: skip>>(mostActs+1+i)&1 == 1,
			})
		}
	}
	if d.Chance(0.1) {
		b.blocked, p.trailing = 0.3, 0
		p.coded.dead, p.coded.falls.pushLoss = simkit.Pick(d, 0.5, 1), 1
		p.spares, p.preVote = max(p.spares, 1), true
	}
	if b.lies(actChange, actReplace) {
		p.spares, p.preVote = max(p.spares, 1), true // see drawFaults
	}
	p.spares = min(p.spares, maxNodes-p.voters)
	b.echo = simkit.NewDraws(seed, 14).Rate(0.15, 0.01, 0.5)
}

// drawSwaps has who is counted on fail as soon as a leader counts on it, and who had
// failed come back: entries are raised again, and each time for others.
func (p *plan) drawSwaps(d simkit.Draws, seed, skip uint64) {
	b := p.coded.brief
	p.voters = 5
	p.coded.policy, p.coded.level, p.coded.threshold = simkit.Pick(d, policyFixed, policyWild), 3, 1
	for i, a := range []ambush{
		{on: moment(raft.CodingEncoded), kind: actSwap, left: 1},
		{on: moment(raft.CodingFallback), kind: actSwap, left: simkit.Pick(d, 2, 8)},
		{on: moment(raft.CodingHedged), kind: actSwap, left: 8},
	} {
		a.chance, a.most, a.draws, a.skip = 1, simkit.Pick(d, 0, time.Millisecond), simkit.NewDraws(seed, uint64(2000+i)), skip>>(mostActs+1+i)&1 == 1
		b.ambushes = append(b.ambushes, &a)
	}
	b.acts = []act{b.acts[0], {kind: actPropose, wait: 50 * time.Millisecond, led: true}, b.acts[len(b.acts)-1]}
	b.rest = 4 * electionTime
	b.topple, b.unheard, b.deaf = 0, 0, 0 // the leader stays
}

// lies reports whether an ambush is of one of these kinds.
func (b *briefPlan) lies(kinds ...actKind) bool {
	return slices.ContainsFunc(b.ambushes, func(a *ambush) bool { return slices.Contains(kinds, a.kind) })
}

// String says what waits for what.
func (a *ambush) String() string {
	return fmt.Sprintf("%v at moment %d, self %v, chance %v, within %v, %d times", a.kind, a.on, a.self, a.chance, a.most, a.left)
}

// happens hears what a node does, from inside its core: what comes of it comes later.
func (f *faults) happens(n *node, now moment) {
	s := f.s
	if c := s.plan.coded; c == nil || c.brief == nil || s.calm() {
		return
	}
	for i, a := range s.plan.coded.brief.ambushes {
		if a.on != now || a.skip || a.left == 0 || !a.draws.Chance(a.chance) {
			continue
		}
		a.left--
		s.After(a.draws.Within(0, a.most), func() {
			if s.calm() {
				return
			}
			s.coded.Ambushes++
			rest := s.rng
			s.rng = a.draws
			f.aim = n
			if !a.self {
				f.aim = f.other(n)
			}
			s.tell(n.id, "ambush %d: %v", mostActs+1+i, a.kind)
			f.act(a.kind)
			s.rng, f.aim = rest, nil
		})
	}
}

// other returns another node that runs; nil if none does.
func (f *faults) other(n *node) *node {
	up := slices.DeleteFunc(f.s.running(), func(m *node) bool { return m == n })
	if len(up) == 0 {
		return nil
	}
	return up[f.s.rng.IntN(len(up))]
}

// swap has a node fail, and those come back that are down: who leads has just decided
// what it sends to whom, by who was there.
func (f *faults) swap() {
	s, n := f.s, f.anyNode()
	for _, m := range s.nodes {
		if m != n && !m.retired {
			m.restart()
		}
	}
	if n != nil {
		s.reach.Crashes++
		n.crash(s.rng.Chance(0.5))
	}
}

// starveNode has all units get lost that others send to a node, for a time.
func (f *faults) starveNode(n *node, until time.Duration) {
	if n != nil {
		n.starvedUntil = until
		f.s.tell(n.id, "gets no units until %v", until)
	}
}

// block has one that has a committed entry get no units of it. It hears of a change of
// the members that is committed behind it, and gets one more entry that nobody else
// gets; the others cut their logs, and the leader fails for good. That one then has the
// longest log, and can apply neither the entry nor the change.
func (f *faults) block(leader *node, e entryName) {
	s := f.s
	n := f.follower(leader, e)
	if n == nil {
		return
	}
	s.coded.Blocked++
	f.starveNode(n, 2*s.plan.duration)
	s.After(s.falls.Span(100*time.Microsecond, 10*time.Millisecond), func() {
		if s.calm() || !leader.up() || leader.paused {
			return
		}
		s.changeMembers()
		s.After(s.falls.Span(2*time.Millisecond, 60*time.Millisecond), func() { f.leaveAlone(leader, n) })
	})
}

// leaveAlone is the end of block.
func (f *faults) leaveAlone(leader, n *node) {
	s := f.s
	if s.calm() {
		return
	}
	for _, other := range s.running() {
		if other == n {
			continue
		}
		f.compactNode(other)
		if other != leader {
			s.net.cut(leader.id, other.id) // until all is mended
		}
	}
	f.burstOf(1, leader)
	f.soon(func() {
		if leader.up() {
			leader.crash(false)
		}
		if n.up() && !n.paused {
			n.proc.campaign()
		}
	})
}
