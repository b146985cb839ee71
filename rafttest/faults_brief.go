// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

// This file is the events of brief runs.

// beginBrief plans the first act, if there are acts.
func (f *faults) beginBrief(seed uint64) {
	if b := f.s.plan.coded.brief; b != nil {
		f.planAct(seed, 0)
	}
}

// planAct plans an act, and the acts behind; behind the last act, the calm.
func (f *faults) planAct(seed uint64, i int) {
	s, b := f.s, f.s.plan.coded.brief
	if i == len(b.acts) {
		s.After(b.rest, func() {
			s.plan.duration = s.Now()
			s.beginFinale()
		})
		return
	}
	a := b.acts[i]
	s.After(a.wait, func() {
		f.whenLed(a.led, s.Now()+3*electionTime, func() {
			if !a.skip {
				// A stream for each, so that to leave one out leaves the others alone.
				rest := s.rng
				s.rng = world.NewDraws(seed, uint64(1000+i))
				s.tell(0, "act %d: %v", i, a.kind)
				f.act(a.kind)
				s.rng = rest
			}
			f.planAct(seed, i+1)
		})
	})
}

// whenLed runs an act once somebody leads, if a leader is needed, or after too
// long a wait.
func (f *faults) whenLed(must bool, until time.Duration, do func()) {
	if n := f.s.leading(); !must || n != nil && !n.paused || f.s.Now() > until {
		do()
		return
	}
	f.s.After(time.Millisecond, func() { f.whenLed(must, until, do) })
}

// act lets something happen.
func (f *faults) act(kind actKind) {
	s := f.s
	switch kind {
	case actPropose:
		f.burstOf(s.rng.Between(1, 3), f.anyNode())
	case actUpset:
		f.upset()
	case actRepair:
		f.repair()
	case actCrash:
		f.crash(f.anyNode())
	case actCrashMany:
		for range 1 + s.rng.IntN(s.plan.voters) {
			f.crash(f.anyNode())
		}
	case actDoom:
		f.doom()
	case actBlackout:
		f.blackout()
	case actRestart:
		for _, n := range s.nodes {
			if !n.retired && s.rng.Chance(0.5) {
				n.restart()
			}
		}
	case actPartition:
		f.partition()
	case actOneWay:
		f.oneWay()
	case actIsolate:
		f.isolate()
	case actMend:
		s.net.Mend()
	case actPause:
		f.pause()
	case actSlowDisk:
		f.slowDisk()
	case actTransfer:
		f.transfer()
	case actCampaign:
		f.campaign()
	case actForget:
		f.forget()
	case actChange:
		f.changeMembers()
	case actReplace:
		s.replaceMembers()
	case actCompact:
		f.compact()
	case actDensify:
		f.densify()
	case actUpgrade:
		f.upgrade()
	case actHurry:
		f.hurryOn()
	case actSwap:
		f.swap()
	case actStarve:
		f.starveNode(f.anyNode(), s.Now()+f.lasting())
	case actWish:
		f.wish()
	case actLag:
		f.lag()
	case actSplit:
		f.split()
	case actDeafen:
		f.deafNode()
	case actStream:
		f.stream()
	case actStranger:
		f.stranger()
	case actLate:
		f.late()
	case actJoin:
		f.stranger()
	}
}

// upset lets a leader propose an entry, and fail before all have the entry, or
// before any follower hears of the commit: the leader loses power, or its links, or
// stops, or another node campaigns; and soon somebody does.
func (f *faults) upset() {
	s, p, n := f.s, f.s.plan.coded.falls, f.s.leading()
	if n == nil || n.paused {
		return
	}
	hush := func() {
		var mends []func()
		for _, other := range s.nodes {
			if other != n && s.rng.Chance(p.hush) {
				mends = append(mends, s.net.Cut(n.id, other.id))
			}
		}
		f.mendLater("silence", mends)
	}
	before := s.rng.Chance(0.4)
	if before {
		hush()
	}
	if s.rng.Chance(0.3) {
		f.doom()
	}
	f.burstOf(s.rng.Between(1, 4), n)
	f.soon(func() {
		if !before {
			hush()
		}
		f.soon(func() { f.topple(n) })
	})
}

