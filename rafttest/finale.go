// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// finaleTime is how long a cluster may take, once the faults are over, until it
// is live again.
const finaleTime = 60 * electionTime

// finale is the second phase: links are mended, nodes run again (all of them,
// or enough of them), and the cluster must elect a leader, take a proposal at
// every running member, and bring these members to one state.
type finale struct {
	s *sim
	// probes are the commands proposed at each node, by id; answered counts
	// the answers.
	probes [maxNodes + 1]probe
	// asleep is the nodes that stay down.
	asleep [maxNodes + 1]bool
	// deadline is the time by which the cluster must be live.
	deadline time.Duration
	// nudged is when a leader was last asked to leave a joint configuration.
	nudged time.Duration
	// settles is until when a cluster that is live again may send its last messages, if
	// the members stay as of index membersAt. See rest.
	settles   time.Duration
	membersAt uint64
	leader    *node // when the group began to settle
}

type probe struct {
	asked    time.Duration // when the probe was proposed last
	proposed bool
	answered bool
}

// beginFinale ends the faults, and begins the end.
func (s *sim) beginFinale() {
	f := &finale{s: s}
	s.tell(0, "calm")
	s.net.Calm()
	s.plan.calm()
	f.killMany()
	f.asleep = f.mayStayDown()
	f.deadline = s.plan.duration + finaleTime + f.tailTime()
	for _, n := range s.nodes {
		n.slowUntil = 0
		n.spindle.Mend()
		if n.disk == nil || f.asleep[n.id] {
			continue
		}
		n.resume()
		n.restart()
	}
	f.look()
}

// calm makes links and disks as good as they get. Links keep order, too: with a
// long tail to catch up on, in messages of an entry each, each answer that
// overtakes another makes a leader send all of it again.
func (p *plan) calm() {
	p.links.Most = min(p.links.Most, time.Millisecond)
	p.links.Least = min(p.links.Least, p.links.Most)
	p.syncMax = min(p.syncMax, time.Millisecond)
	p.syncMin = min(p.syncMin, p.syncMax)
	p.applyMax = min(p.applyMax, 100*time.Microsecond)
	p.links.Rate = 0
}

// tailTime is the time to send the longest log twice, to members and then to nodes
// made members by a change in the log, with an entry or two in a message and only
// so many messages on their way.
func (f *finale) tailTime() time.Duration {
	p, longest := &f.s.plan, 0
	for _, n := range f.s.nodes {
		if n.disk != nil {
			longest = max(longest, len(n.disk.live.entries))
		}
	}
	if p.maxSizePerMsg > 1024 {
		return 0
	}
	return 2 * time.Duration(longest/p.maxInflightMsgs) * (2*p.links.Most + p.syncMax)
}

// look sees how far the cluster has come, helps as an operator would, and
// comes back later.
func (f *finale) look() {
	s := f.s
	f.startMembers() // before the look: a group with members yet to start is not live
	wrong := f.unfinished()
	switch {
	case wrong == "" && !s.end.live:
		f.finish()
	case wrong == "" && (f.membersAt != s.check.newestConf().index || s.plan.weights != nil && f.leader != s.leading()):
		f.settle() // a change was under way all the time, or leadership has moved to where it is to be
	case wrong == "" && s.Now() >= f.settles:
		f.rest()
		return
	case wrong != "" && s.Now() > f.deadline:
		if s.minorityStayed && wrong == noLeader && f.stalemate() {
			s.reach.Stalemates++
			s.tell(0, "stalemate")
			s.end.done = true
			return
		}
		s.fail(liveness, "%v after the last fault: %s", s.Now()-s.plan.duration, wrong)
		return
	}
	f.leaveJoint()
	f.propose()
	f.shutRemoved()
	s.After(f.patience()/12, f.look)
}

// patience is how long a proposal may take before it is made again.
func (f *finale) patience() time.Duration {
	if c := f.s.plan.coded; c != nil && c.brief != nil {
		return electionTime / 2
	}
	return 3 * electionTime
}

