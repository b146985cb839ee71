// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "slices"

// leading is what a node knows as a leader, of its term.
type leading struct {
	first Index // its empty entry
	// The leader names nobody until settled is applied: an earlier change of
	// the configuration may be in the log.
	settled  Index
	changing bool // a change of the configuration waits to be appended
	handing  bool // leadership is being handed over
	must     bool // and this node cannot go on
	retiring bool // leases are being switched off
	gaveUp   bool // the leader has given its own leases back
	// lastNamed is the last index at the time when the newest roster ceased to
	// name anyone; 0 if none has named anyone.
	lastNamed Index
	grown     Instant // when a roster last named more than the one before
	joined    Instant // when a configuration last brought a voter; 0: none has
	ticked    Instant // when Tick was called last
	gap       Instant // when Tick was called late last; 0: never
	marks     []mark  // Invariant: both fields ascend.
	tuned     Instant // when the tuner last decided
	outdated  bool    // an input of the rosters has changed
	appends   []mark  // entries whose lags are taken. Invariant: both fields ascend.
	own       follow  // of this node: its acknowledgements and their pace alone
}

// follow is what a leader knows of another node, in its term.
type follow struct {
	match     Index // acknowledged
	known     Seq   // newest roster of the node
	heardOf   Seq   // Invariant: the highest of known.
	announced Seq   // newest roster sent to the node
	adopted   Seq   // Invariant: adopted never falls.
	answered  Instant
	leased    bool // the node has sent a message of leases in this term
	speaks    bool // and has answered since, as far as it was asked
	fit       fit
	pace      pace
}

// anew returns what a leader knows of a node at first.
func (f *follow) anew() follow { return follow{pace: pace{trips: f.pace.trips}} }

// startLeading begins a leadership. The first roster names nobody: its leader's lease
// begins at once, and responders are named as they acknowledge entries of the term.
func (n *Node) startLeading(now Instant, first Index) {
	n.leading = &leading{first: first, settled: first, ticked: now, tuned: now, retiring: n.wish.retired || n.cfg.Retired}
	for _, p := range n.peers {
		p.follow = p.follow.anew()
		p.follow.answered = now
		if p.id == n.former {
			p.follow.fit.backoff = n.cfg.Fail // rule L34
		}
	}
	n.syncTuner()
	if n.tuner != nil {
		n.tuner.restart()
	}
	n.updateRosters(now)
}

// isOff reports whether this node, which leads, neither holds nor wants leases of
// its own: leases are switched off, or were given back to hand over.
func (n *Node) isOff() bool { return n.rosters.newest().Retired || n.leading.gaveUp }

// rostersMayChange has a leader look at its rosters at the next Poll.
func (n *Node) rostersMayChange() {
	if n.leading != nil {
		n.leading.outdated = true
	}
}

// updateRosters makes the next roster, if another than the newest is right, and finds
// out which are in use.
func (n *Node) updateRosters(now Instant) {
	l := n.leading
	l.outdated = false
	n.supersede()
	next := n.nextRoster(now)
	if last := n.rosters.newest(); last != nil {
		inUse, _ := n.rosters.inUse()
		switch {
		case last.sameAs(next) || len(inUse) >= MaxRosters:
			next = nil
		case len(last.Spans) > 0 && len(next.Spans) == 0:
			l.lastNamed = n.last
		case next.adds(last):
			l.grown = now
		}
	}
	if next != nil {
		n.know(next)
		n.supersede()
		n.syncPeers()
		n.renewNow()
		n.tryAdopt(now)
	}
	if l.handing && !l.gaveUp && (l.must || n.isQuiet() || n.fewHaveLeases() && (n.namesNobody() || n.mostAreSilent(now))) {
		l.gaveUp = true
		n.GiveUp()
	}
}

// supersede raises the least roster in use. A roster without names delays
// nothing, whichever nodes have adopted the roster.
func (n *Node) supersede() {
	for _, r := range n.rosters.list {
		if r.namesAny() && !n.isSuperseded(r) {
			n.rosters.supersede(r.ID.Seq)
			break
		}
		if r == n.rosters.newest() {
			n.rosters.supersede(r.ID.Seq)
		}
	}
	n.rosters.drop(func(Seq) bool { return false })
}

// isQuiet reports whether a majority has adopted a roster without names, and no
// roster with names is in use.
func (n *Node) isQuiet() bool {
	newest := n.rosters.newest()
	before := *newest
	before.ID.Seq--
	return !newest.namesAny() && n.namesNobody() && n.isSuperseded(&before)
}

