// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// This file is bad luck that waits for its moment. Acts of brief runs happen at times
// drawn by a seed, seldom in the middle of a node's rare work: raising late entries,
// asking for missing units, cutting the log. An ambush waits until a node reports one
// kind of work, and then an act happens, to the node or to another: before the node's
// decision is written, or a little later.

// moment is the trigger of an ambush: a raft.CodingEventKind, or a moment
// below.
type moment int

const (
	momentElected  moment = -1 - iota // a node leads
	momentLogged                      // the node writes a change of the members
	momentInForce                     // the node puts a change into force
	momentSnapshot                    // the node writes a received snapshot
	momentCut                         // the node cuts its log up to a checkpoint
	// These come in joints only.
	momentHanded   // the host gets a committed change of the members
	momentReported // the host has reported a change, and not put it into force
	momentRaised   // the node appends a carrier
	momentGranted  // the node grants a lease
	momentTransfer // the node has another campaign
	momentTwoSets  // the node commits while more than one change is not in force
)

// ambush is an act that waits for a moment.
type ambush struct {
	// on is the moment, and chance the probability of the act then.
	on     moment
	chance float64
	// kind is the kind of the act; self says that the act happens to the node of
	// the moment, not to another node.
	kind actKind
	self bool
	// most is the longest time between the two, and left how often it may yet happen.
	most time.Duration
	left int
	// draws is a stream of its own, so that without one ambush the others stay the
	// same.
	draws world.Draws
	skip  bool
}

// mostAmbushes bounds the ambushes of a run. Their bits of Options.Skip follow those
// of the acts.
const mostAmbushes = 4

// ambushOn is the nodes' rare work, and work undecided for a while; moments more
// likely to lead somewhere are listed more than once.
var ambushOn = []moment{
	moment(raft.CodingFallback), moment(raft.CodingFallback), moment(raft.CodingHedged), moment(raft.CodingHedged), moment(raft.CodingRiderCommit),
	moment(raft.CodingRecovery), moment(raft.CodingRecovery), moment(raft.CodingRecovered), moment(raft.CodingCut),
	moment(raft.CodingStuck), moment(raft.CodingSnapshot), moment(raft.CodingHandOver), moment(raft.CodingLeftOut),
	moment(raft.CodingChecked), moment(raft.CodingChecked), moment(raft.CodingEncoded), moment(raft.CodingAsked),
	moment(raft.CodingAnswered), moment(raft.CodingCompleted), moment(raft.CodingRejected),
	momentElected, momentLogged, momentLogged, momentInForce, momentInForce, momentSnapshot, momentSnapshot, momentCut,
}

// ambushActs is the acts of ambushes.
var ambushActs = []actKind{
	actCrash, actCrash, actDoom, actSwap, actSwap, actIsolate, actPause, actSlowDisk, actCampaign, actForget, actTransfer,
	actCompact, actPropose, actChange, actReplace, actBlackout, actRestart, actUpset, actStarve,
}

// drawAmbushes adds to a brief run, in a stream of its own, the parts left out by the
// draws before: ambushes, unusual numbers of voters, a blocked follower. More than a
// third of the runs get no such part, and are as they were before ambushes existed.
func (p *plan) drawAmbushes(seed, skip uint64) {
	d, b := world.NewDraws(seed, 13), p.coded.brief
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
				on: ambushOn[d.IntN(len(ambushOn))], chance: world.Pick(d, 0.2, 0.7, 1), kind: ambushActs[d.IntN(len(ambushActs))],
				self: d.Chance(0.5), most: world.Pick(d, 0, 100*time.Microsecond, 2*time.Millisecond, 30*time.Millisecond), left: world.Pick(d, 1, 2, 8),
				draws: world.NewDraws(seed, uint64(2000+i)), skip: skip>>(mostActs+1+i)&1 == 1,
			})
		}
	}
	if d.Chance(0.1) {
		b.blocked, p.trailing = 0.3, 0
		p.coded.dead, p.coded.falls.pushLoss = world.Pick(d, 0.5, 1), 1
		p.spares, p.preVote = max(p.spares, 1), true
	}
	if b.lies(actChange, actReplace) {
		p.spares, p.preVote = max(p.spares, 1), true // see drawFaults
	}
	p.spares = min(p.spares, maxNodes-p.voters)
	p.links.Echo = world.NewDraws(seed, 14).Rate(0.15, 0.01, 0.5)
}

// drawSwaps has followers fail as soon as a leader counts on their answers, and
// failed followers come back: entries are raised again, and each time for other
// followers.
func (p *plan) drawSwaps(d world.Draws, seed, skip uint64) {
	b := p.coded.brief
	p.voters = 5
	p.coded.policy, p.coded.level, p.coded.threshold = world.Pick(d, policyFixed, policyWild), 3, 1
	for i, a := range []ambush{
		{on: moment(raft.CodingEncoded), kind: actSwap, left: 1},
		{on: moment(raft.CodingFallback), kind: actSwap, left: world.Pick(d, 2, 8)},
		{on: moment(raft.CodingHedged), kind: actSwap, left: 8},
	} {
		a.chance, a.most, a.draws, a.skip = 1, world.Pick(d, 0, time.Millisecond), world.NewDraws(seed, uint64(2000+i)), skip>>(mostActs+1+i)&1 == 1
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

// String names the act and its moment.
func (a *ambush) String() string {
	return fmt.Sprintf("%v at moment %d, self %v, chance %v, within %v, %d times", a.kind, a.on, a.self, a.chance, a.most, a.left)
}