const noLeader = "there is no leader"

// finish checks what must be true in the end.
func (f *finale) finish() {
	s := f.s
	s.end.live, s.end.took = true, s.Now()-s.plan.duration
	s.tell(0, "live again")
	for _, n := range f.members() {
		p := n.proc
		s.check.equal(n, p.applied, p.store.digest())
		for _, op := range s.history.ops {
			if op.finished && op.verb != verbGet && !p.store.has(op.command.id) {
				s.fail(nothingLost, "node %d does not have command %v, which was acknowledged", n.id, op.command.id)
				return
			}
		}
	}
	if s.end.done = s.opts.Quick; !s.end.done {
		f.settle()
	}
}

// members returns the running members.
func (f *finale) members() []*node {
	conf := f.s.check.newestConf().conf
	var nodes []*node
	for _, n := range f.s.nodes {
		if n.up() && members.Has(conf, n.id) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// unfinished names the cluster's unfinished work; "" if all is done.
func (f *finale) unfinished() string {
	s := f.s
	conf := s.check.newestConf()
	leader := s.leading()
	switch {
	case leader == nil:
		return noLeader
	case isJoint(conf.conf):
		return "the configuration is joint: " + confString(conf.conf)
	}
	for _, n := range f.members() {
		p := n.proc
		switch {
		case !f.probes[n.id].answered:
			return fmt.Sprintf("node %d has no answer to what was proposed there", n.id)
		case p.applied != leader.proc.applied:
			return fmt.Sprintf("node %d has applied %d, the leader %d", n.id, p.applied, leader.proc.applied)
		case !sameConf(p.conf, conf.conf):
			return fmt.Sprintf("node %d takes %s for the members; they are %s", n.id, confString(p.conf), confString(conf.conf))
		}
	}
	return ""
}

// propose proposes a command at each member, again and again until it is
// applied there. Where nodes do not forward, the leader gets it.
func (f *finale) propose() {
	s, leader := f.s, f.s.leading()
	for _, n := range f.members() {
		pr := &f.probes[n.id]
		at := n
		if s.plan.noForwarding {
			at = leader
		}
		if pr.answered || at == nil || pr.proposed && s.Now()-pr.asked < f.patience() {
			continue
		}
		pr.proposed, pr.asked = true, s.Now()
		s.history.values++
		c := command{id: commandID{client: 1<<30 + uint32(n.id), seq: 1}, verb: verbPut, value: s.history.values, key: probeKey}
		at.proc.propose(c, func(result) { pr.answered = true })
	}
}

// leaveJoint asks the leader to leave a joint configuration that does not end
// by itself.
func (f *finale) leaveJoint() {
	s, leader := f.s, f.s.leading()
	if leader == nil || s.Now()-f.nudged < 3*electionTime || !isJoint(leader.proc.conf) || leader.proc.conf.GetAutoLeave() {
		return
	}
	f.nudged = s.Now()
	s.tell(leader.id, "propose: leave joint")
	leader.proc.change(&pb.ConfChangeV2{})
}

// startMembers starts nodes made members again by a change that was still under
// way, and the nodes that stayed down if their absence leaves no majority now.
func (f *finale) startMembers() {
	newest := f.s.check.newestConf()
	enough := f.majoritiesWithout(f.asleep, newest.index)
	if f.s.plan.joints != nil && f.changePending() {
		enough = false // members of configurations to come may count
	}
	for _, n := range f.s.nodes {
		if n.retired && members.Has(newest.conf, n.id) || f.asleep[n.id] && !enough {
			f.asleep[n.id] = false
			n.restart()
		}
	}
}

// shutRemoved shuts nodes down that are no members, as soon as all members
// know that they are not: until then their votes may be needed. A leader that
// is no member and was not told to step down leads until then, and takes no
// proposals.
func (f *finale) shutRemoved() {
	s := f.s
	newest := s.check.newestConf()
	for _, n := range f.members() {
		if n.proc.applied < newest.index {
			return
		}
	}
	for _, n := range s.running() {
		if !members.Has(newest.conf, n.id) {
			s.tell(n.id, "shut down: not a member")
			n.crash(true)
			n.retired = true
		}
	}
}

// mayStayDown draws nodes that are down now and stay down: a minority in every
// configuration still in use at some node.
func (f *finale) mayStayDown() (asleep [maxNodes + 1]bool) {
	s := f.s
	chance := 0.4
	if c := s.plan.coded; c != nil {
		chance = c.dead
	}
	if !s.rng.Chance(chance) || f.changePending() {
		return asleep
	}
	oldest := s.check.newestConf().index
	for _, n := range s.nodes {
		if n.disk != nil {
			oldest = min(oldest, n.disk.live.checkpoint.GetMetadata().GetIndex())
		}
	}
	stay := 0
	for _, n := range s.nodes {
		if n.disk == nil || n.up() {
			continue
		}
		asleep[n.id] = true
		if f.majoritiesWithout(asleep, oldest) {
			stay++
		} else {
			asleep[n.id] = false
		}
	}
	if v := len(s.check.newestConf().conf.GetVoters()); s.plan.coded != nil && v > 2 && stay >= (v-1)/2 {
		s.coded.MostDead++
	}
	return asleep
}

// changePending reports whether some log has a change that nobody has applied.
func (f *finale) changePending() bool {
	newest := f.s.check.newestConf().index
	for _, n := range f.s.nodes {
		if n.disk == nil {
			continue
		}
		for _, e := range n.disk.live.entries {
			if e.GetIndex() > newest && e.GetType() != pb.EntryNormal {
				return true
			}
		}
	}
	return isJoint(f.s.check.newestConf().conf)
}

// majoritiesWithout reports whether the nodes that are not asleep are a
// majority of each set of voters that was in force at index oldest or after.
func (f *finale) majoritiesWithout(asleep [maxNodes + 1]bool, oldest uint64) bool {
	awake := func(voters []uint64) bool {
		_, most := holdings.Majority(voters, func(id uint64) bool { return !asleep[id] })
		return most
	}
	confs := f.s.check.confs
	for i, at := range confs {
		if i+1 < len(confs) && confs[i+1].index <= oldest {
			continue // replaced before
		}
		if !awake(at.conf.GetVoters()) || !awake(at.conf.GetVotersOutgoing()) {
			return false
		}
	}
	return awake(f.s.foundingConf().GetVoters()) || oldest > 0
}

// stalemate reports whether no node can win an election, however long it goes
// on: every node that may campaign lacks entries of too many others.
//
// A stalemate can come if so many voters are removed or demoted at a time that
// the rest is no majority of the old voters. For example, of two voters the
// leader is demoted, and applies the change before the other knows of the
// commit. The old leader may not campaign any more; the other needs the old
// leader's vote, and is refused for lack of the last entries. Nodes go by their
// applied configuration, so the stalemate is in the protocol, and operators must
// avoid such changes. A stalemate is excused only if such a change did come into
// force.
func (f *finale) stalemate() bool {
	for _, n := range f.s.running() {
		conf := n.proc.conf
		term, index := end(&n.disk.live)
		wins := members.Votes(conf, n.id)
		for _, voters := range holdings.Sets(conf) {
			_, most := holdings.Majority(voters, func(id uint64) bool {
				v := f.s.node(id)
				if !v.up() {
					return false
				}
				t, i := end(&v.disk.live)
				return term > t || term == t && index >= i
			})
			wins = wins && most
		}
		if wins {
			return false
		}
	}
	return true
}

// killMany lets nodes lose power, most of the time, as the calm begins: so that
// as many as may be dead are.
func (f *finale) killMany() {
	s := f.s
	if c := s.plan.coded; c == nil || !s.rng.Chance(c.dead) {
		return
	}
	share := s.rng.Float64()
	for _, n := range s.nodes {
		if n.up() && s.rng.Chance(share) {
			n.crash(false)
		}
	}
}