// nextRoster returns the roster that is right at present.
func (n *Node) nextRoster(now Instant) *Roster {
	last := n.rosters.newest()
	r := &Roster{ID: RosterID{Term: n.term, Seq: 1}, Leader: n.cfg.ID, Voters: n.members.Voters, Wanted: n.wish.wanted, Retired: n.leading.retiring, Tuner: n.wish.tuner}
	if last != nil {
		r.ID.Seq = last.ID.Seq + 1
	}
	if !n.mayName(now) {
		return r
	}
	more := last == nil || n.leading.grown == 0 || now.since(n.leading.grown) >= n.cfg.Heartbeat
	for _, w := range n.wish.wanted {
		a := Assignment{Span: w.Span}
		for _, id := range n.meantBy(w) {
			if p := n.peer(id); p == nil || !p.follow.fit.named || !n.members.has(id) {
				continue
			}
			// A responder that stays keeps its barrier. Entries may have been committed
			// without a responder that was out of a roster.
			b, stays := Index(0), false
			if last != nil {
				b, stays = last.serves(id, w.Span)
			}
			if !stays {
				b = n.last
			}
			if stays || more {
				a.Responders = append(a.Responders, Responder{Node: id, Barrier: b})
			}
		}
		if len(a.Responders) > 0 {
			r.Spans = append(r.Spans, a)
		}
	}
	return r
}

// mayName reports whether a roster may name anyone: the configuration is settled and
// stays, and so many voters have leases that this roster can be superseded.
func (n *Node) mayName(now Instant) bool {
	l := n.leading
	return n.applied >= l.settled && !l.changing && !l.handing && !l.retiring && !n.members.joint() && n.votersHaveLeases(now)
}

// votersHaveLeases reports whether a majority of the voters has sent messages of leases
// in this term, and so has each voter that acknowledges entries. A voter that runs without
// leases adopts no roster; if a responder died, writes might wait for it without end. A
// voter that has just joined gets a while to show what it runs with.
func (n *Node) votersHaveLeases(now Instant) bool {
	has := func(v NodeID) bool {
		p := n.peer(v)
		return v == n.cfg.ID || p != nil && p.follow.leased
	}
	lacks := func(v NodeID) bool { return !has(v) && n.peer(v) != nil && n.peer(v).follow.match >= n.leading.first }
	if new := n.leading.joined; new != 0 && now.since(new) < n.cfg.Fail {
		lacks = func(v NodeID) bool { return !has(v) }
	}
	return n.members.majority(has) && !slices.ContainsFunc(n.members.Incoming, lacks)
}

// fewHaveLeases reports whether less than a majority of the voters runs with leases. They
// cannot supersede a roster, nor do they have to: nobody is stable by their grants alone.
func (n *Node) fewHaveLeases() bool {
	return !n.members.majority(func(v NodeID) bool { return v == n.cfg.ID || n.peer(v) != nil && n.peer(v).follow.speaks })
}

// mostAreSilent reports whether so many voters have answered nothing for longer than a
// lease lasts that the others are no majority.
//
// If most members were restarted without leases, and were not retired first, the rosters from
// before are never superseded, because too few adopt later ones. To wait for that keeps
// the leader from handing over, which is the way out: the next leader has no
// rosters to wait for. The leader may give its own leases back at any time. Members
// that are silent and have leases after all are bound by their promises, whoever
// campaigns.
func (n *Node) mostAreSilent(now Instant) bool {
	return !n.members.majority(func(v NodeID) bool {
		return v == n.cfg.ID || n.peer(v) != nil && now.since(n.peer(v).follow.answered) < n.cfg.Lease+n.delta
	})
}

// sameAs reports whether a roster says the same as another, numbers aside.
func (r *Roster) sameAs(o *Roster) bool {
	return r.Retired == o.Retired && r.Tuner == o.Tuner && r.Voters.equal(o.Voters) && sameWants(r.Wanted, o.Wanted) &&
		slices.EqualFunc(r.Spans, o.Spans, func(a, b Assignment) bool {
			return a.Span == b.Span && slices.Equal(a.Responders, b.Responders)
		})
}

func sameWants(a, b []Want) bool {
	return slices.EqualFunc(a, b, func(x, y Want) bool {
		return x.Span == y.Span && x.Tuned == y.Tuned && slices.Equal(x.Nodes, y.Nodes)
	})
}

// adds reports whether a roster gives anyone a role that an older roster does
// not give.
func (r *Roster) adds(old *Roster) bool {
	for _, a := range r.Spans {
		for _, x := range a.Responders {
			if b, ok := old.serves(x.Node, a.Span); !ok || b != x.Barrier {
				return true
			}
		}
	}
	return false
}
