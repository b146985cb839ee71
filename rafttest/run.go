// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"runtime/debug"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rafttest/internal/register"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

// mostEvents bounds a run: a run with more events makes no progress. The busiest that ends has a million (TestCoded, seed 1424).
// A run with a planted bug may loop, and has some ten thousand otherwise.
const mostEvents, mostPlanted = 2_000_000, 200_000

// run runs the cluster drawn by the seed, and reports the result.
func run(seed uint64, opts options) runResult {
	if opts.Joints {
		opts.Coded, opts.Brief, opts.Leases = true, true, true
	}
	if opts.Leases {
		opts.Coded = opts.Coded || world.NewDraws(seed, 20).Chance(0.3)
	}
	s := &sim{opts: opts, rng: world.NewDraws(seed, 1), net2: world.NewDraws(seed, 2)}
	s.story = world.NewStory(&s.Agenda, opts.Trace)
	s.plan = drawPlan(world.NewDraws(seed, 0))
	s.plan.drawMachines(world.NewDraws(seed, 40), opts)
	if opts.Early {
		s.plan.drawEarly(world.NewDraws(seed, 31))
	}
	if opts.Coded {
		s.plan.drawCoded(world.NewDraws(seed, 4))
		s.reports = world.NewDraws(seed, 5)
		s.plan.coded.reportLoss = s.reports.Rate(0.2, 0.001, 0.5)
		if opts.Falls {
			s.falls = world.NewDraws(seed, 6)
			s.plan.drawFalls(s.falls)
		}
		if opts.Brief {
			s.falls = world.NewDraws(seed, 6)
			s.plan.drawBrief(world.NewDraws(seed, 7), opts.Skip)
			s.plan.drawAmbushes(seed, opts.Skip)
			s.plan.drawBreaks(world.NewDraws(seed, 15))
		}
	}
	if opts.Leases {
		if opts.Joints {
			s.plan.duration = time.Minute
		}
		s.plan.drawLeased(world.NewDraws(seed, 21), opts.Beyond)
		s.plan.leased.drawTuner(world.NewDraws(seed, 22))
		if !opts.Joints && opts.Beyond == 0 {
			s.plan.leased.drawClocks(world.NewDraws(seed, 23))
		}
	}
	if opts.Joints {
		s.plan.drawJoints(seed, opts)
	}
	s.plan.drawPreferences(world.NewDraws(seed, 42), opts)
	if s.paces = world.NewDraws(seed, 43); !opts.Bare {
		s.plan.drawPace(s.paces)
		s.plan.sendsFirst = world.NewDraws(seed, 44).Chance(0.5)
	}
	s.live(seed)
	s.reach.NetworkCounts = s.net.NetworkCounts
	s.coded.Echoes = s.net.Echoed
	for _, n := range s.nodes {
		s.countLeases(n)
	}
	r := runResult{
		Outcome: seeds.Ended(seed, &s.story, s.failure),
		Reached: s.reach, Coded: s.coded, Leased: s.leased.leasedReach, Joints: s.joints, Early: s.early,
	}
	r.Plan, r.Recovery = s.plan.String(), s.end.took
	return r
}

// live lets the run happen. A panic of a node is a finding like any other.
func (s *sim) live(seed uint64) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case corePanic:
			s.fail(noPanic, "%s", x.text)
		default:
			s.fail(noPanic, "%v\n%s", x, debug.Stack())
		}
	}()
	f := &faults{s: s}
	s.faults = f
	s.found(seed)
	f.begin(seed)
	s.startClients()
	if s.plan.coded == nil || s.plan.coded.brief == nil {
		s.At(s.plan.duration, s.beginFinale)
	}
	most := mostEvents
	if s.opts.Bug != noBug {
		most = mostPlanted
	}
	for n := 0; s.failure == nil && !s.end.done; n++ {
		if n > most {
			s.fail(liveness, "%d events, and no end", n)
			return
		}
		s.Step(s.plan.duration + 3*finaleTime)
	}
	s.checkHistory()
}