// topple lets a leader fail, perhaps with others, and another campaign.
func (f *faults) topple(n *node) {
	s, p := f.s, f.s.plan.coded.falls
	switch s.rng.IntN(6) {
	case 0:
		f.isolate()
	case 1:
		f.pauseNode(n)
	case 2:
	default:
		s.coded.Falls++
		f.crash(n)
	}
	for _, other := range s.nodes {
		if other != n && s.rng.Chance(p.company) {
			f.crash(other)
		}
	}
	f.soon(f.campaign)
	if s.rng.Chance(0.3) {
		f.soon(f.upset) // the leader of then, if any
	}
}

// repair lets everything work again.
func (f *faults) repair() {
	s := f.s
	s.net.Mend()
	for _, n := range s.nodes {
		n.slowUntil = 0
		n.resume()
		if !n.retired {
			n.restart()
		}
	}
}

// doom has nodes lose power in their next write.
func (f *faults) doom() {
	for range f.s.rng.Between(1, 3) {
		if n := f.anyNode(); n != nil {
			n.doomed = true
		}
	}
}

// elected dooms a new leader, perhaps: it has asked others for payloads, or cut its
// log, or has carriers to write. Or the leader fails before its term is on disk.
func (f *faults) elected(n *node, term uint64) {
	f.happens(n, momentElected)
	if c := f.s.plan.coded; c != nil && c.brief != nil && !f.s.calm() && f.s.falls.Chance(c.brief.topple) {
		n.doomed = true
	}
	if n.disk.durable.state.term < term {
		f.depose(n)
	}
}

// committed has a leader, perhaps, fail right after committing an entry, before
// anybody hears of the commit: the next leader must restore the entry, and must not
// cut.
func (f *faults) committed(n *node, e entryName) {
	s, c := f.s, f.s.plan.coded
	if c == nil || c.brief == nil || s.calm() || !s.check.truth.Coded(e.id()) {
		return
	}
	if j := s.plan.joints; j != nil && j.theme == themeStuck {
		f.maroon(n, e)
		return
	}
	if c.brief.deaf > 0 && s.falls.Chance(c.brief.deaf) {
		f.deafen(n, e)
		return
	}
	if b := c.brief.breaks; b != nil && b.draws.Chance(b.strand) {
		f.strand(n, e)
		return
	}
	if s.falls.Chance(c.brief.blocked) {
		f.block(n, e)
		return
	}
	if !s.falls.Chance(c.brief.unheard) {
		return
	}
	var mends []func()
	for _, other := range s.nodes {
		if other != n && s.falls.Chance(0.9) {
			mends = append(mends, s.net.Cut(n.id, other.id))
		}
	}
	s.tell(n.id, "commits %d unheard", e.index)
	f.mendLater("silence", mends)
	f.soon(func() { f.topple(n) })
}

// deafen hides the commit of an entry from a follower that has its own units of the
// entry. When the others have applied the entry, and cut the entry from their logs, the
// leader fails and the deaf follower campaigns: nobody has units for the follower, and
// all know that the entry must stay.
func (f *faults) deafen(leader *node, e entryName) {
	s := f.s
	deaf := f.follower(leader, e)
	if deaf == nil {
		return
	}
	s.tell(deaf.id, "does not hear that %d is committed", e.index)
	var mends []func()
	for _, n := range s.nodes {
		if n != deaf {
			mends = append(mends, s.net.Cut(n.id, deaf.id))
		}
	}
	s.After(s.falls.Span(2*time.Millisecond, 60*time.Millisecond), func() {
		for _, n := range s.running() {
			if n != deaf && !s.calm() {
				f.compactNode(n)
			}
		}
		f.soon(func() {
			for _, mend := range mends {
				mend()
			}
			f.crash(leader)
			if deaf.up() && !deaf.paused {
				deaf.proc.campaign()
			}
		})
	})
}

// strand keeps the others' units of a committed entry from a member that has the
// entry. The others apply the entry, and cut the entry from their logs; and then so
// many fail that a commit needs all the members left.
func (f *faults) strand(leader *node, e entryName) {
	s := f.s
	n := f.follower(leader, e)
	if n == nil {
		return
	}
	s.coded.Stranded++
	f.starveNode(n, 2*s.plan.duration)
	s.After(s.falls.Span(2*time.Millisecond, 60*time.Millisecond), func() {
		if s.calm() {
			return
		}
		left := len(s.check.newestConf().conf.GetVoters())/2 - 1
		for _, m := range s.running() {
			switch f.compactNode(m); {
			case m == n || m == leader:
			case left > 0:
				left--
			default:
				m.crash(false)
			}
		}
	})
}
