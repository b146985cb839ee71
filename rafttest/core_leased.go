// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// leaseClock is the clock of a node's machine: it runs through pauses and restarts.
type leaseClock struct{ n *node }

// Now implements [raft.Clock].
func (c leaseClock) Now() time.Duration { return c.n.s.leaseTime(c.n.id, c.n.s.Now()) }

func (c leaseClock) rate() float64 { return c.n.s.plan.leased.rates[c.n.id] }

// leaseTime is what the clock of a node's machine reads at an instant.
func (s *sim) leaseTime(node uint64, at time.Duration) time.Duration {
	l := s.plan.leased
	t := time.Duration(s.leased.clocks[node].read(at, l.rates[node])) + time.Duration(node)*time.Hour
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
	clocks [maxNodes + 1]machineClock
}

// applied notes a command that a node has applied, and may have told of.
func (l *leasedState) applied(index uint64, c command) {
	l.seen = max(l.seen, index)
	l.fresh[c.key] = max(l.fresh[c.key], index)
}

// countLeases adds up the counts of a process's leases, at the process's end.
func (s *sim) countLeases(n *node) {
	p := n.proc
	if p == nil || s.plan.leased == nil || p.rn == nil {
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