// found makes the cluster and starts its founding members.
func (s *sim) found(seed uint64) {
	s.net = &network{s: s, Network: world.NewNetwork(&s.Agenda, s.net2, maxNodes, &s.plan.links)}
	s.net.Held, s.net.Echoes, s.plan.links.Queue = s.heldFrame, s.falls, queueTime
	if s.net.Echoes.Rand == nil {
		s.net.Echoes = world.NewDraws(seed, 41)
	}
	s.check = newChecker(s)
	s.countPlan()
	s.countCoded()
	s.countLeasedPlan()
	var first *pb.Snapshot
	if s.plan.prepared {
		empty := &store{}
		first = &pb.Snapshot{Data: empty.encode(), Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(2 + s.rng.IntN(5))), Term: new(uint64(1)), ConfState: s.foundingConf()}}
		s.check.founded(first.GetMetadata(), empty.digest())
	}
	for id := uint64(1); id <= maxNodes; id++ {
		drift := s.plan.drift * (2*s.rng.Float64() - 1)
		n := &node{s: s, id: id, spindle: world.NewSpindle(&s.Agenda), rand: world.NewDraws(seed, 100+id)}
		n.tickEvery = tickTime + timeOf(drift*float64(tickTime))
		n.uncoded = s.plan.coded != nil && s.plan.coded.late>>id&1 == 1
		s.nodes = append(s.nodes, n)
		if id <= uint64(s.plan.voters) {
			n.disk = newDisk(first, s.snapshotBusy)
		}
	}
	for _, n := range s.nodes {
		if n.disk != nil {
			n.start()
		}
	}
}

// count counts a part of a plan that a run has.
func count(to *uint64, is bool) {
	if is {
		*to++
	}
}

func (s *sim) countPlan() {
	p := &s.plan
	count(&s.reach.AsyncRuns, p.async)
	count(&s.reach.SyncRuns, !p.async)
	count(&s.reach.PreVoteRuns, p.preVote)
	count(&s.reach.LeaseRuns, p.lease)
	count(&s.reach.SingleNodes, p.voters == 1)
	count(&s.reach.BoldOperators, p.bold && p.membership > 0)
	count(&s.reach.DriftingClocks, p.drift > 0)
}

// countCoded counts the parts of a plan.
func (s *sim) countCoded() {
	p, r := s.plan.coded, &s.coded
	if p == nil {
		return
	}
	r.Runs++
	count(&r.MixedRuns, p.late != 0)
	count(&r.FullPolicies, p.policy == policyFull)
	count(&r.FixedPolicies, p.policy == policyFixed)
	count(&r.WildPolicies, p.policy == policyWild)
	count(&r.AdaptivePolicies, p.policy == policyAdaptive)
	count(&r.LevelledPolicies, p.policy == policyLevelled)
	count(&r.ClearPrefixes, p.prefix > 0)
	count(&r.ImpatientOperators, p.impatient && (s.plan.membership > 0 || p.brief.has(actChange, actReplace)))
	count(&r.SmallMemories, p.memory > 0)
	count(&r.DeferredGossip, p.gap > 0)
	count(&r.VetoedRuns, p.veto)
	count(&r.CodedEven, s.plan.voters%2 == 0)
	count(&r.Hurried, s.hurry() != hurryNot)
	count(&r.CodedSeven, s.plan.voters == maxNodes)
}

func (s *sim) countLeasedPlan() {
	l := s.plan.leased
	if l == nil {
		return
	}
	r := &s.leased.leasedReach
	r.Runs++
	count(&r.Notes, l.cfg.Notes)
	count(&r.Spans, l.spans)
	count(&r.Coded, s.plan.coded != nil)
	count(&r.Mixed, l.late != 0)
}

// checkHistory checks that the history is linearizable: that there is an order
// of the operations, each between its call and its return, with the recorded
// results.
func (s *sim) checkHistory() {
	if s.failure != nil {
		return
	}
	byKey := make([][]*operation, storeKeys)
	for _, op := range s.history.ops {
		if op.finished || op.verb != verbGet { // otherwise nobody saw the result
			byKey[op.key] = append(byKey[op.key], op)
		}
	}
	for key, ops := range byKey {
		if len(ops) == 0 {
			continue
		}
		s.reach.Histories++
		if err := register.Check(ops, (*operation).access); err != nil {
			s.fail(linearizability, "key %d:\n%v", key, err)
			return
		}
	}
}
