// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"bytes"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// codedPlan is a seed's draws about coding. Plans without coding have no
// codedPlan: their runs are as they were before coding existed.
type codedPlan struct {
	threshold int
	prefix    int // length of the clear prefix
	memory    int // bytes of the unit store; 0 is the default
	gap       int // gossip waits until it is so many bytes behind
	delay     int // and so many ticks
	policy    policyKind
	level     int     // of a fixed policy
	clock     bool    // nodes can tell the time between ticks
	poll      bool    // and the host calls when they want to be called
	veto      bool    // some payloads must not be coded
	lateSeal  bool    // hosts make each member's form of an entry
	stale     float64 // the wild policy's chance to assign too little

	// zones is over how many zones the nodes are spread; 0: there are none. strangers are bits of pairs of nodes of which
	// one does not know the other's zone.
	zones     uint64
	strangers uint64

	// late is the nodes beginning with coding off, by bit; the operator
	// restarts the nodes with coding on one after the other.
	late    uint
	upgrade time.Duration
	// dense is the mean time between wishes for a log without coded entries,
	// after which nodes run without coding for a while.
	dense time.Duration

	unitLoss, unitCorrupt, unitLies float64 // chances of a message with units
	// reportLoss is the chance of an acknowledgement to lose its Context, as on
	// a transport that carries Contexts only in part.
	reportLoss float64
	// impatient operators do not wait, between two changes of the members,
	// until all know durably of the first.
	impatient bool
	// replace is the mean time between changes of two or more voters at once.
	replace time.Duration
	// blackout is the mean time between losses of power at all nodes.
	blackout time.Duration
	// dead is the chance that as many nodes as may be dead are, in the end.
	dead float64
	// falls is nil unless runs are asked for in which leaders fall.
	falls *fallsPlan
	// brief is nil unless the run is a brief one.
	brief *briefPlan
}

// policyKind is how units are assigned.
type policyKind int

const (
	policyAdaptive policyKind = iota
	policyLevelled
	policyFull
	policyFixed
	policyWild
	policyTimed // in joints only
	policyKinds
)

// String returns the kind's name.
func (k policyKind) String() string {
	return [...]string{"adaptive", "levelled", "full", "fixed", "wild", "timed"}[k]
}

// drawCoded draws a plan with coding over a plan without. The draws have a
// stream of their own.
func (p *plan) drawCoded(d world.Draws) {
	c := &codedPlan{
		threshold: world.Pick(d, 1, 64, 64, 300),
		prefix:    world.Pick(d, 0, 0, 0, 4, 22),
		gap:       world.Pick(d, 0, 0, 2000, 20000),
		delay:     world.Pick(d, 0, 0, 1, 5),
		policy:    world.Pick(d, policyAdaptive, policyLevelled, policyFixed, policyFixed, policyWild, policyWild, policyFull),
		level:     d.Between(1, 5),
		clock:     d.Chance(0.6),
		veto:      d.Chance(0.2),
		impatient: d.Chance(0.5),
		dead:      world.Pick(d, 0, 0.5, 1),
	}
	c.poll = c.clock && d.Chance(0.7)
	c.stale = d.Rate(0.5, 0.01, 0.5)
	if d.Chance(0.25) {
		c.late = uint(d.IntN(1 << maxNodes))
		c.upgrade = d.Span(100*time.Millisecond, time.Second)
	}
	c.dense = d.Every(0.15, 300*time.Millisecond, 3*time.Second)
	c.unitLoss = d.Rate(0.4, 0.01, 0.6)
	c.unitCorrupt = d.Rate(0.4, 0.01, 0.5)
	c.replace = d.Every(0.4, 200*time.Millisecond, 2*time.Second)
	c.blackout = d.Every(0.25, time.Second, 4*time.Second)
	p.coded = c

	p.voters = world.Pick(d, 2, 3, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7)
	p.spares = min(d.IntN(4), maxNodes-p.voters)
	p.padding = world.Pick(d, 60, 300, 1500, 4000)
	c.memory = world.Pick(d, 0, 0, 10_000+2*p.padding, 10_000+10*p.padding)
	p.lease = false
	p.preVote = p.preVote || c.replace > 0
	if p.maxInflightBytes > 0 {
		p.maxInflightBytes += 8000
	}
	if p.maxUncommittedEntriesSize > 0 {
		p.maxUncommittedEntriesSize = uint64(p.padding)
	}
	p.duration = p.duration * 2 / 3
	c.unitLies = d.Rate(0.2, 0.01, 0.2)
	c.lateSeal = d.Chance(0.5)
	if c.zones = world.Pick[uint64](d, 0, 0, 1, 2, 3); d.Chance(0.3) {
		c.strangers = d.Uint64() & d.Uint64()
	}
}

// zone returns the zone of a node, as another knows it.
func (c *codedPlan) zone(self, id uint64) string {
	if self != id && c.strangers>>((7*self+id)%64)&1 == 1 {
		return ""
	}
	return string(rune('a' + id%c.zones))
}

// coding returns a node's configuration of coding; nil if it runs without.
func (p *coreProcess) coding() *raft.Coding {
	c := p.s.plan.coded
	if c == nil || p.n.uncoded {
		return nil
	}
	cfg := &raft.Coding{
		Threshold:   c.threshold,
		Policy:      p.policy(),
		ClearPrefix: c.prefix,
		Memory:      c.memory,
		GossipGap:   c.gap,
		GossipDelay: c.delay,
		Recorder:    &codingRecorder{p.n},
		LateSeal:    c.lateSeal,
	}
	if c.veto {
		cfg.Veto = vetoed
	}
	if c.zones > 0 {
		cfg.Zone = func(id uint64) string { return c.zone(p.n.id, id) }
	}
	return cfg
}

