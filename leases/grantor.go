// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "time"

// promise is what this node has promised a peer. Until it ends, this node does not
// vote for another node in a later term, does not campaign, and adopts no roster of
// the same term in which the peer's role is smaller.
//
// All promises to a peer are kept as one. Its end is the latest end. Its roster is
// that of the newest promise, in which the peer's role is the largest, because this
// node adopts no roster with a smaller role in between. All promises that are out
// answer requests of a single run of the peer, because the nonces of two runs have no
// order.
type promise struct {
	until  Instant // Invariant: it falls only when the peer confirms a revocation.
	nonce  Nonce   // the newest that was granted, also after the promise has ended
	roster *Roster
}

// binds reports whether the promise has not ended at an instant.
func (p *promise) binds(now Instant) bool { return now < p.until }

// mayRenew reports whether a request may be granted besides earlier requests: the
// request is newer, and no promise to another run of the peer is out.
func (p *promise) mayRenew(now Instant, x Nonce) bool {
	if x.Boot != p.nonce.Boot {
		return !p.binds(now)
	}
	return x.Counter > p.nonce.Counter
}

// stepRequest takes the request of a peer. The clock was read after the request
// had arrived.
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
	if n.leading == nil && p.id == n.leader || now.since(p.prompt) >= promptFails*n.cfg.Fail {
		p.next, p.prompt = now, now // the peer measures how far away this node is: rules L33 and L34
	}
}

// tryGrant grants a peer's request, if it may be granted now. Otherwise the request
// waits for the adoption of a roster that allows the grant. The grantee counts from
// the sending of the request, so a late grant is only a shorter grant.
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

// mayGrant reports whether the request of a peer may be granted. This node must
// have adopted a roster in which the peer has a role, and wait for no roster in
// which that role is smaller. The lease must be longer than what the grantee takes off.
func (n *Node) mayGrant(now Instant, p *peer) bool {
	r := n.adopted
	switch {
	case n.aside || r == nil || !n.mayAct(now) || p.id != r.Leader && !r.names(p.id):
		return false
	case n.pending() != nil && n.pending().shrinks(r, p.id):
		return false
	}
	_, lasts := n.cfg.lasts(p.clock)
	return lasts && p.promise.mayRenew(now, p.request) && n.maxGrant(now) > n.cfg.delta(p.clock)
}

// maxGrant returns for how long this node may promise: for a whole lease, but not
// beyond the instant at which it might vote, because the leader was not heard.
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

// queueAnswer queues an answer for the next heartbeat to the peer. If this node has
// nothing to ask of the peer there is no such heartbeat, and the answer goes at once.
func (n *Node) queueAnswer(p *peer, a Answer) {
	p.owed = a
	p.atOnce = !n.asks(p)
}

// stepConfirm takes a peer's word: the peer holds no lease of this node granted to
// requests up to x. The promise ends, unless this node has granted a newer request.
func (n *Node) stepConfirm(p *peer, x Nonce) {
	if x.Boot == p.promise.nonce.Boot && x.Counter >= p.promise.nonce.Counter {
		if p.promise.binds(n.latest) {
			n.counts.Confirmed++
		}
		// Requests up to x may still arrive. Grants of them would bind this node in vain.
		p.promise.until, p.promise.nonce = 0, x
	}
}

// MayVote reports whether this node's promises allow a vote for a candidate, in any
// later term, and also if the candidate campaigns at the leader's wish. A pre-vote
// binds nobody and need not ask.
func (n *Node) MayVote(now Instant, candidate NodeID) bool {
	return n.BoundUntil(candidate) <= n.at(now)
}

// MayCampaign reports whether this node's promises allow the node to campaign.
func (n *Node) MayCampaign(now Instant) bool { return n.MayVote(now, n.cfg.ID) }

// BoundUntil returns the instant from which MayVote allows a vote for a candidate,
// if no promise is made, and none is confirmed, before. A vote that has to wait may be held until then.
func (n *Node) BoundUntil(candidate NodeID) Instant {
	until := n.restart.until
	for _, p := range n.peers {
		if p.id != candidate {
			until = max(until, p.promise.until)
		}
	}
	return until
}
