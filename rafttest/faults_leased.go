// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// beginLeased plans what operators and clients do where there are leases.
func (f *faults) beginLeased() {
	l := f.s.plan.leased
	if l == nil {
		return
	}
	f.every(l.rename, f.rename)
	f.every(l.probe, f.probe)
	f.every(l.retune, f.retune)
	f.misleadLater()
}

// rename has an operator choose responders at the leader, or switch leases off for a
// while.
func (f *faults) rename() {
	s := f.s
	n := s.leading()
	if n == nil || n.core() == nil {
		return
	}
	p := n.core()
	if s.rng.Chance(s.plan.leased.retire) {
		if p.rn.RetireLeases(true) == nil {
			s.leased.RetiredLeases++
			s.tell(n.id, "leases are retired")
			n.later(f.lasting(), func() { _ = p.rn.RetireLeases(false); p.did(nil) })
		}
	} else {
		wanted := someWanted(s.rng, s.plan.voters+s.plan.spares)
		if p.rn.SetResponders(wanted) == nil {
			s.leased.Renamed++
			s.tell(n.id, "wanted: %v", wanted)
		}
	}
	p.did(nil)
}

// retune has an operator switch the tuner at the leader, and name responders of some keys
// or of none by the same call.
func (f *faults) retune() {
	s := f.s
	n := s.leading()
	if n == nil || n.core() == nil {
		return
	}
	p, d := n.core(), s.plan.leased.tuning
	f.checkTuned(n)
	mode, wanted := leases.TunerMode(d.IntN(4)), someWanted(d, s.plan.voters+s.plan.spares)
	wanted = wanted[:d.IntN(len(wanted))] // the tuner takes keys without an operator's word
	if p.rn.SetResponders(wanted, mode) == nil {
		s.leased.Retuned++
		s.tell(n.id, "tuner %v, wanted: %v", mode, wanted)
	}
	p.did(nil)
}

// checkTuned checks that a leader wants nothing by a tuner that does not choose.
func (f *faults) checkTuned(n *node) {
	st := n.core().rn.LeaseStatus()
	if !st.On || st.Roster == nil || uint64(st.Leader) != n.id {
		return
	}
	for _, w := range st.Roster.Wanted {
		switch {
		case !w.Tuned:
		case st.Roster.Tuner == leases.TunerOff || st.Roster.Tuner == leases.TunerWatch:
			f.s.fail("Tuned", "n%d wants %v by its tuner, which is %v", n.id, w, st.Roster.Tuner)
		default:
			f.s.leased.TunedSpans++
		}
	}
}

// probe has somebody read somewhere, who looks at the index only.
func (f *faults) probe() {
	s := f.s
	f.probeAt(s.nodes[s.rng.IntN(s.plan.voters+s.plan.spares)])
}

// probeAt has somebody read at a node.
func (f *faults) probeAt(n *node) {
	s := f.s
	if p := n.core(); p != nil {
		if st := p.rn.LeaseStatus(); st.On && st.Stable && !members.Votes(p.conf, n.id) {
			s.leased.LearnerReads++
		}
		p.readOf(uint8(s.rng.IntN(s.plan.keys)), func() {})
	}
}

// leaseSent looks at a message of leases that a node sends. Where a lease is revoked or
// given back, a roster is announced or a first grant made, something may go wrong.
func (f *faults) leaseSent(n *node, m *pb.Message) {
	s := f.s
	l := s.plan.leased
	if l == nil || m.GetType() != raft.MsgLeases || m.GetContext()[0] != 'l' {
		return
	}
	q, err := leases.ParseMessage(m.GetContext()[1:])
	if err == nil {
		s.noteGrant(m, &q)
	}
	matters := err == nil && !s.calm() && (q.Revoke != leases.Nonce{} || q.Confirm != leases.Nonce{} || len(q.Lists) > 0 || q.Answer.For > 0 && s.rng.Chance(0.1))
	if !matters || !s.rng.Chance(l.ambush) {
		return
	}
	s.leased.Ambushes++
	victim := n
	if to := m.GetTo(); s.rng.Chance(0.5) && to <= maxNodes {
		victim = s.node(to)
	}
	s.After(s.rng.Within(0, 4*s.plan.links.Most), func() {
		if s.calm() {
			return
		}
		f.aim = victim
		defer func() { f.aim = nil }()
		switch s.rng.IntN(4) {
		case 0:
			f.crash(victim)
		case 1:
			f.pauseNode(victim)
		case 2:
			f.isolate()
		case 3:
			f.slowDisk()
		}
	})
}
