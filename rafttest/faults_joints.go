// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
)

// This file is the acts and the moments of joints.

// lag has a node apply nothing for a while.
func (f *faults) lag() {
	if n := f.anyNode(); n != nil && f.s.plan.joints != nil {
		n.lateUntil = f.s.Now() + f.s.rng.Span(10*time.Millisecond, mostLag)
		f.s.tell(n.id, "applies nothing until %v", n.lateUntil)
	}
}

// wish has an operator choose responders, or switch leases off.
func (f *faults) wish() {
	if f.s.plan.leased != nil {
		f.rename()
	}
}

// deafNode has a follower hear nothing for a while, and be heard.
func (f *faults) deafNode() {
	s := f.s
	lead := s.leading()
	if lead == nil {
		return
	}
	n := f.aim
	if n == nil || n == lead {
		n = f.other(lead)
	}
	if n == nil {
		return
	}
	var mends []func()
	for _, from := range s.nodes {
		if from != n {
			mends = append(mends, s.net.Cut(from.id, n.id))
		}
	}
	s.tell(n.id, "is deaf")
	f.mendLater("deafness", mends)
}

// stream has commands come at a leader every few milliseconds for a while.
func (f *faults) stream() {
	s := f.s
	every := s.rng.Span(2*time.Millisecond, 10*time.Millisecond)
	for i := range s.rng.Between(10, 40) {
		s.After(time.Duration(i)*every, func() {
			if n := s.leading(); n != nil && !s.calm() {
				f.burstOf(1, n)
			}
		})
	}
}

// late has an entry wait for a follower that has just fallen silent, and a voter to come
// answer about when the entry is late. What is committed before pays for the hedge.
func (f *faults) late() {
	s := f.s
	f.burstOf(30, s.leading())
	s.After(s.rng.Within(10*time.Millisecond, 50*time.Millisecond), func() {
		n := s.leading()
		if s.calm() || n == nil || n.paused {
			return
		}
		f.deafNode()
		f.burstOf(1, n)
		s.After(s.rng.Within(0, hedges*s.plan.joints.predicted), func() {
			if !s.calm() {
				f.stranger()
			}
		})
	})
}

// keepOut has nobody hear a node for longer than a change of the members waits for it.
func (f *faults) keepOut(id uint64) {
	s := f.s
	mends := s.net.Isolate(id, false, true)
	s.After(s.rng.Within(electionTime, 3*electionTime), func() {
		for _, mend := range mends {
			mend()
		}
	})
}

// stranger has an operator make a fresh node a voter, which nobody can reach for a while
// or which answers soon, while commands come.
func (f *faults) stranger() {
	s, n := f.s, f.s.leading()
	if n == nil || n.paused || s.hurry() != hurryNot {
		return
	}
	conf, may := s.membersAt(n)
	if !may || isJoint(conf) {
		return
	}
	for _, id := range s.allIDs() {
		if members.Has(conf, id) {
			continue
		}
		s.join(id)
		if s.plan.joints.theme == themeCarrier && s.plan.joints.predicted == 0 {
			f.keepOut(id)
			f.stream()
		}
		cc := &pb.ConfChange{Type: pb.ConfChangeAddNode.Enum(), NodeId: &id}
		s.tell(n.id, "propose: %s", changeString(cc))
		n.proc.change(cc)
		return
	}
}

// maroon keeps the others' units of a committed entry from a follower, and has all other
// voters replaced. When the follower has both changes in its log, and the others have
// applied and cut the entry, the follower alone gets one more entry and campaigns: it
// leads, can apply nothing, and only voters to come can take over.
func (f *faults) maroon(leader *node, e entryName) {
	s := f.s
	n := f.follower(leader, e)
	if n == nil || s.marooned || s.hurry() != hurryNot {
		return
	}
	conf, may := s.membersAt(leader)
	if !may || isJoint(conf) {
		return
	}
	s.marooned = true
	s.joints.Marooned++
	f.starveNode(n, 2*s.plan.duration)
	cc := &pb.ConfChangeV2{}
	for _, id := range s.allIDs() {
		switch {
		case id == n.id:
		case members.Has(conf, id):
			cc.Changes = append(cc.Changes, &pb.ConfChangeSingle{Type: pb.ConfChangeRemoveNode.Enum(), NodeId: &id})
		default:
			s.join(id)
			cc.Changes = append(cc.Changes, &pb.ConfChangeSingle{Type: pb.ConfChangeAddNode.Enum(), NodeId: &id})
		}
	}
	f.soon(func() {
		if leader.up() && !leader.paused {
			s.tell(leader.id, "propose: %s", changeString(cc))
			leader.proc.change(cc)
		}
		f.whenMarooned(n, e, s.Now()+8*electionTime)
	})
}

// whenMarooned ends maroon, once the logs are as they should be.
func (f *faults) whenMarooned(n *node, e entryName, until time.Duration) {
	s := f.s
	if s.calm() || s.Now() > until {
		return
	}
	changes := 0
	for _, have := range n.disk.durable.entries {
		if have.GetType() != pb.EntryNormal {
			changes++
		}
	}
	ready := changes >= 2 && n.up()
	for _, other := range s.running() {
		if other == n {
			continue
		}
		f.compactNode(other)
		ready = ready && released(&other.disk.durable) > e.index && other.disk.durable.baseIndex >= e.index
	}
	lead := s.leading()
	if !ready || lead == nil {
		s.After(2*time.Millisecond, func() { f.whenMarooned(n, e, until) })
		return
	}
	for _, other := range s.nodes {
		if other != n {
			s.net.Cut(lead.id, other.id)
		}
	}
	f.burstOf(1, lead)
	f.soon(func() {
		if lead != n && lead.up() {
			lead.crash(false)
		}
		s.net.Mend()
		if n.up() && !n.paused {
			n.proc.campaign()
		}
	})
}

// split parts the nodes so that a leader keeps a majority of its members in force, and
// the others have one of the newest configuration in its log, if that can be. Both sides
// are asked to write and to read.
func (f *faults) split() {
	s, n := f.s, f.aim
	if n == nil || !n.up() {
		n = s.leading()
	}
	if n == nil {
		return
	}
	sets := s.countingSets(n, n.proc.conf)
	side := f.sideOf(n, sets[0], sets[len(sets)-1])
	mends := s.net.Split(uint64(side >> 1))
	s.tell(n.id, "split off with %07b", side>>1)
	f.mendLater("split", mends)
	for range s.rng.Between(1, 6) {
		s.After(s.rng.Within(0, 4*electionTime), func() {
			if s.calm() {
				return
			}
			for _, m := range s.running() {
				if s.rng.Chance(0.5) && s.plan.leased != nil {
					f.probeAt(m)
				} else {
					f.burstOf(1, m)
				}
			}
		})
	}
}

// sideOf draws nodes, by bit, with a majority of some voters and none of others.
func (f *faults) sideOf(n *node, with, without []uint64) (side uint) {
	most := func(voters []uint64) bool {
		in := 0
		for _, id := range voters {
			in += int(side >> id & 1)
		}
		return in > len(voters)/2
	}
	for range 30 {
		side = uint(f.s.rng.IntN(1<<maxNodes))<<1 | 1<<n.id
		if most(with) && !most(without) {
			break
		}
	}
	return side
}
