// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

// How fast peers are asked. Each peer has a window: bytes of units that may be on
// order. The window widens while answers come about as soon as the fastest, so that a
// link is filled without a long queue in front of pushes. The window narrows when the
// peer falls silent.
//
// A peer answers in order, and takes its time where its link is slow. So an
// order is given up when a later one was answered, or when nothing at all came
// for a while: longer than the peer was seen to be silent between answers.

const (
	// firstWindow is what a peer is asked for before it has answered.
	firstWindow = 2 * AskBytes
	// maxTimeouts bounds, in timeouts, for how long a peer may be silent.
	maxTimeouts = 8
)

// pullPeer is what is known of a peer.
type pullPeer struct {
	unanswered int // rounds, since it was last heard
	asked      int // tick of the last ask
	round      int // tick of the last round that was counted as unanswered

	window, onOrder int   // bytes
	open            int32 // round of Plan in which there is room for more
	least           int   // ticks that an answer took, at least; -1: none came

	timeout int // ticks of silence after which an order is given up
	quiet   int // tick since which it owes an answer; -1: it owes none
	passed  int // tick of the last order that was answered
}

func (p *Puller) newPeer(now int) *pullPeer {
	return &pullPeer{round: now - 1, window: min(firstWindow, p.batch), timeout: int(p.timeout), least: -1, quiet: -1}
}

// ordered notes an order.
func (p *Puller) ordered(peer *pullPeer, bytes, now int) {
	p.onOrder += bytes
	peer.onOrder += bytes
	peer.asked = now
	if peer.quiet < 0 {
		peer.quiet = now
	}
}

// closed notes that an order has ended, however it did.
func (p *Puller) closed(o order) {
	p.onOrder -= o.bytes
	if peer := p.peers[o.peer]; peer != nil {
		peer.onOrder = max(0, peer.onOrder-o.bytes) // it may have left and come back
	}
}

// spoke notes an answer of a peer, perhaps to an order that was given up.
func (p *Puller) spoke(peer *pullPeer) {
	silent := 0
	if peer.quiet >= 0 {
		silent = p.now - peer.quiet
	}
	peer.timeout = min(max(int(p.timeout), 2*silent+1, peer.timeout-peer.timeout/8), maxTimeouts*int(p.timeout))
	if peer.quiet = p.now; peer.onOrder == 0 {
		peer.quiet = -1
	}
}

// answered notes what answered an order.
func (p *Puller) answered(peer *pullPeer, o order) {
	peer.passed = max(peer.passed, o.tick)
	took := p.now - o.tick
	if peer.least < 0 || took < peer.least {
		peer.least = took
	}
	if took <= 2*peer.least {
		peer.window = min(peer.window+o.bytes, p.batch)
	}
}

// due reports whether an order is to be given up.
func (peer *pullPeer) due(o order, now int) bool {
	return o.tick < peer.passed || now-max(o.tick, peer.quiet) >= peer.timeout
}

// late notes that orders of a peer were given up. The peer is charged with one round a
// tick, however many orders were left, and waited for less each time: if the peer was
// slow, the late answer says so.
func (p *Puller) late(peer *pullPeer, now int) {
	if peer.round == now {
		return
	}
	peer.round = now
	peer.unanswered++
	peer.window = max(peer.window/2, 1) // one entry is asked for whatever its size
	peer.timeout = max(int(p.timeout), peer.timeout/2)
	if peer.unanswered >= silentRounds {
		peer.quiet = -1
	}
}

// hasRoom reports whether a peer is to be asked for more in this round. Room for a few
// bytes waits until there is more, because an Ask for each entry would cost more than
// the entries.
func (p *Puller) hasRoom(peer *pullPeer) bool {
	if peer.open != p.round && (peer.onOrder == 0 || peer.window-peer.onOrder >= min(AskBytes, peer.window/2)) {
		peer.open = p.round
	}
	return peer.open == p.round && (peer.onOrder == 0 || peer.onOrder < peer.window)
}
