// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// sim is one run.
type sim struct {
	world.Agenda
	story world.Story
	opts  options
	plan  plan
	// rng draws the acts of hosts, disks and faults, net2 the acts of the
	// network. Two streams, so that a change to one leaves the other's story
	// alone.
	rng, net2 world.Draws
	// reports draws the acknowledgements that lose their part beside Raft.
	reports world.Draws
	// falls draws how leaders fall.
	falls world.Draws
	// timed counts the work that took time: see held.
	timed int

	nodes   []*node // by id, from 1
	net     *network
	faults  *faults
	clients []*client
	check   *checker
	history history
	finale  *finale
	reach   reach
	coded   codedReach
	leased  leasedState
	joints  jointReach
	early   earlyReach
	// marooned says that a follower was left without what the others cut.
	marooned bool

	// leader is the last elected node.
	leader uint64
	// minorityStayed is set when a change of the members left half of the
	// voters, or fewer, in office: see stalemate.
	minorityStayed bool
	// densifying is set while logs are to have no coded entries.
	densifying bool
	// stamp numbers the calls and returns of clients, in order.
	stamp int64

	failure *violation
}

// mostEvents bounds a run: a run with more events makes no progress.
const mostEvents = 1_000_000

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
	s.plan = drawPlan(world.NewDraws(seed, 0), opts)
	s.plan.drawProcess(world.NewDraws(seed, 3), opts)
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
	}
	if opts.Joints {
		s.plan.drawJoints(seed, opts)
	}
	s.live(seed)
	s.reach.NetworkCounts = s.net.NetworkCounts
	s.coded.Echoes = s.net.Echoed
	for _, n := range s.nodes {
		s.countLeases(n)
	}
	r := runResult{Seed: seed, Process: processCore, Hash: s.story.Hash, Lines: s.story.Lines, Plan: s.plan.String(), Reached: s.reach, Coded: s.coded, Leased: s.leased.leasedReach, Joints: s.joints, Early: s.early}
	if s.plan.host {
		r.Process = processHost
	}
	if s.finale != nil {
		r.Recovery = s.finale.took
	}
	if s.failure != nil {
		r.Err, r.Story = s.failure, s.story.Recent()
	}
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
	s.found(seed)
	s.faults.begin(seed)
	s.startClients()
	if s.plan.coded == nil || s.plan.coded.brief == nil {
		s.At(s.plan.duration, s.begin)
	}
	for n := 0; s.failure == nil && !s.over(); n++ {
		if n > mostEvents {
			s.fail(liveness, "%d events, and no end", n)
			return
		}
		s.Step(s.plan.duration + 3*finaleTime)
	}
	s.checkHistory()
}

// over reports whether the run has come to its end.
func (s *sim) over() bool { return s.finale != nil && s.finale.done }

// begin begins the end.
func (s *sim) begin() {
	s.finale = &finale{s: s}
	s.finale.begin()
}

// found makes the cluster and starts its founding members.
func (s *sim) found(seed uint64) {
	s.net = &network{s: s, Network: world.NewNetwork(&s.Agenda, s.net2, maxNodes, &s.plan.links)}
	s.net.Held, s.net.Echoes, s.plan.links.Queue = s.heldFrame, s.falls, queueTime
	if s.net.Echoes.Rand == nil {
		s.net.Echoes = world.NewDraws(seed, 41)
	}
	s.check = newChecker(s)
	s.faults = &faults{s: s}
	s.countPlan()
	s.countCoded()
	s.countLeasedPlan()
	var first *pb.Snapshot
	switch {
	case s.plan.host:
		// A rawnode group begins with entry 1, as its log says by itself.
		s.check.founded(&pb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: s.foundingConf()}, (&store{}).digest())
	case s.plan.prepared:
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

func (s *sim) countPlan() {
	count := func(to *uint64, is bool) {
		if is {
			*to++
		}
	}
	p := &s.plan
	count(&s.reach.AsyncRuns, p.async)
	count(&s.reach.SyncRuns, !p.async)
	count(&s.reach.HostRuns, p.host)
	count(&s.reach.CoreRuns, !p.host)
	count(&s.reach.PreVoteRuns, p.preVote)
	count(&s.reach.LeaseRuns, p.lease)
	count(&s.reach.SingleNodes, p.voters == 1)
	count(&s.reach.BoldOperators, p.bold && p.membership > 0)
	count(&s.reach.DriftingClocks, p.drift > 0)
}

func (s *sim) snapshotBusy() bool {
	busy := !s.calm() && s.rng.Chance(s.plan.busySnap)
	if busy {
		s.reach.SnapshotsBusy++
	}
	return busy
}

// calm reports whether the faults are over.
func (s *sim) calm() bool { return s.net.IsCalm() }

// join makes a node for a possible member, if the node does not exist, and
// starts the node if its host had shut it down.
func (s *sim) join(id uint64) {
	n := s.node(id)
	if n.disk == nil {
		n.disk = newDisk(nil, s.snapshotBusy)
		n.start()
		return
	}
	if n.retired {
		s.reach.Returns++
		n.restart()
	}
}

func (s *sim) node(id uint64) *node { return s.nodes[id-1] }

// running returns the nodes whose process runs, paused or not.
func (s *sim) running() []*node {
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n *node) bool { return !n.up() })
}

// leading returns the node that leads the highest term, or nil.
func (s *sim) leading() *node {
	var best *node
	for _, n := range s.nodes {
		if n.up() && n.proc.leads() && (best == nil || s.check.nodes[n.id].hard.term > s.check.nodes[best.id].hard.term) {
			best = n
		}
	}
	return best
}

func (s *sim) leaderElected(n *node, term uint64) {
	s.reach.Elections++
	if s.leader != n.id {
		s.reach.LeaderChanges++
	}
	s.leader = n.id
	s.tell(n.id, "leads term %d", term)
	s.faults.elected(n)
	if n.disk.durable.state.term < term {
		s.faults.depose(n)
	}
}

func (s *sim) founders() []raft.Peer {
	var peers []raft.Peer
	for _, id := range s.foundingConf().GetVoters() {
		peers = append(peers, raft.Peer{ID: id})
	}
	return peers
}

func (s *sim) foundingConf() *pb.ConfState {
	conf := &pb.ConfState{}
	for id := uint64(1); id <= uint64(s.plan.voters); id++ {
		conf.Voters = append(conf.Voters, id)
	}
	return conf
}

// tell adds a line to the story.
func (s *sim) tell(node uint64, format string, args ...any) {
	s.story.Tell(node, format, args...)
}

// fail records the first invariant that does not hold; the run ends.
func (s *sim) fail(invariant, format string, args ...any) {
	if s.failure != nil {
		return
	}
	s.failure = &violation{Invariant: invariant, At: s.Now(), Detail: fmt.Sprintf(format, args...)}
	s.tell(0, "VIOLATION %s: %s", invariant, s.failure.Detail)
	s.tellCoding()
}
