// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// leasedPlan is what a seed draws about leases. Plans without leases have none.
type leasedPlan struct {
	cfg    raft.Leases // of a process with the longest leases
	spans  bool        // reads and entries tell their keys
	rates  [maxNodes + 1]float64
	ambush float64 // chance of a fault where a message of leases matters
	rename time.Duration
	retire float64 // chance that an operator switches leases off and on again
	probe  time.Duration
	late   uint // the nodes without leases, by bit: they grant nothing
	// retune is how often an operator switches the tuner; 0: there is none.
	retune time.Duration
	tuning world.Draws
}

// drawLeased draws a plan with leases over a plan without. The draws have a stream
// of their own.
func (p *plan) drawLeased(d world.Draws, beyond float64) {
	p.preVote, p.checkQuorum, p.lease = true, true, false
	if voters := world.Pick(d, 1, 2, 3, 3, 3, 4, 5, 5, 6, 7); p.coded == nil {
		p.voters = voters
	}
	p.spares = min(d.IntN(4), maxNodes-p.voters)
	p.duration = d.Span(time.Second, 3*time.Second)
	p.links.Most = min(p.links.Most, 8*time.Millisecond)
	p.links.Least = min(p.links.Least, p.links.Most/2)
	p.syncMax, p.syncMin = min(p.syncMax, 4*time.Millisecond), min(p.syncMin, time.Millisecond)
	p.drift = min(p.drift, 0.2)
	p.outage = d.Span(100*time.Millisecond, time.Second)
	for _, mean := range []*time.Duration{&p.crash, &p.partition, &p.oneWay, &p.isolate, &p.pause, &p.slowDsk, &p.membership, &p.transfer, &p.campaign, &p.forget} {
		*mean /= 4 // runs are brief
	}
	l := &leasedPlan{
		spans:  d.Chance(0.5),
		ambush: d.Rate(0.5, 0.005, 0.2),
		rename: d.Every(0.6, 50*time.Millisecond, time.Second),
		retire: world.Pick(d, 0, 0, 0.1),
		probe:  d.Span(2*time.Millisecond, 20*time.Millisecond),
	}
	if d.Chance(0.1) {
		l.late = uint(d.IntN(1 << maxNodes))
	}
	for l.cfg.Tick == 0 || (&raft.Config{ID: 1, ElectionTick: electionTicks, HeartbeatTick: p.heartbeatTick, MaxInflightMsgs: 1,
		Storage: raft.NewMemoryStorage(), PreVote: true, CheckQuorum: true, Clock: leaseClock{}, Leases: &l.cfg}).Validate() != nil {
		l.cfg = raft.Leases{
			Tick: tickTime, Boot: 1,
			Lease:      d.Span(60*time.Millisecond, 300*time.Millisecond),
			Heartbeat:  d.Span(5*time.Millisecond, 25*time.Millisecond),
			Fail:       d.Span(30*time.Millisecond, 120*time.Millisecond),
			Hold:       world.Pick(d, 0, time.Millisecond, time.Second),
			DriftPPM:   world.Pick(d, 1000, 20_000, 100_000),
			Resolution: world.Pick(d, time.Microsecond, time.Millisecond),
			Notes:      d.Chance(0.5),
			Wanted:     someWanted(d, p.voters+p.spares),
		}
		if beyond > 0 {
			l.cfg.DriftPPM = 100_000
		}
	}
	rho := float64(l.cfg.DriftPPM) / 1e6 * max(beyond, 1)
	for id := range l.rates {
		l.rates[id] = max(0.05, 1+rho*world.Pick(d, -1, -1, 0, 1, 1, 2*d.Float64()-1))
	}
	p.leased = l
}

// drawTuner has a quarter of the runs with leases choose responders by where keys are read,
// and an operator switch that on and off. The draws have a stream of their own.
func (l *leasedPlan) drawTuner(d world.Draws) {
	if !d.Chance(0.25) {
		return
	}
	l.tuning, l.retune = d, d.Span(30*time.Millisecond, 400*time.Millisecond)
	l.cfg.Tuner = &leases.TunerConfig{Window: d.Span(20*time.Millisecond, 150*time.Millisecond), Spans: d.Between(1, 5), Least: d.Between(1, 6)}
	if d.Chance(0.5) {
		l.cfg.Wanted = nil
	}
}

// someWanted draws responders, for all keys or for two parts of them.
func someWanted(d world.Draws, nodes int) []leases.Want {
	some := func() (ids []leases.NodeID) {
		for id := range nodes {
			if d.Chance(0.5) {
				ids = append(ids, leases.NodeID(id+1))
			}
		}
		return ids
	}
	if d.Chance(0.5) {
		at := keyName(uint8(1 + d.IntN(3)))
		return []leases.Want{{Span: leases.Span{End: at}, Nodes: some()}, {Span: leases.Span{Start: at}, Nodes: some()}}
	}
	return []leases.Want{{Nodes: some()}}
}

func keyName(key uint8) string { return string(rune('a' + key)) }

// spansOf returns the keys of a command: every key if the data are no command.
func spansOf(data []byte) []leases.Span {
	c, err := decodeCommand(data)
	if err != nil {
		return nil
	}
	return []leases.Span{leases.KeySpan(keyName(c.key))}
}

// leaseClock is the clock of a node's machine: it runs through pauses and restarts.
type leaseClock struct{ n *node }

// Now implements [raft.Clock].
func (c leaseClock) Now() time.Duration { return c.n.s.leaseTime(c.n.id, c.n.s.Now()) }

func (c leaseClock) rate() float64 { return c.n.s.plan.leased.rates[c.n.id] }