// sealLate has the transport's codec make the receiver's form of a leaving
// message, if sealing is the host's part.
func (p *coreProcess) sealLate(m *pb.Message) *pb.Message {
	c := p.s.plan.coded
	if c == nil || p.n.uncoded || !c.lateSeal || m.GetType() != pb.MsgApp {
		return m
	}
	got, err := world.OverWire(wire.Message{Group: hostGroup, From: m.GetFrom(), To: m.GetTo(),
		Body: wire.Raft{Message: m, OwnForm: true, ClearPrefix: c.prefix}})
	body, ok := got.Body.(wire.Raft)
	if err != nil || !ok || len(body.GetEntries()) != len(m.GetEntries()) {
		p.s.fail(noPanic, "node %d: an append with %d entries does not survive the codec: %v", p.n.id, len(m.GetEntries()), err)
		return m
	}
	for i, e := range body.GetEntries() {
		if !bytes.Equal(e.GetData(), m.GetEntries()[i].GetData()) {
			p.s.coded.LateSeals++
		}
	}
	return body.Message
}

// vetoed says which payloads must travel whole.
func vetoed(data []byte) bool {
	c, err := decodeCommand(data)
	return err == nil && c.value%16 == 3
}

func (p *coreProcess) policy() ecraft.Policy {
	switch c := p.s.plan.coded; c.policy {
	case policyFull:
		return ecraft.Full{}
	case policyFixed:
		return ecraft.Fixed(c.level)
	case policyLevelled:
		return ecraft.Levelled{}
	case policyWild:
		return &wildPolicy{s: p.s}
	case policyTimed:
		return timedPolicy{ecraft.Fixed(c.level), p.s.plan.joints.predicted}
	default:
		return adaptive.New(adaptive.Options{})
	}
}

// wildPolicy assigns units at random: mostly enough for the entry to commit
// with the answers of all present members, and sometimes less.
type wildPolicy struct{ s *sim }

// Assign implements [ecraft.Policy].
func (w *wildPolicy) Assign(r *ecraft.Round, units []int) ecraft.Plan {
	d := r.Layout.D
	for i := range units {
		units[i] = w.s.rng.IntN(d + 1)
	}
	if w.s.rng.Chance(w.s.plan.coded.stale) {
		return ecraft.Plan{}
	}
	for !ecraft.Enough(r, units) {
		i := w.s.rng.IntN(len(units))
		units[i] = min(units[i]+1+w.s.rng.IntN(d), d)
	}
	return ecraft.Plan{}
}

// skewedClock is the clock of a node: as fast or slow as its ticks.
type skewedClock struct{ n *node }

// Now implements [raft.Clock].
func (c skewedClock) Now() time.Duration {
	return time.Duration(float64(c.n.s.Now()) * c.rate())
}

func (c skewedClock) rate() float64 { return float64(tickTime) / float64(c.n.tickEvery) }

// nodeClock is a clock of a node, with its rate.
type nodeClock interface {
	raft.Clock
	rate() float64
}

// dense reports whether no disk has a coded entry, so that a node may run
// without coding: neither as read by a host, nor as a crash now would leave the
// disk.
func (s *sim) dense() bool {
	for _, n := range s.nodes {
		if n.disk != nil && (s.findCoded(n) != 0 || s.firstCoded(&n.disk.durable) != 0) {
			return false
		}
	}
	return true
}

// firstCoded returns the index of the first coded entry in an image, or 0.
func (s *sim) firstCoded(im *image) uint64 {
	for _, e := range im.entries {
		if e.GetType() == pb.EntryNormal && ecraft.IsEnvelope(e.GetData(), s.plan.coded.prefix) {
			return e.GetIndex()
		}
	}
	return 0
}

// findCoded is the question of a host before a run without coding. The answer
// must agree with the disk.
func (s *sim) findCoded(n *node) uint64 {
	index, err := replica.FindCoded(n.disk, s.plan.coded.prefix)
	if want := s.firstCoded(&n.disk.live); err != nil || index != want {
		s.fail(noPanic, "node %d: the first coded entry of the log is found at %d (%v); it is at %d", n.id, index, err, want)
	}
	return index
}

// startPlain is a start without coding. A host refuses the start on a log with
// coded entries: the host would take units for commands.
func (p *coreProcess) startPlain() {
	p.s.coded.PlainStarts++
	if index := p.s.findCoded(p.n); index != 0 {
		p.s.fail(stateMachineSafety, "node %d starts without coding, and entry %d of its log is coded", p.n.id, index)
	}
}

// planPoll plans the core's next call between two ticks, if the host makes
// such calls.
func (p *coreProcess) planPoll() {
	if c := p.s.plan.coded; c == nil || !c.poll || p.n.uncoded || p.clock == nil {
		return
	}
	at, ok := p.rn.NextDeadline()
	now := p.clock.Now()
	if !ok || at == p.pollAt && at > now {
		return
	}
	p.pollAt = at
	wait := timeOf(float64(at-now) / p.clock.rate())
	p.n.later(max(wait, time.Microsecond)+time.Microsecond, func() {
		p.s.coded.Polls++
		p.rn.Poll()
		p.did(nil)
	})
}
