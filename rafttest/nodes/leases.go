// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// leasing is how roster leases are set in a run, and by which policies clients read.
type leasing struct {
	on       bool
	lease    time.Duration
	fail     time.Duration
	driftPPM int
	notes    bool
	tuner    bool
	spans    bool          // leases tell keys apart
	rosters  time.Duration // between two wishes of an operator for other responders
	probes   time.Duration // between two reads by nobody, anywhere, which need only be fresh
	policies bool          // clients read by all policies, and not by ReadIndex alone
}

// drawLeases has leases on in four of ten runs. They are off where changes of members are to
// stand in a log twice, which takes coincidences that the waits of leases make rare.
func drawLeases(d world.Draws, p *plan, opts options) leasing {
	l := leasing{
		on:       d.Chance(0.65) && !p.noPreVote && !p.noCheckQuorum && (!p.repeats.again || !p.repeats.uneven) && opts.Core == nil,
		lease:    world.Pick[time.Duration](d, 60, 100, 100, 300) * time.Millisecond,
		fail:     world.Pick[time.Duration](d, 40, 50, 200) * time.Millisecond,
		driftPPM: world.Pick(d, 100, 1000, 60_000),
		notes:    d.Chance(0.5),
		tuner:    d.Chance(0.2),
		spans:    d.Chance(0.5),
		policies: d.Chance(0.5),
	}
	if rosters, probes := d.Every(0.7, 30*time.Millisecond, 500*time.Millisecond), d.Every(0.7, 2*time.Millisecond, 30*time.Millisecond); l.on {
		l.rosters, l.probes = rosters, probes
	}
	return l
}

// clock is a node's clock, which the process finds when it starts: it runs at a rate of its
// own within the bound, and goes on while the process is paused.
type clock struct {
	n      *node
	origin time.Duration
	rate   float64
	// ticked is when a tick was last looked at, for a planted bug.
	ticked time.Duration
}

func (n *node) newClock() *clock {
	w := n.w
	if !w.plan.leasing.on {
		return &clock{n: n}
	}
	off := float64(w.plan.leasing.driftPPM) / 1e6 * (2*n.rand.Float64() - 1)
	if w.opts.Bug == wildClocks {
		off = 0.6 * float64(int(n.id%2)*2-1)
	}
	return &clock{n: n, origin: time.Duration(n.rand.IntN(1<<40)) + 1, rate: 1 + off}
}

// Now implements raft.Clock.
func (c *clock) Now() time.Duration {
	at := c.n.w.Now()
	if c.n.w.opts.Bug == clockOfTicks {
		at = c.ticked
	}
	return c.origin + time.Duration(c.rate*float64(at))
}

// leased completes a member's configuration, if there are leases.
func (m *member) leased(cfg *replica.Config) {
	w := m.n.w
	l := w.plan.leasing
	if !l.on || m.n.plain() {
		return
	}
	cfg.Clock = m.n.clock
	cfg.Leases = &raft.Leases{Tick: tickTime, Boot: m.n.life, Lease: l.lease, Heartbeat: tickTime, Fail: l.fail,
		DriftPPM: l.driftPPM, Resolution: time.Microsecond, Notes: l.notes}
	if l.tuner {
		cfg.Leases.Tuner = &leases.TunerConfig{Window: 50 * time.Millisecond, Least: 5}
	}
	if l.spans {
		cfg.Leases.Spans = func(data []byte) []leases.Span {
			c, err := decodeCommand(data)
			if err != nil || c.verb == verbOpen {
				return nil
			}
			return []leases.Span{spanOf(c.key)}
		}
	}
	var founders []leases.NodeID
	for _, id := range m.g.founders {
		founders = append(founders, leases.NodeID(id))
	}
	if !l.tuner { // which takes keys without an operator's word
		cfg.Leases.Wanted = []leases.Want{{Nodes: founders}}
	}
}

func spanOf(key uint8) leases.Span { return leases.KeySpan(fmt.Sprintf("%03d", key)) }

// wishRoster has the operator ask the leader of a group for other responders.
func (w *sim) wishRoster(g *group) {
	m := g.leading()
	if m == nil || !m.here() || m.n.paused || m.n.plain() {
		return
	}
	var ids []leases.NodeID
	for id := uint64(1); id <= maxNodes; id++ {
		if g.knows(id) && w.lease.Chance(0.7) {
			ids = append(ids, leases.NodeID(id))
		}
	}
	wanted := []leases.Want{{Nodes: ids}}
	if w.plan.leasing.spans && w.lease.Chance(0.5) {
		middle := fmt.Sprintf("%03d", w.lease.IntN(storeKeys))
		wanted = []leases.Want{{Span: leases.Span{End: middle}, Nodes: ids}, {Span: leases.Span{Start: middle}, Nodes: []leases.NodeID{leases.NodeID(m.n.id)}}}
	}
	if len(ids) == 0 {
		wanted = nil
	}
	var mode []leases.TunerMode
	if w.plan.leasing.tuner && w.lease.Chance(0.6) {
		mode = []leases.TunerMode{world.Pick(w.lease, leases.TunerOff, leases.TunerWatch, leases.TunerOn, leases.TunerConfigured)}
		wanted = wanted[:w.lease.IntN(len(wanted)+1)] // the tuner takes keys without an operator's word
	}
	w.tell(m.n.id, "group %d: responders %v wanted, tuner %v", g.id, wanted, mode)
	m.drive.Post(0, func(r *replica.Replica) {
		if s := r.Status().Leases; s != nil {
			w.reach.countTuned(s)
		}
		switch err := r.SetResponders(wanted, mode...); {
		case err == nil:
			w.reach.Wishes++
			w.reach.TunerSwitches += uint64(len(mode))
		case !errors.Is(err, leases.ErrNotLeader):
			w.fail(noFailure, "%v, group %d: responders: %v", m.n, g.id, err)
		}
	})
}