// leaseTime is what the clock of a node's machine reads at an instant.
func (s *sim) leaseTime(node uint64, at time.Duration) time.Duration {
	l := s.plan.leased
	t := time.Duration(float64(at)*l.rates[node]) + time.Duration(node)*time.Hour
	return t - t%l.cfg.Resolution
}

// leased puts leases into a node's configuration.
func (p *coreProcess) leased(c *raft.Config) {
	l := p.s.plan.leased
	if l == nil || l.late>>p.n.id&1 == 1 {
		return
	}
	cfg := l.cfg
	cfg.Boot = p.n.incarnation
	if l.spans {
		cfg.Spans = spansOf
	}
	if p.s.rng.Chance(0.3) { // an operator has shortened the lease
		shorter := *c
		lease := p.s.rng.Span(cfg.Lease/2, cfg.Lease)
		shorter.Clock, shorter.Leases = leaseClock{p.n}, &raft.Leases{Tick: cfg.Tick, Lease: lease, Heartbeat: cfg.Heartbeat, Fail: cfg.Fail, DriftPPM: cfg.DriftPPM, Resolution: cfg.Resolution}
		if shorter.Validate() == nil {
			cfg.Lease = lease
		}
	}
	cfg.Quarantine = max(p.n.leaseWas, cfg.Lease)
	p.n.leaseWas = cfg.Quarantine
	cfg.Served = p.served
	p.clock, c.Leases = leaseClock{p.n}, &cfg
}

// A lookup is a read without an index yet: the last write that the read must not
// miss, and the call for the time when the index is there.
type lookup struct {
	fresh uint64
	reply func()
	// at is when the read was asked for, in a term, behind so many changes of the members.
	at       time.Duration
	term     uint64
	switches int
}

func (p *coreProcess) lookup(fresh uint64, reply func()) lookup {
	return lookup{fresh: fresh, reply: reply, at: p.s.Now(), term: p.rn.BasicStatus().GetTerm(), switches: p.switches}
}

// readOf asks for a read of a key.
func (p *coreProcess) readOf(key uint8, reply func()) {
	p.readSeq++
	ctx := p.n.incarnation<<32 | p.readSeq
	text := fmt.Appendf(nil, "%d/%d", p.n.id, ctx)
	l := p.s.plan.leased
	fresh := p.s.leased.seen
	if l != nil && l.spans && p.s.rng.Chance(0.7) {
		fresh = p.s.leased.fresh[key]
		p.asked[ctx] = p.lookup(fresh, reply)
		p.rn.ReadIndexSpans(text, leases.KeySpan(keyName(key)))
	} else {
		p.asked[ctx] = p.lookup(fresh, reply)
		p.rn.ReadIndex(text)
	}
	p.did(nil)
}

// leasedState is the run's knowledge of reads.
type leasedState struct {
	leasedReach
	// seen is the last write that somebody may have seen: the last applied anywhere.
	// fresh is the same of each key.
	seen  uint64
	fresh [storeKeys]uint64
	// grants is what nodes have promised each other: from, to.
	grants [maxNodes + 1][maxNodes + 1]grant
}

// applied notes a command that a node has applied, and may have told of.
func (l *leasedState) applied(index uint64, c command) {
	l.seen = max(l.seen, index)
	l.fresh[c.key] = max(l.fresh[c.key], index)
}

// leasedReach counts the events of runs with leases.
type leasedReach struct {
	Runs, Notes, Spans, Coded, Mixed                    uint64
	LocalReads, LeaderReads, WaitedReads, HeldReads     uint64
	CutReads, Redirected, NoteCommits                   uint64
	Granted, Held, Revoked, Confirmed, Adopted          uint64
	Removed, Restored, Renamed, RetiredLeases, Ambushes uint64
	Lapsed, LearnerReads, FirstByNotes                  uint64
	Retuned, TunedSpans                                 uint64
}

// Add adds the counts of another run.
func (r *leasedReach) Add(o leasedReach) { world.AddCounts(r, o) }

// Missing returns the names of what was never reached.
func (r leasedReach) Missing() []string { return world.Zeros(r) }

// String lists the counts, some to a line.
func (r leasedReach) String() string { return world.Table(r) }

// countLeases adds up the counts of a process's leases, at the process's end.
func (s *sim) countLeases(n *node) {
	p, ok := n.proc.(*coreProcess)
	if !ok || s.plan.leased == nil || p.rn == nil {
		return
	}
	st, r := p.rn.LeaseStatus(), &s.leased.leasedReach
	r.LocalReads += st.Reads.Local
	r.LeaderReads += st.Reads.Leader
	r.WaitedReads += st.Reads.Waited
	r.HeldReads += st.Reads.Held
	r.CutReads += st.Reads.Cut
	r.Redirected += st.Reads.Redirected
	r.NoteCommits += st.Reads.NoteCommits
	r.Granted += st.Counts.Granted
	r.Held += st.Counts.Held
	r.Revoked += st.Counts.Revoked
	r.Confirmed += st.Counts.Confirmed
	r.Lapsed += st.Counts.Lapsed
	r.Adopted += st.Counts.Adopted
	r.Removed += st.Counts.Removed
	r.Restored += st.Counts.Restored
}

func (s *sim) countLeasedPlan() {
	l := s.plan.leased
	if l == nil {
		return
	}
	r := &s.leased.leasedReach
	r.Runs++
	for is, to := range map[*uint64]bool{&r.Notes: l.cfg.Notes, &r.Spans: l.spans, &r.Coded: s.plan.coded != nil, &r.Mixed: l.late != 0} {
		if to {
			*is++
		}
	}
}
