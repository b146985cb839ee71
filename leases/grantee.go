// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "math"

// maxSent is how many requests to a peer are remembered. Answers to older requests
// are void.
const maxSent = 16

// sentRequest is a request to a peer and when it was sent.
type sentRequest struct {
	counter uint64 // 0: none
	at      Instant
}

// holding is the newest lease granted by a peer to this node. Older leases are
// forgotten. An older lease may bind the peer for longer, so this node counts too
// little.
type holding struct {
	until   Instant // by this node's clock, less drift
	counter uint64  // of the request
	roster  RosterID
}

// ask returns the nonce of a new request to a peer. A lease that answers the request
// counts from now.
func (n *Node) ask(now Instant, p *peer) Nonce {
	n.counter++
	*p.oldestSent() = sentRequest{counter: n.counter, at: now}
	return Nonce{Boot: n.cfg.Boot, Counter: n.counter}
}

// oldestSent returns the place of the oldest request to the peer.
func (p *peer) oldestSent() *sentRequest {
	oldest := &p.sent[0]
	for i := range p.sent {
		if p.sent[i].counter < oldest.counter {
			oldest = &p.sent[i]
		}
	}
	return oldest
}

// stepAnswer takes an answer of a peer, in a message of the current term.
//
// The grantor promises d from when the request arrived, by its clock. This node
// counts d less delta from when it sent the request, by its own clock. The promise
// therefore ends later, however late, repeated or reordered messages are.
func (n *Node) stepAnswer(p *peer, a Answer) {
	at, ok := p.sentAt(a.Nonce.Counter)
	if a.Nonce.Boot != n.cfg.Boot || !ok {
		return
	}
	p.follow.answered = n.latest
	p.follow.pace.travels(n.latest, n.latest.since(at), n.cfg.Fail)
	if a.For == 0 || a.Nonce.Counter <= p.floor || a.Nonce.Counter <= p.holding.counter {
		return
	}
	// delta is enough for a lease as long as this node's setting.
	d := min(a.For, n.cfg.Lease) - n.cfg.delta(p.clock)
	if d <= 0 {
		return
	}
	p.holding = holding{until: at.after(d), counter: a.Nonce.Counter, roster: RosterID{Term: n.term, Seq: a.Seq}}
	n.counts.Held++
}

// sentAt returns when a request to the peer was sent, if it still may be answered.
func (p *peer) sentAt(counter uint64) (Instant, bool) {
	for _, s := range p.sent {
		if s.counter == counter && counter > 0 {
			return s.at, true
		}
	}
	return 0, false
}

// stepRevoke takes a grantor's revocation of the leases granted to requests up to x.
// From now on this node counts no such lease; answers under way are void.
func (n *Node) stepRevoke(p *peer, x Nonce) {
	if x.Boot == n.cfg.Boot {
		if x.Counter > n.counter {
			return // no request had that number
		}
		p.floor = max(p.floor, x.Counter)
	}
	// A request of another run gave this run nothing to hold.
	p.holding = holding{}
	p.confirm = x
	n.counts.Revoked++
}

// GiveUp gives back all leases held or asked for by this node. A node about to stop
// calls GiveUp and sends the messages of Poll, so that no other node waits for these
// leases to end.
func (n *Node) GiveUp() {
	for _, p := range n.peers {
		if _, asked := p.sentAt(n.newestTo(p)); asked {
			n.stepRevoke(p, Nonce{Boot: n.cfg.Boot, Counter: n.newestTo(p)})
		}
	}
}

// newestTo returns the counter of the newest request to a peer, 0 if there is none.
func (n *Node) newestTo(p *peer) uint64 {
	newest := uint64(0)
	for _, s := range p.sent {
		newest = max(newest, s.counter)
	}
	return newest
}

// boundUntil returns until when a voter is bound to this node by a lease on a roster of the
// current term, if the roster passes a test; 0 if it does not. The test gets nil for a
// roster unknown to this node. This node itself is bound until something happens.
func (n *Node) boundUntil(v NodeID, test func(*Roster) bool) Instant {
	if v == n.cfg.ID {
		if n.adopted == nil || !test(n.adopted) {
			return 0
		}
		return math.MaxInt64
	}
	p := n.peer(v)
	if p == nil || p.holding.roster.Term != n.term || !test(n.rosters.find(p.holding.roster.Seq)) {
		return 0
	}
	return p.holding.until
}

// IsStable reports whether this node may answer reads of a span from its own state:
// at an instant of its clock, made after the read had arrived, a majority of the
// voters is bound to this node as the leader, or as a responder of the span.
// ReadIndex also tells the index to apply before the answer.
func (n *Node) IsStable(now Instant, span Span) bool {
	now = n.at(now)
	return now < n.stableUntil(span)
}

// stableUntil returns until when this node is stable for a span if nothing happens; 0 if the
// node is not stable, or stands aside.
func (n *Node) stableUntil(span Span) Instant {
	if n.aside {
		return 0
	}
	test := func(r *Roster) bool {
		if r == nil || !r.Voters.equal(n.members.Voters) {
			return false
		}
		barrier, ok := r.serves(n.cfg.ID, span)
		return ok && barrier <= n.committed
	}
	if l := n.leading; l != nil {
		if n.isOff() || n.committed < l.first {
			return 0
		}
		test = func(*Roster) bool { return true } // any roster of its term
	}
	return n.members.majorityUntil(func(v NodeID) Instant { return n.boundUntil(v, test) })
}
