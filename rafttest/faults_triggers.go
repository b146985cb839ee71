// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// happens hears of a node's work, from inside its core: the consequences come later.
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
		if s.plan.joints != nil && a.kind == actDoom && a.self && a.most == 0 {
			n.doomed = true // in the write of this moment
			continue
		}
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

// meets tells of a moment of joints, and counts what is under way then.
func (f *faults) meets(n *node, now moment) {
	if f.s.plan.joints != nil {
		f.happens(n, now)
		f.s.meet()
	}
}

// meet counts the pairs that are under way now.
func (s *sim) meet() {
	if s.calm() {
		return
	}
	var on [parties]bool
	for _, n := range s.nodes {
		if p := n.proc; p != nil && p.rn != nil {
			s.partiesAt(n, p, &on)
		}
	}
	on[partyLeases] = s.granted()
	for a := range on {
		for b := range a + 1 {
			if on[a] && on[b] {
				s.joints.Met[a][b]++
			}
		}
	}
}

// lookEvery is the time between looks at which parties are under way.
const lookEvery = 2 * time.Millisecond

// beginJoints plans the looks.
func (f *faults) beginJoints() {
	s, j := f.s, f.s.plan.joints
	if j == nil {
		return
	}
	r := &s.joints
	r.Runs++
	for is, to := range map[*uint64]bool{&r.OnlyCoding: j.codes && !j.leases, &r.OnlyLeases: j.leases && !j.codes, &r.UpstreamRuns: j.upstream != 0} {
		if to {
			*is++
		}
	}
	f.every(lookEvery, s.meet)
}

// partiesAt marks what is under way at a node.
func (s *sim) partiesAt(n *node, p *coreProcess, on *[parties]bool) {
	mark := func(what party, is bool) { on[what] = on[what] || is }
	mark(partyRestart, n.incarnation > 1 && s.Now()-n.startedAt < electionTime)
	mark(partyLate, p.lateSince > 0 && s.Now()-p.lateSince > electionTime/4)
	mark(partyUpstream, s.plan.joints.upstream>>n.id&1 == 1)
	for _, e := range n.disk.live.entries {
		mark(partyChange, e.GetIndex() > p.inForce && e.GetType() != pb.EntryNormal)
	}
	if !p.leads() {
		return
	}
	mark(partyCoding, s.codedUnderWay(n))
	mark(partyTransfer, p.rn.BasicStatus().LeadTransferee != 0)
	p.rn.WithProgress(func(_ uint64, _ raft.ProgressType, pr tracker.Progress) { // a whole Status would copy all that is coded, too
		mark(partySnapshot, pr.State == tracker.StateSnapshot)
	})
}

// torn has the leader fail, too, when a node loses its commit index with power, and the
// node's host apply late: the node may be the only one that can win, and knows two changes
// of which neither is in force.
func (f *faults) torn(n *node) {
	s := f.s
	if s.plan.joints.theme != themeTorn || s.calm() {
		return
	}
	n.lateUntil = s.Now() + s.rng.Span(electionTime, mostLag)
	s.After(s.rng.Within(0, s.plan.links.Most), func() {
		if lead := s.leading(); !s.calm() && lead != n {
			f.crash(lead)
		}
	})
}

// other returns another node that runs; nil if none does.
func (f *faults) other(n *node) *node {
	up := slices.DeleteFunc(f.s.running(), func(m *node) bool { return m == n })
	if len(up) == 0 {
		return nil
	}
	return up[f.s.rng.IntN(len(up))]
}

// swap has a node fail, and the nodes that are down come back: the leader has just
// decided what to send to each, by the nodes present.
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

// block keeps the others' units of a committed entry from a follower that has the
// entry. The follower hears of a change of the members committed behind the entry, and
// gets another entry that nobody else gets; the others cut their logs, and the leader
// fails for good. The follower then has the longest log, and can apply neither the
// entry nor the change.
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
		f.changeMembers()
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
			s.net.Cut(leader.id, other.id) // until all is mended
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

// follower draws a node with an entry, beside the leader; nil if there is none.
func (f *faults) follower(leader *node, e entryName) *node {
	has := slices.DeleteFunc(f.s.running(), func(n *node) bool { return n == leader || !n.disk.durable.holds(e.index, e.term) })
	if len(has) == 0 {
		return nil
	}
	return has[f.s.falls.IntN(len(has))]
}

// soon lets something happen while messages are under way, or writes.
func (f *faults) soon(do func()) {
	f.s.After(f.s.rng.Span(20*time.Microsecond, 6*(f.s.plan.links.Most+f.s.plan.syncMax)), func() {
		if !f.s.calm() {
			do()
		}
	})
}

// compact lets a node's host make a checkpoint, and cut the log when that is
// durable.
func (f *faults) compact() { f.compactNode(f.anyNode()) }

func (f *faults) compactNode(n *node) {
	if n == nil || !n.up() || n.paused {
		return
	}
	p := n.proc
	p.maybeCheckpoint(true)
	n.sync(func() { p.maybeCheckpoint(true) })
}