// readOptions draws how a client reads a key.
func (w *sim) readOptions(key uint8) (o replica.ReadOptions) {
	l := w.plan.leasing
	if l.policies {
		o.Policy = world.Pick[replica.ReadPolicy](w.lease, nil, replica.AtResponder{}, replica.AtResponder{}, replica.LeaderLease{}, replica.QuorumRead{})
	}
	if l.spans && w.lease.Chance(0.7) {
		o.Spans = []leases.Span{spanOf(key)}
	}
	return o
}

// probe reads at any node. Clients wait for their writes where they read, so clients would
// not go on to read at a node that is cut off.
func (w *sim) probe(g *group) {
	n := w.node(1 + uint64(w.lease.IntN(maxNodes)))
	m := n.members[g.id]
	if !n.up || m == nil || !g.knows(n.id) {
		return
	}
	key := uint8(w.lease.IntN(w.plan.keys))
	if n.paused && m.readAtOnce(key, replica.ReadOptions{}, g.fresh.acked[key]) {
		w.reach.PermitReadsAtPause++
	}
	n.bound(func() { m.read(key, w.plan.deadline, func(error) {}) })()
}

// countRead counts a read by the node that vouched for the read.
func (r *reach) countRead(by replica.ServedBy) {
	switch by {
	case replica.ServedByLease:
		r.LeaseReads++
	case replica.ServedByRoster:
		r.RosterReads++
	case replica.ServedByQuorum:
		r.QuorumReads++
	case replica.ServedStale:
		r.StaleReads++
	}
}

// countTuned counts the spans that are wanted by a tuner.
func (r *reach) countTuned(s *raft.LeaseStatus) {
	if s.Roster == nil {
		return
	}
	for _, want := range s.Roster.Wanted {
		if want.Tuned {
			r.TunedSpans++
		}
	}
}

// countLeases counts what a member's leases have seen in its life, and its hand-overs.
func (m *member) countLeases() {
	if m.r == nil {
		return
	}
	st, r := m.r.Status(), &m.n.w.reach
	r.QuorumRestarts += st.Counters.QuorumRestarts
	r.QuorumFallbacks += st.Counters.QuorumFallbacks
	r.QuorumTurns += st.Counters.QuorumTurns
	r.HandOversSlow += st.Counters.HandOversSlow
	r.HandOversPreferred += st.Counters.HandOversPreferred
	s := st.Leases
	if s == nil {
		return
	}
	r.countTuned(s)
	r.Granted += s.Counts.Granted
	r.Revoked += s.Counts.Revoked
	r.Adopted += s.Counts.Adopted
	r.Removed += s.Counts.Removed
	r.Restored += s.Counts.Restored
	r.HeldReads += s.Reads.Held
	r.WaitedReads += s.Reads.Waited
	r.CutReads += s.Reads.Cut
	r.NoteCommits += s.Reads.NoteCommits
	if s.Reads.Refused+s.Counts.Refused > 0 {
		m.n.w.fail(noFailure, "%v, group %d refuses %d messages about leases", m.n, m.g.id, s.Reads.Refused+s.Counts.Refused)
	}
}

func (n *node) countLeases() {
	for _, g := range n.w.groups {
		if m := n.members[g.id]; m != nil {
			m.countLeases()
		}
	}
}

// freshness is the knowledge of a group's acknowledged writes: how many commands are at
// least in a state with all of them.
type freshness struct {
	places map[uint32]uint64 // of operations in effect
	acked  [storeKeys]uint64 // by key
	// steps are the times at which the highest of all rose.
	steps []ackedStep
}

type ackedStep struct {
	at    time.Duration
	count uint64
}

// acknowledged notes that a client has the result of a write.
func (f *freshness) acknowledged(at time.Duration, op *operation) {
	place := f.places[op.id]
	f.acked[op.key] = max(f.acked[op.key], place)
	if n := len(f.steps); n == 0 || place > f.steps[n-1].count {
		f.steps = append(f.steps, ackedStep{at, place})
	}
}

// before returns how many commands are at least in a state with all writes
// acknowledged by a time.
func (f *freshness) before(at time.Duration) uint64 {
	for i := len(f.steps) - 1; i >= 0; i-- {
		if f.steps[i].at <= at {
			return f.steps[i].count
		}
	}
	return 0
}

// readStale reads at a member by a policy that allows an older state, and checks the age
// of the state.
func (m *member) readStale() {
	w, g := m.n.w, m.g
	most := w.lease.Span(tickTime, 3*electionTime)
	want := g.fresh.before(w.Now() - most)
	m.call(w.plan.deadline, 0, func(r *replica.Replica, id replica.Call, by replica.Deadline) {
		r.ReadAt(id, replica.BoundedStaleness{Max: most}, by)
	}, func(d replica.Done) {
		if d.Err != nil {
			return
		}
		w.reach.countRead(d.Read.By)
		if m.state.applied < want {
			w.fail(fresh, "group %d: %v answers a read that may be %v old with %d commands applied, and %d were acknowledged by then", g.id, m.n, most, m.state.applied, want)
		}
	})
}
