// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"bytes"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

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
	if c == nil || p.n.uncoded || !c.lateSeal || m.GetType() != pb.MsgApp || len(m.GetEntries()) == 0 {
		return m
	}
	got, err := world.OverWire(wire.Message{Group: 1, From: m.GetFrom(), To: m.GetTo(),
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
	return !slices.ContainsFunc(s.nodes, func(n *node) bool {
		return n.disk != nil && (s.findCoded(n) != 0 || s.firstCoded(&n.disk.durable) != 0)
	})
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

// codingRecorder counts the events of a node's core.
type codingRecorder struct{ n *node }

// RecordCoding implements [raft.CodingRecorder].
func (c *codingRecorder) RecordCoding(e raft.CodingEvent) {
	s := c.n.s
	r := &s.coded
	s.faults.happens(c.n, moment(e.Kind))
	if e.Kind == raft.CodingFallback || e.Kind == raft.CodingHedged || e.Kind == raft.CodingChecked {
		s.faults.meets(c.n, momentRaised)
	}
	one := r.counter(e.Kind)
	if one != nil {
		*one++
	}
	switch e.Kind {
	case raft.CodingEncoded:
		if p := c.n.proc; p != nil && len(p.conf.GetLearners()) > 0 {
			r.CodedLearners++
		}
		return
	case raft.CodingCut:
		r.CutEntries += uint64(e.Count)
	case raft.CodingRecovery:
		if known := s.check.committed; e.Index < uint64(len(known)) && known[e.Index] != 0 {
			r.OfCommitted++
		}
	case raft.CodingSent, raft.CodingDelayed, raft.CodingPushed, raft.CodingHeldBack:
		return // too common for a line
	}
	s.story.Aside(c.n.id, "coding: %+v", e)
}
