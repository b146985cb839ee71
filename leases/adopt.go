// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "slices"

// restart is a node's wait after a restart, because its promises and its adopted
// roster were not on disk.
type restart struct {
	// until is the end of the quarantine. All promises from before the start, or from
	// before the clock was found unfit, have ended then.
	until Instant
	// term is that of the HardState at the start. In this term the node adopts
	// nothing until the leader has answered a request of this run with the number
	// of its newest roster, and then nothing older. In later terms the node has
	// reported no adoption, because a report waits until its term is on disk.
	term   Term
	asking bool
	least  Seq // the number in the leader's answer
}

// mayAct reports whether this node may adopt and grant: the quarantine is over,
// and the term is on disk.
func (n *Node) mayAct(now Instant) bool { return now >= n.restart.until && n.durable >= n.term }

// pending returns the next roster for this node to adopt, or nil.
func (n *Node) pending() *Roster {
	r := n.rosters.newest()
	if r == nil || n.adopted != nil && r.ID.Seq <= n.adopted.ID.Seq {
		return nil
	}
	return r
}

// isAsking reports whether this node must learn the number of the leader's
// newest roster before adopting any.
func (n *Node) isAsking() bool { return n.restart.asking && n.restart.term == n.term }

// mayAdopt reports whether a roster may be adopted once no promise stands against it.
func (n *Node) mayAdopt(now Instant, r *Roster) bool {
	if n.restart.term == n.term && r.ID.Seq < n.restart.least {
		return false
	}
	return n.mayAct(now) && !n.isAsking()
}

// waitsFor reports whether a promise to a peer keeps this node from adopting the
// pending roster. The wait ends, because meanwhile nothing is granted to the peer.
func (n *Node) waitsFor(now Instant, p *peer) bool {
	r := n.pending()
	return r != nil && r.waitsFor(now, p)
}

// waitsFor reports whether a promise to a peer stands against a roster.
func (r *Roster) waitsFor(now Instant, p *peer) bool {
	return p.promise.binds(now) && p.promise.roster.ID.Term == r.ID.Term && r.shrinks(p.promise.roster, p.id)
}

// adoptable returns the newest roster against which nothing stands, or nil. While the newest known one waits for a
// grantee, an older one may not: rule L26.
func (n *Node) adoptable(now Instant) *Roster {
	for _, r := range slices.Backward(n.rosters.list) {
		switch {
		case n.adopted != nil && r.ID.Seq <= n.adopted.ID.Seq:
			return nil
		case n.mayAdopt(now, r) && !slices.ContainsFunc(n.peers, func(p *peer) bool { return r.waitsFor(now, p) }):
			return r
		}
	}
	return nil
}

// tryAdopt adopts a roster, if nothing stands against it, and grants the
// requests waiting for the adoption. Promises on unchanged roles continue.
func (n *Node) tryAdopt(now Instant) {
	r := n.adoptable(now)
	if r == nil {
		return
	}
	for _, p := range n.peers {
		if p.promise.until > 0 && p.promise.roster == n.adopted && r.shrinks(n.adopted, p.id) {
			n.counts.Lapsed++ // a confirmation would have set until to 0
		}
	}
	n.adopted = r
	n.counts.Adopted++
	n.rostersMayChange()
	for _, p := range n.peers {
		n.tryGrant(now, p)
		p.report = p.report || p.id == n.leader
	}
}

// answeredByLeader takes the number of the leader's newest roster, in an answer to a
// request of this run.
func (n *Node) answeredByLeader(newest Seq) {
	if n.isAsking() && newest > 0 {
		n.restart.asking, n.restart.least = false, newest
	}
}

// learn takes rosters announced by the leader.
func (n *Node) learn(list []Roster) {
	news := false
	for i := range list {
		news = n.know(&list[i]) || news
	}
	if news {
		n.syncPeers()
		n.renewNow()
	}
}

// know adds a roster to the known rosters, and reports whether the roster was
// new.
func (n *Node) know(r *Roster) bool {
	if !n.rosters.add(r) {
		return false
	}
	if n.wish.id.before(r.ID) {
		n.wish = wish{id: r.ID, wanted: r.Wanted, retired: r.Retired, tuner: r.Tuner}
		n.syncTuner()
	}
	return true
}

// renewNow makes all heartbeats due, because roles have changed.
func (n *Node) renewNow() {
	for _, p := range n.peers {
		p.next = n.latest
	}
}
