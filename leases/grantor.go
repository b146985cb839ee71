// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "time"

// promise is what this node has promised a peer: until then it neither votes for
// anyone else in a later term, nor campaigns, nor adopts a roster of the same term in which
// the peer's role is smaller.
//
// All promises to a peer are kept as one: its end is the latest of theirs, its
// roster that of the newest, whose role is the largest, because no roster with a
// smaller one was adopted in between. They all answer requests of one run of the
// peer, as a nonce of another run cannot be said to be older or newer.
type promise struct {
	until  Instant // Invariant: it falls only when the peer confirms.
	nonce  Nonce   // the newest that was granted; it stays when the promise has ended
	roster *Roster
}

// binds reports whether the promise has not ended at an instant.
func (p *promise) binds(now Instant) bool { return now < p.until }

// mayRenew reports whether a request may be granted besides what has been: it is newer,
// and no promise to an earlier run of the peer is out.
func (p *promise) mayRenew(now Instant, x Nonce) bool {
	if x.Boot != p.nonce.Boot {
		return !p.binds(now)
	}
	return x.Counter > p.nonce.Counter
}

// stepRequest takes the request of a peer. A grant promises from here on, by a
// clock that was read after the request had arrived.
func (n *Node) stepRequest(now Instant, p *peer, x Nonce) {
	if x.Boot != p.request.Boot || x.Counter > p.request.Counter {
		p.request = x
	}
	n.tryGrant(now, p)
	if p.owed.Nonce != x && (n.leading != nil || p.id == n.leader) {
		// A leader's answer tells a node that was restarted which roster is the
		// newest, and an answer to the leader that this node is there.
		n.queueAnswer(p, Answer{Nonce: x})
	}
}

// tryGrant grants a peer's request, if it may be granted now. Else the request
// stays, and is granted when a roster is adopted that allows it: the grantee
// counts from when it sent it, however late the answer is.
func (n *Node) tryGrant(now Instant, p *peer) {
	if p.request.isNone() || !n.mayGrant(now, p) {
		return
	}
	d := n.maxGrant(now)
	fresh := !p.promise.binds(now)
	p.promise = promise{until: max(p.promise.until, now.after(d)), nonce: p.request, roster: n.adopted}
	n.queueAnswer(p, Answer{Nonce: p.request, For: d, Seq: n.adopted.ID.Seq})
	p.atOnce = p.atOnce || fresh
	p.request = Nonce{}
	n.counts.Granted++
}

// mayGrant reports whether the request of a peer may be granted: this node may
// act on leases, the roster it has adopted gives the peer a role, the roster it
// waits to adopt leaves that role as large, and there is time enough until this
// node might vote.
func (n *Node) mayGrant(now Instant, p *peer) bool {
	r := n.adopted
	switch {
	case r == nil || !n.mayAct(now) || p.id != r.Leader && !r.names(p.id):
		return false
	case n.pending() != nil && n.pending().shrinks(r, p.id):
		return false
	}
	return p.promise.mayRenew(now, p.request) && n.maxGrant(now) > n.delta
}

// maxGrant returns for how long this node may promise: a lease, but not beyond the
// instant from which it might vote because it has not heard the leader.
func (n *Node) maxGrant(now Instant) time.Duration {
	heard := n.heard
	if n.leading != nil {
		heard = now
	}
	if heard == 0 {
		return 0
	}
	return min(n.cfg.Lease, heard.after(n.cfg.ElectionTimeout).since(now))
}

// queueAnswer decides an answer. It rides with the next request to the peer, unless
// there will be none, or the peer is without a lease until then.
func (n *Node) queueAnswer(p *peer, a Answer) {
	p.owed = a
	p.atOnce = !n.asks(p)
}

// stepConfirm takes a peer's word that it holds nothing that was granted to
// requests up to x. The promise ends, unless something newer was granted.
func (n *Node) stepConfirm(p *peer, x Nonce) {
	if x.Boot == p.promise.nonce.Boot && x.Counter >= p.promise.nonce.Counter {
		if p.promise.binds(n.latest) {
			n.counts.Confirmed++
		}
		p.promise.until = 0
	}
}

// MayVote reports whether the promises of this node allow it to vote for a
// candidate, in whatever later term, asked by a leader's wish or not. Pre-votes
// bind nobody and need not ask.
func (n *Node) MayVote(now Instant, candidate NodeID) bool {
	return n.BoundUntil(now, candidate) <= n.at(now)
}

// MayCampaign reports whether promises allow this node to become a candidate.
func (n *Node) MayCampaign(now Instant) bool { return n.MayVote(now, n.cfg.ID) }

// BoundUntil returns the instant from which on MayVote allows a vote for a
// candidate, unless promises are made or confirmed in between. It is not after now if the vote
// is allowed.
func (n *Node) BoundUntil(now Instant, candidate NodeID) Instant {
	until := n.restart.until
	for _, p := range n.peers {
		if p.id != candidate {
			until = max(until, p.promise.until)
		}
	}
	return until
}
